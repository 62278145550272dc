# -*- test-case-name: tests.threads -*-
"""Producers and consumers for plain threads: calls that wait.

One import suffices::

    from rocketbroker.threads import connect

    with connect("127.0.0.1:9876") as mq:
        mq.send("Orders", "hello", tag="paid", keys=["k1"])
        with mq.consumer("Orders", group="billing", tags="paid") as messages:
            for message in messages:
                print(message.text)
                message.ack()

The members of a group share the queues of a topic, also with members in other
languages. A listener runs in a pool of threads::

    @mq.on("Orders", group="billing", concurrency=20)
    def handle(message): ...

    mq.run()

Any number of threads may share a session. Behind it one thread runs the event loop; it
begins with the first call, and a child of a fork begins its own. A session that is left
open is closed when the interpreter ends.

Modules: L{face}; L{lite_pull
<rocketbroker.threads.lite_pull>}; L{loop_thread
<rocketbroker.threads.loop_thread>}. What stands behind them: L{rocketbroker.client}.
Errors can be imported from here; L{rocketbroker.client.errors} says what to do next.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketbroker.client.errors import (
        BrokerError,
        ClientClosed,
        ConfigurationError,
        ConnectionLost,
        MessageIllegal,
        NoBroker,
        NoPermission,
        RemoteProtocolError,
        RequestTimeout,
        RocketbrokerError,
        SystemBusy,
        TopicNotExist,
    )
    from rocketbroker.client.received import MessageView
    from rocketbroker.records.outgoing import Message
    from rocketbroker.routing.send_requests import SendResult
    from rocketbroker.routing.topic_view import MessageQueue
    from rocketbroker.threads.face import (
        MessageStream,
        ReceivedMessage,
        Session,
        connect,
    )
    from rocketbroker.threads.lite_pull import LitePullConsumer

__all__ = [
    "connect",
    "Session",
    "MessageStream",
    "MessageView",
    "ReceivedMessage",
    "LitePullConsumer",
    "Message",
    "SendResult",
    "MessageQueue",
    "BrokerError",
    "ClientClosed",
    "ConfigurationError",
    "ConnectionLost",
    "MessageIllegal",
    "NoBroker",
    "NoPermission",
    "RemoteProtocolError",
    "RequestTimeout",
    "RocketbrokerError",
    "SystemBusy",
    "TopicNotExist",
]

_MODULES = {
    "connect": "rocketbroker.threads.face",
    "Session": "rocketbroker.threads.face",
    "MessageStream": "rocketbroker.threads.face",
    "ReceivedMessage": "rocketbroker.threads.face",
    "LitePullConsumer": "rocketbroker.threads.lite_pull",
    "MessageView": "rocketbroker.client.received",
    "Message": "rocketbroker.records.outgoing",
    "SendResult": "rocketbroker.routing.send_requests",
    "MessageQueue": "rocketbroker.routing.topic_view",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name, "rocketbroker.client.errors")
    return getattr(import_module(module), name)

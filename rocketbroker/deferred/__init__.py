# -*- test-case-name: tests.deferred -*-
"""Producers and consumers for Twisted: Deferreds, with the reactor that is given.

One import suffices::

    from rocketbroker.deferred import connect

    mq = connect(reactor, "127.0.0.1:9876")
    sent = mq.send("Orders", "hello", tag="paid", keys=["k1"])
    sent.addCallback(lambda result: print(result.message_id))

A Deferred can be awaited, so in a coroutine of Twisted it reads as with asyncio::

    async with connect(reactor) as mq:
        async with mq.consumer("Orders", group="billing") as messages:
            async for message in messages:
                print(message.text)
                await message.ack()

The members of a group share the queues of a topic, also with members in other
languages. A listener returns a value or a Deferred, or is a coroutine::

    @mq.on("Orders", group="billing", concurrency=20)
    def handle(message): ...

    mq.run()

Module: L{face}. What stands behind it:
L{rocketbroker.client}. Errors can be imported from here;
L{rocketbroker.client.errors} says what to do next.
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
    from rocketbroker.deferred.face import (
        LitePullConsumer,
        MessageStream,
        ReceivedMessage,
        Session,
        connect,
    )
    from rocketbroker.records.outgoing import Message
    from rocketbroker.routing.send_requests import SendResult
    from rocketbroker.routing.topic_view import MessageQueue

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
    "connect": "rocketbroker.deferred.face",
    "Session": "rocketbroker.deferred.face",
    "MessageStream": "rocketbroker.deferred.face",
    "ReceivedMessage": "rocketbroker.deferred.face",
    "LitePullConsumer": "rocketbroker.deferred.face",
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

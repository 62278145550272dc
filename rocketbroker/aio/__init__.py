# -*- test-case-name: tests.aio -*-
"""Producers and consumers for asyncio: in the caller's loop, without a thread.

One import suffices::

    from rocketbroker.aio import connect

    async with connect("127.0.0.1:9876") as mq:
        await mq.send("Orders", "hello", tag="paid", keys=["k1"])
        async with mq.consumer("Orders", group="billing", tags="paid") as messages:
            async for message in messages:
                print(message.text)
                await message.ack()

The members of a group share the queues of a topic, also with members in other
languages. A listener and its loop::

    mq = connect()

    @mq.on("Orders", group="billing", concurrency=20)
    async def handle(message): ...

    async with mq:
        await mq.run()

Module: L{face}. What stands behind it:
L{rocketbroker.client}. Errors can be imported from here;
L{rocketbroker.client.errors} says what to do next.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketbroker.aio.face import connect
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
    from rocketbroker.client.lite_pull import LitePullConsumer
    from rocketbroker.client.received import MessageView, ReceivedMessage
    from rocketbroker.client.session import MessageStream, Session
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
    "connect": "rocketbroker.aio.face",
    "Session": "rocketbroker.client.session",
    "MessageStream": "rocketbroker.client.session",
    "MessageView": "rocketbroker.client.received",
    "ReceivedMessage": "rocketbroker.client.received",
    "LitePullConsumer": "rocketbroker.client.lite_pull",
    "Message": "rocketbroker.records.outgoing",
    "SendResult": "rocketbroker.routing.send_requests",
    "MessageQueue": "rocketbroker.routing.topic_view",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES.get(name, "rocketbroker.client.errors")
    return getattr(import_module(module), name)

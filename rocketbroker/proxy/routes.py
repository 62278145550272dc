# -*- test-case-name: tests.proxy.test_routes -*-
"""Routes and assignments, as clients of the proxy get them. Pure.

The brokers of an answer have the endpoints that the request names: clients come to all
brokers through the proxy that they know, port included, so that mapped ports work.
C{docs/facts/proxy.md} 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rocketbroker.proxy.messages_pb2 import (
    Address,
    Assignment,
    Broker,
    Endpoints,
    MessageQueue,
    MessageType,
    Permission,
    Resource,
)
from rocketbroker.routing.topic_view import MASTER, READ, WRITE, TopicView
from rocketbroker.wire.bodies.routes import QueueData

#: The topic attribute that says which messages a topic takes.
KIND_ATTRIBUTE: Final = "message.type"

#: What a topic of each type takes.
_TYPES: Final = {
    "NORMAL": (MessageType.NORMAL,),
    "FIFO": (MessageType.FIFO,),
    "DELAY": (MessageType.DELAY,),
    "TRANSACTION": (MessageType.TRANSACTION,),
    "MIXED": (
        MessageType.NORMAL,
        MessageType.FIFO,
        MessageType.DELAY,
        MessageType.TRANSACTION,
    ),
}


def accepted(kind: str) -> tuple[MessageType, ...]:
    """The types of messages that a topic takes.

    @param kind: the topic's attribute.
    """
    return _TYPES.get(kind, (MessageType.MESSAGE_TYPE_UNSPECIFIED,))


def permission(bits: int) -> Permission:
    """The permission of queues."""
    both = {READ | WRITE: Permission.READ_WRITE, READ: Permission.READ}
    both[WRITE] = Permission.WRITE
    return both.get(bits & (READ | WRITE), Permission.NONE)


def _permissions(data: QueueData) -> list[Permission]:
    """The permission of each queue of a broker: READ first, then WRITE, then both."""
    read, write = data.read_queue_nums, data.write_queue_nums
    bits = data.perm & (READ | WRITE)
    if bits == READ | WRITE:
        both = min(read, write)
        return [
            *[Permission.READ] * (read - both),
            *[Permission.WRITE] * (write - both),
            *[Permission.READ_WRITE] * both,
        ]
    if bits == WRITE:
        return [Permission.WRITE] * write
    if bits == READ:
        return [Permission.READ] * read
    return [Permission.NONE] * max(1, read, write)


def queues_of(
    topic: Resource, view: TopicView, kind: str, endpoints: Endpoints
) -> list[MessageQueue]:
    """The queues of a topic, on slaves, too.

    @param topic: as the request names it.
    @param kind: the topic's type.
    """
    found: list[MessageQueue] = []
    for data in view.route.queue_datas:
        for broker_id in sorted(view.brokers.get(data.broker_name, {})):
            broker = Broker(name=data.broker_name, id=broker_id, endpoints=endpoints)
            found += [
                MessageQueue(
                    topic=topic,
                    id=number,
                    permission=allowed,
                    broker=broker,
                    accept_message_types=accepted(kind),
                )
                for number, allowed in enumerate(_permissions(data))
            ]
    return found


def assignments_of(
    topic: Resource, view: TopicView, fifo: bool, endpoints: Endpoints
) -> list[Assignment]:
    """The queues that any member of a group reads: POP shares out messages.

    @param fifo: whether the group has each queue by itself.
    """
    return [
        Assignment(message_queue=queue)
        for data in sorted(view.route.queue_datas, key=lambda one: one.broker_name)
        if data.perm & READ and data.read_queue_nums > 0
        if data.broker_name in view.masters
        for queue in _assigned(topic, data, fifo, endpoints)
    ]


def _assigned(
    topic: Resource, data: QueueData, fifo: bool, endpoints: Endpoints
) -> Iterator[MessageQueue]:
    broker = Broker(name=data.broker_name, id=MASTER, endpoints=endpoints)
    for number in range(data.read_queue_nums) if fifo else (-1,):
        yield MessageQueue(
            topic=topic, id=number, permission=permission(data.perm), broker=broker
        )


def endpoints_text(endpoints: Endpoints) -> str:
    """Endpoints for logs."""
    return ",".join(_address(one) for one in endpoints.addresses)


def _address(address: Address) -> str:
    return f"{address.host}:{address.port}"

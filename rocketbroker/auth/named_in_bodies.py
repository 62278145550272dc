# -*- test-case-name: tests.auth.test_named_in_bodies -*-
"""Names in bodies: groups and topics of heartbeats (34) and of queue locks (41, 42)."""

from __future__ import annotations

import msgspec

from rocketbroker.wire.bodies.heartbeats import HeartbeatData
from rocketbroker.wire.bodies.queues import LockBatchBody
from rocketbroker.wire.fastjson import loads


class _Subscription(msgspec.Struct, rename="camel"):
    topic: str


class _Consumer(msgspec.Struct, rename="camel"):
    group_name: str
    subscription_data_set: list[_Subscription]


class _Heartbeat(msgspec.Struct, rename="camel"):
    consumer_data_set: list[_Consumer]


_decode = msgspec.json.Decoder(_Heartbeat).decode


def consumers(body: bytes | memoryview) -> list[tuple[str, list[str]]]:
    """The consumer groups of a heartbeat, and the topics of each.

    @raise RemoteProtocolError: the body is no heartbeat.
    """
    try:
        found = _decode(body).consumer_data_set
    except msgspec.MsgspecError:
        return _lenient(body)
    return [
        (one.group_name, [each.topic for each in one.subscription_data_set])
        for one in found
    ]


def _lenient(body: bytes | memoryview) -> list[tuple[str, list[str]]]:
    """The same, written in another form than by the known clients."""
    return [
        (one.group_name, [each.topic for each in one.subscription_data_set])
        for one in HeartbeatData.from_json(loads(bytes(body))).consumer_data_set
    ]


def locked(body: bytes | memoryview) -> tuple[str, list[str]]:
    """The group that locks or unlocks queues, and their topics.

    @raise RemoteProtocolError: the body is no such thing.
    """
    found = LockBatchBody.from_json(loads(bytes(body)))
    return found.consumer_group, [queue.topic for queue in found.mq_set]

# -*- test-case-name: tests.wire.bodies.test_queues -*-
"""Message queues as values, which are also keys in JSON objects; and bodies of
queues."""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.wire.fields import Fields
from rocketbroker.wire.json_reader import ObjectKey, loads


@attrs.frozen(order=True)
class MessageQueue:
    """One queue of a topic at one broker, in the order in which clients sort queues.

    It may be a key of a dict that is to be written.
    """

    topic: str
    broker_name: str
    queue_id: int

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read a value, or a key: an object, or a string that holds one.

        @raise RemoteProtocolError: it is none of these.
        """
        if isinstance(value, ObjectKey):
            value = value.members()
        elif isinstance(value, str):
            value = loads(value)
        fields = Fields(value, "a queue")
        return cls(
            fields.text("topic") or "",
            fields.text("brokerName") or "",
            fields.integer("queueId"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "brokerName": self.broker_name,
            "queueId": self.queue_id,
            "topic": self.topic,
        }


@attrs.frozen(kw_only=True)
class LockBatchBody:
    """The body of 41 and 42: the queues that a client locks or unlocks.

    @ivar only_this_broker: it is one broker that asks another for its vote.
    """

    client_id: str
    consumer_group: str
    mq_set: list[MessageQueue] = attrs.field(factory=list)
    only_this_broker: bool = False

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "queues to lock")
        return cls(
            client_id=fields.text("clientId") or "",
            consumer_group=fields.text("consumerGroup") or "",
            mq_set=fields.beans("mqSet", MessageQueue.from_json),
            only_this_broker=fields.boolean("onlyThisBroker"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "clientId": self.client_id,
            "consumerGroup": self.consumer_group,
            "mqSet": self.mq_set,
            "onlyThisBroker": self.only_this_broker,
        }

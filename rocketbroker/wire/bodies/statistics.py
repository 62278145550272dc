# -*- test-case-name: tests.wire.bodies.test_statistics -*-
"""Queues in figures: the answers of 202 and 208.

Shapes: C{docs/facts/admin.md} 3.
"""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.fields import Fields


def _rate(fields: Fields, name: str) -> float:
    value = fields.value(name)
    if value is None:
        return 0.0
    if isinstance(value, int | float):
        return float(value)
    raise RemoteProtocolError(f"{name} is not a number")


@attrs.frozen(kw_only=True)
class TopicOffset:
    """One queue of a topic: its first offset, one more than its last, in ms when its
    last message was stored; 0: it is empty."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "the offsets of a queue")
        return cls(
            min_offset=fields.integer("minOffset", bits=64),
            max_offset=fields.integer("maxOffset", bits=64),
            last_update_timestamp=fields.integer("lastUpdateTimestamp", bits=64),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "lastUpdateTimestamp": self.last_update_timestamp,
            "maxOffset": self.max_offset,
            "minOffset": self.min_offset,
        }


@attrs.frozen(kw_only=True)
class TopicStatsTable:
    """The queues of a topic on one broker, and its rate of sends."""

    offset_table: dict[MessageQueue, TopicOffset] = attrs.field(factory=dict)
    topic_put_tps: float = 0.0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "the statistics of a topic")
        return cls(
            offset_table={
                MessageQueue.from_json(key): TopicOffset.from_json(offsets)
                for key, offsets in fields.members("offsetTable").items()
            },
            topic_put_tps=_rate(fields, "topicPutTps"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"offsetTable": self.offset_table, "topicPutTps": self.topic_put_tps}


@attrs.frozen(kw_only=True)
class OffsetWrapper:
    """A group in one queue.

    @ivar broker_offset: one more than the last offset of the queue.
    @ivar consumer_offset: where the group goes on, as it has committed.
    @ivar pull_offset: up to where it has pulled; brokers before 5.0 do not say.
    @ivar last_timestamp: when the last message that it has consumed was stored, in ms.
    """

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a group's offsets in a queue")
        return cls(
            broker_offset=fields.integer("brokerOffset", bits=64),
            consumer_offset=fields.integer("consumerOffset", bits=64),
            pull_offset=fields.integer("pullOffset", bits=64),
            last_timestamp=fields.integer("lastTimestamp", bits=64),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "brokerOffset": self.broker_offset,
            "consumerOffset": self.consumer_offset,
            "lastTimestamp": self.last_timestamp,
            "pullOffset": self.pull_offset,
        }


@attrs.frozen(kw_only=True)
class ConsumeStats:
    """A group in all queues of one broker, and its rate."""

    offset_table: dict[MessageQueue, OffsetWrapper] = attrs.field(factory=dict)
    consume_tps: float = 0.0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "the statistics of a group")
        return cls(
            offset_table={
                MessageQueue.from_json(key): OffsetWrapper.from_json(offsets)
                for key, offsets in fields.members("offsetTable").items()
            },
            consume_tps=_rate(fields, "consumeTps"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"consumeTps": self.consume_tps, "offsetTable": self.offset_table}

# -*- test-case-name: tests.wire.test_queues -*-
"""Which queue: the value that is also a key in JSON objects."""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.wire.fields import Fields
from rocketbroker.wire.reading import ObjectKey, loads


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
        """The JSON form."""
        return {
            "brokerName": self.broker_name,
            "queueId": self.queue_id,
            "topic": self.topic,
        }

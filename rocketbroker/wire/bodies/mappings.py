# -*- test-case-name: tests.wire.bodies.test_mappings -*-
"""Static topics: which logical queue is which queue of a broker.

Shapes: C{docs/facts/namesrv.md} 11.1.
"""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.wire.fields import Fields, read_long


@attrs.frozen(kw_only=True)
class TopicQueueMappingInfo:
    """The share of one broker in a static topic.

    @ivar curr_id_map: logical queue to the broker's own queue.
    """

    topic: str | None = None
    scope: str = "__global__"
    total_queues: int = 0
    bname: str | None = None
    epoch: int = 0
    dirty: bool = False
    curr_id_map: dict[int, int] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a mapping of queues")
        return cls(
            topic=fields.text("topic"),
            scope=fields.text("scope") or "__global__",
            total_queues=fields.integer("totalQueues"),
            bname=fields.text("bname"),
            epoch=fields.integer("epoch", bits=64),
            dirty=fields.boolean("dirty"),
            curr_id_map=fields.numbered("currIdMap", read_long),
        )

    def to_json(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "bname": self.bname,
            "currIdMap": self.curr_id_map,
            "dirty": self.dirty,
            "epoch": self.epoch,
            "scope": self.scope,
            "topic": self.topic,
            "totalQueues": self.total_queues,
        }

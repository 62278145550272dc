# -*- test-case-name: tests.wire.bodies.test_mappings -*-
"""Static topics: which logical queue is which queue of a broker.

A logical queue is a row of items, each a physical queue of some broker for some part of
the logical offsets. The last item is the leader: it takes what is sent.

Shapes: C{docs/facts/namesrv.md} 11.1; rules: C{docs/facts/broker.md} 23.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import Final, Self

import attrs

from rocketbroker.wire.fields import Fields, read_long
from rocketbroker.wire.json_writer import Written, quoted
from rocketbroker.wire.steps import Steps, finished

#: An offset of an item that is not known yet, or an end that is open.
UNDECIDED: Final = -1

#: So many queues of a mapping are read in a step: 5 ms if their numbers are in quotes.
STEP_QUEUES: Final = 4096

#: The scope of static topics that nobody has given another.
GLOBAL_SCOPE: Final = "__global__"


@attrs.frozen(kw_only=True)
class TopicQueueMappingInfo:
    """The share of one broker in a static topic.

    @ivar curr_id_map: logical queue to the broker's own queue.
    """

    topic: str | None = None
    scope: str = GLOBAL_SCOPE
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
        return finished(cls.reading(value))

    @classmethod
    def reading(cls, value: object) -> Steps[Self]:
        """The same, L{STEP_QUEUES} queues in each step."""
        fields = Fields(value, "a mapping of queues")
        ids: dict[int, int] = {}
        rest = iter(fields.members("currIdMap").items())
        while some := dict(islice(rest, STEP_QUEUES)):
            part = Fields({"currIdMap": some}, "a mapping of queues")
            ids.update(part.numbered("currIdMap", read_long))
            if len(some) == STEP_QUEUES:
                yield
        return cls(
            topic=fields.text("topic"),
            scope=fields.text("scope") or GLOBAL_SCOPE,
            total_queues=fields.integer("totalQueues"),
            bname=fields.text("bname"),
            epoch=fields.integer("epoch", bits=64),
            dirty=fields.boolean("dirty"),
            curr_id_map=ids,
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return self._with_ids(self.curr_id_map)

    def written(self) -> dict[str, object]:
        """The same for L{rocketbroker.wire.json_writer.dumps}: its queues, of which
        there may be thousands, are text that is made once."""
        return self._with_ids(self._ids)

    @cached_property
    def _ids(self) -> Written:
        ids = sorted(self.curr_id_map.items())
        pieces = [f"{number}:{queue_id}" for number, queue_id in ids]
        return Written(["{", ",".join(pieces), "}"])

    def _with_ids(self, ids: object) -> dict[str, object]:
        return {
            "bname": self.bname,
            "currIdMap": ids,
            "dirty": self.dirty,
            "epoch": self.epoch,
            "scope": self.scope,
            "topic": self.topic,
            "totalQueues": self.total_queues,
        }


@attrs.frozen(kw_only=True)
class LogicQueueMappingItem:
    """One physical queue, as a part of a logical one.

    @ivar gen: numbers the items of a queue, rising.
    @ivar queue_id: the broker's own queue.
    @ivar bname: the broker.
    @ivar logic_offset: of its first message; L{UNDECIDED} until the item before it is
        known to have ended.
    @ivar start_offset: the physical offset of its first message.
    @ivar end_offset: the physical offset behind its last one; L{UNDECIDED} while open.
    @ivar time_of_start: see C{time_of_end}.
    @ivar time_of_end: kept, and not used, as in RocketMQ.
    """

    gen: int
    queue_id: int
    bname: str
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = UNDECIDED
    time_of_start: int = UNDECIDED
    time_of_end: int = UNDECIDED

    @property
    def is_decided(self) -> bool:
        """Whether it is known where in the logical queue it begins."""
        return self.logic_offset >= 0

    @property
    def is_end_decided(self) -> bool:
        """Whether it is known where it ends."""
        return self.end_offset > self.start_offset

    @property
    def delta(self) -> int:
        """What is added to a physical offset."""
        return self.logic_offset - self.start_offset

    @property
    def top(self) -> int:
        """The logical offset behind its last message, as far as that is decided."""
        if self.end_offset >= self.start_offset:
            return self.logic_offset + self.end_offset - self.start_offset
        return self.logic_offset

    def logical(self, offset: int) -> int:
        """The logical offset of a physical one, which may be beyond the end."""
        return self.logic_offset + max(offset - self.start_offset, 0)

    def logical_within(self, offset: int) -> int:
        """The same, but no further than the end; L{UNDECIDED} if it is not known."""
        if not self.is_decided:
            return UNDECIDED
        if self.end_offset >= self.start_offset:
            offset = min(offset, self.end_offset)
        return self.logical(offset)

    def physical(self, offset: int) -> int:
        """The physical offset of a logical one."""
        return offset - self.logic_offset + self.start_offset

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "an item of a queue")
        return cls(
            gen=fields.integer("gen"),
            queue_id=fields.integer("queueId"),
            bname=fields.text("bname") or "",
            logic_offset=fields.integer("logicOffset", bits=64),
            start_offset=fields.integer("startOffset", bits=64),
            end_offset=fields.integer("endOffset", UNDECIDED, bits=64),
            time_of_start=fields.integer("timeOfStart", UNDECIDED, bits=64),
            time_of_end=fields.integer("timeOfEnd", UNDECIDED, bits=64),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "bname": self.bname,
            "endOffset": self.end_offset,
            "gen": self.gen,
            "logicOffset": self.logic_offset,
            "queueId": self.queue_id,
            "startOffset": self.start_offset,
            "timeOfEnd": self.time_of_end,
            "timeOfStart": self.time_of_start,
        }

    @cached_property
    def text(self) -> str:
        """The JSON text; made once, as topics have thousands of items."""
        return (
            f'{{"bname":{quoted(self.bname)},"endOffset":{self.end_offset},'
            f'"gen":{self.gen},"logicOffset":{self.logic_offset},'
            f'"queueId":{self.queue_id},"startOffset":{self.start_offset},'
            f'"timeOfEnd":{self.time_of_end},"timeOfStart":{self.time_of_start}}}'
        )


@attrs.frozen(kw_only=True)
class TopicQueueMappingDetail:
    """All that one broker knows of a static topic.

    @ivar bname: this broker.
    @ivar epoch: of two details of a broker the one with the greater is the newer.
    @ivar hosted_queues: by logical queue its items, in order; queues that this broker
        does not lead any more are among them until they are cleaned.
    """

    topic: str
    bname: str
    total_queues: int = 0
    scope: str = GLOBAL_SCOPE
    epoch: int = 0
    dirty: bool = False
    hosted_queues: dict[int, tuple[LogicQueueMappingItem, ...]] = attrs.field(
        factory=dict
    )

    def leads(self, queue_id: int) -> bool:
        """Whether a logical queue's last item is this broker's."""
        items = self.hosted_queues.get(queue_id)
        return items is not None and len(items) > 0 and items[-1].bname == self.bname

    @cached_property
    def info(self) -> TopicQueueMappingInfo:
        """The share in the topic that name servers are told."""
        return TopicQueueMappingInfo(
            topic=self.topic,
            scope=self.scope,
            total_queues=self.total_queues,
            bname=self.bname,
            epoch=self.epoch,
            dirty=self.dirty,
            curr_id_map={
                number: items[-1].queue_id
                for number, items in self.hosted_queues.items()
                if self.leads(number)
            },
        )

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a mapping of queues")
        return cls(
            topic=fields.text("topic") or "",
            bname=fields.text("bname") or "",
            total_queues=fields.integer("totalQueues"),
            scope=fields.text("scope") or GLOBAL_SCOPE,
            epoch=fields.integer("epoch", bits=64),
            dirty=fields.boolean("dirty"),
            hosted_queues=fields.numbered("hostedQueues", items_of),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return self._with_queues(
            {
                number: [item.to_json() for item in items]
                for number, items in self.hosted_queues.items()
            }
        )

    def written(self) -> dict[str, object]:
        """The same for L{rocketbroker.wire.json_writer.dumps}: its queues are text that
        is made once, as there may be thousands."""
        return self._with_queues(self._hosted)

    def _with_queues(self, hosted: object) -> dict[str, object]:
        return {
            "bname": self.bname,
            "currIdMap": {},
            "dirty": self.dirty,
            "epoch": self.epoch,
            "hostedQueues": hosted,
            "scope": self.scope,
            "topic": self.topic,
            "totalQueues": self.total_queues,
        }

    @cached_property
    def _hosted(self) -> Written:
        pieces = [
            f"{number}:[{','.join([item.text for item in self.hosted_queues[number]])}]"
            for number in sorted(self.hosted_queues)
        ]
        return Written(["{", ",".join(pieces), "}"])


def items_of(value: object) -> tuple[LogicQueueMappingItem, ...]:
    """The items of a logical queue.

    @raise RemoteProtocolError: they are none.
    """
    fields = Fields({"items": value}, "a logical queue")
    return tuple(fields.beans("items", LogicQueueMappingItem.from_json))

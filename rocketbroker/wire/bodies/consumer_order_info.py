# -*- test-case-name: tests.broker.pop.test_order_info -*-
"""C{consumerOrderInfo.json}: what groups that consume in order have been given::

    {"table":{"T@G":{0:{"a":"att","cm":0,"i":30000,"l":1700000000001,"o":[100,1,5],
     "oc":{100:1},"ot":{100:1700000050000},"popTime":1700000000000}}}}

C{o} has the first offset, and how far the others are behind it.

C{docs/facts/transaction-timer-pop.md} C10; C{docs/facts/broker.md} 26.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.fields import Fields, read_long

#: How many messages a record can have, whose bits are a long in Java.
MAX_OFFSETS: Final = 63

#: A queue as a group consumes it: group, topic, queue id.
Place: TypeAlias = tuple[str, str, int]


@final
class Given:
    """What a group was given of one queue.

    @ivar offsets: their queue offsets.
    @ivar acked: a bit for each that is acknowledged.
    @ivar visible_ms: when some are given out again at another time than the others.
    @ivar counts: how often some were given out before.
    @ivar used_ms: when it was last used.
    """

    __slots__ = (
        "acked",
        "attempt_id",
        "counts",
        "invisible_ms",
        "offsets",
        "pop_ms",
        "used_ms",
        "visible_ms",
    )

    def __init__(
        self,
        attempt_id: str | None,
        pop_ms: int,
        invisible_ms: int,
        offsets: Sequence[int],
    ) -> None:
        self.attempt_id = attempt_id
        self.pop_ms = pop_ms
        self.invisible_ms = invisible_ms
        self.offsets = list(offsets)
        self.acked = 0
        self.visible_ms: dict[int, int] = {}
        self.counts: dict[int, int] = {}
        self.used_ms = pop_ms

    def free_ms(self) -> int:
        """When the group may be given more: 0 if it may already."""
        return max(
            (
                self.visible_ms.get(offset, self.pop_ms + self.invisible_ms)
                for offset in self.left()
            ),
            default=0,
        )

    def left(self) -> list[int]:
        """The offsets of what is not acknowledged."""
        return [
            offset
            for index, offset in enumerate(self.offsets)
            if not self.acked >> index & 1
        ]

    def next_offset(self) -> int:
        """The first that is not acknowledged, or behind the last."""
        return next(iter(self.left()), self.offsets[-1] + 1)

    def to_json(self) -> dict[str, object]:
        """As the file has it."""
        first = self.offsets[0]
        return {
            "a": self.attempt_id,
            "cm": self.acked,
            "i": self.invisible_ms,
            "l": self.used_ms,
            "o": [first, *(offset - first for offset in self.offsets[1:])],
            "oc": self.counts or None,
            "ot": self.visible_ms or None,
            "popTime": self.pop_ms,
        }

    @classmethod
    def from_json(cls, value: object) -> Given:
        """Read it.

        @raise RemoteProtocolError: it is none.
        """
        fields = Fields(value, "what was given in order")
        first, *rest = [read_long(each) for each in fields.items("o")] or [-1]
        if first < 0 or len(rest) >= MAX_OFFSETS:
            raise RemoteProtocolError("nothing was given")
        given = cls(
            fields.text("a"),
            fields.integer("popTime", bits=64),
            fields.integer("i", bits=64),
            [first, *(first + each for each in rest)],
        )
        given.acked = fields.integer("cm", bits=64)
        given.used_ms = fields.integer("l", given.pop_ms, bits=64)
        given.visible_ms = fields.numbered("ot", read_long)
        given.counts = fields.numbered("oc", read_long)
        return given


def read_table(value: object) -> tuple[dict[Place, Given], list[str]]:
    """The records of the file.

    @param value: its content.
    @return: and a sentence on each that makes no sense.
    """
    found: dict[Place, Given] = {}
    try:
        table = Fields(value, "the file").members("table")
    except RemoteProtocolError as error:
        return found, [f"{error}."]
    problems = []
    for key, queues in table.items():
        topic, _, group = str(key).partition("@")
        for name, record in queues.items() if isinstance(queues, dict) else ():
            try:
                found[group, topic, int(name)] = Given.from_json(record)
            except (RemoteProtocolError, ValueError) as error:
                problems.append(f"The record of {key}, queue {name}: {error}.")
    return found, problems

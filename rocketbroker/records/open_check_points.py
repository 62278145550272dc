# -*- test-case-name: tests.records.test_check_points -*-
"""The check points of POP that are open, with what is acknowledged of them.

A check point is I{open} from when it is read until its messages are over: acknowledged,
or given out again.

C{docs/facts/transaction-timer-pop.md} C12.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from rocketbroker.records.check_points import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CHECK_POINT_TAG,
    Ack,
    CheckPoint,
    Key,
)
from rocketbroker.records.properties import TAGS, find
from rocketbroker.records.record import StoredMessage

#: The name and the values of the property, as messages have them.
_TAGS: Final = TAGS.encode()
_CHECK_POINT: Final = CHECK_POINT_TAG.encode()
_ACKS: Final = ACK_TAG.encode(), BATCH_ACK_TAG.encode()


@final
class OpenCheckPoint:
    """One that is open.

    @ivar offset: its offset in the revive queue.
    @ivar acked: a bit for each message that is acknowledged, or given out again.
    """

    __slots__ = ("acked", "offset", "point")

    def __init__(self, point: CheckPoint, offset: int) -> None:
        self.point = point
        self.offset = offset
        self.acked = 0

    @property
    def is_over(self) -> bool:
        """Whether all its messages are."""
        return self.acked == (1 << self.point.count) - 1

    def left(self) -> list[int]:
        """The queue offsets of what is not over."""
        return [
            offset
            for index, offset in enumerate(self.point.offsets())
            if not self.acked >> index & 1
        ]

    def end(self, offset: int) -> None:
        """A message is over."""
        index = self.point.index_of(offset)
        if index >= 0:
            self.acked |= 1 << index


@final
class OpenCheckPoints:
    """Some of them, in the order in which they were read."""

    def __init__(self) -> None:
        self._open: dict[Key, OpenCheckPoint] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenCheckPoint]:
        return iter(self._open.values())

    def get(self, key: Key) -> OpenCheckPoint | None:
        """The one with a key; None if it is not open."""
        return self._open.get(key)

    def add(self, point: CheckPoint, offset: int) -> None:
        """One was read; one that is open already, or names no group, is left out."""
        if point.topic and point.group:
            self._open.setdefault(point.key, OpenCheckPoint(point, offset))

    def end(self, ack: Ack, own_name: str) -> bool:
        """Messages are acknowledged.

        @param own_name: of the broker whose acknowledgements name none.
        @return: whether the check point is open.
        """
        found = self._open.get(ack.key(own_name))
        if found is None:
            return False
        if ack.offsets == found.point.offsets():
            found.acked = (1 << found.point.count) - 1
        else:
            for offset in ack.offsets:
                found.end(offset)
        return True

    def close(self, found: OpenCheckPoint) -> None:
        """All its messages are over."""
        self._open.pop(found.point.key, None)


def read(message: StoredMessage) -> Ack | CheckPoint | None:
    """What a message of the revive topic is; None if it is neither.

    @raise Malformed: its body is not what its tag says.
    """
    tag = find(message.property_bytes, _TAGS)
    if tag == _CHECK_POINT:
        return CheckPoint.decode(message.body)
    return Ack.decode(message.body) if tag in _ACKS else None

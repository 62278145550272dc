# -*- test-case-name: tests.broker.pop.test_pop -*-
"""How far each group has popped in each queue, and what it has not acknowledged yet.

A group's committed offset never passes a message whose check point is not in the log,
and on the disk as far as the log is flushed: after a crash it begins there, and what
has no check point is popped again. So each queue of a group has a I{line}: its check
points in the order in which they were popped, each with the offset behind its messages.
The next pop begins behind the last of them; the first is committed, and leaves, when it
is kept, or when all its messages are acknowledged.

The counts of messages in flight live in memory only, as in RocketMQ: they begin at 0,
and acknowledgements of what was popped before are not counted.

C{docs/facts/transaction-timer-pop.md} C4, C7, C15.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias, final

from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.records.check_points import CheckPoint
from rocketbroker.store.interfaces import IStore

#: Group, topic, queue.
Place: TypeAlias = tuple[str, str, int]


@final
class HeldCheckPoint:
    """A check point whose offset is not committed yet.

    @ivar point: None if it has no messages: it only moves the offset on.
    @ivar revive_queue: where it goes.
    @ivar next_offset: behind its messages.
    @ivar born_s: when it was made, in seconds of the clock.
    @ivar is_writing: whether an append of it is under way.
    @ivar is_stored: whether it is in the log.
    @ivar end: it is on the disk once the log is flushed up to here.
    @ivar acked: which of its messages are acknowledged, a bit for each: of one that
        stays in memory.
    @ivar stays: whether acknowledgements may find it in memory.
    """

    __slots__ = (
        "acked",
        "born_s",
        "end",
        "is_stored",
        "is_writing",
        "next_offset",
        "point",
        "revive_queue",
        "stays",
    )

    def __init__(
        self,
        point: CheckPoint | None,
        revive_queue: int,
        next_offset: int,
        born_s: float,
        stays: bool = False,
    ) -> None:
        self.point = point
        self.revive_queue = revive_queue
        self.next_offset = next_offset
        self.born_s = born_s
        self.is_writing = False
        self.is_stored = False
        self.end = 0
        self.acked = 0
        self.stays = stays

    def is_over(self, flushed: int) -> bool:
        """Whether the offset may be committed.

        @param flushed: all before it is on the disk.
        """
        if self.point is None or (self.stays and self.is_acked()):
            return True
        return self.is_stored and self.end <= flushed

    def is_acked(self) -> bool:
        """Whether all its messages are acknowledged."""
        return self.point is None or self.acked == (1 << self.point.count) - 1


@final
class Line:
    """One queue of one group.

    @ivar held: its check points, the oldest first.
    @ivar is_busy: whether a thread reads for a pop of it, so that no other may begin.
    @ivar used_s: when it was last used, in seconds of the clock.
    """

    __slots__ = ("held", "is_busy", "used_s")

    def __init__(self) -> None:
        self.held: deque[HeldCheckPoint] = deque()
        self.is_busy = False
        self.used_s = 0.0


@final
class PopProgress:
    """The lines of all queues, and the messages in flight."""

    def __init__(
        self,
        store: IStore,
        offsets: OffsetTable,
        seconds: Callable[[], float],
        started_ms: int,
    ) -> None:
        """
        @param seconds: monotonic time.
        @param started_ms: the time of day now: what was popped before is not counted.
        """
        self._store = store
        self._offsets = offsets
        self._seconds = seconds
        self._started_ms = started_ms
        self._lines: dict[Place, Line] = {}
        self._in_flight: dict[tuple[str, str], dict[int, int]] = {}

    def line(self, place: Place) -> Line:
        """The line of a queue, made at its first use."""
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = Line()
        line.used_s = self._seconds()
        return line

    def next_offset(self, place: Place) -> int:
        """Where the group pops next; L{NONE} if it never popped or committed."""
        line = self._lines.get(place)
        group, topic, queue_id = place
        committed = self._offsets.query(group, topic, queue_id)
        if line is not None and line.held:
            return max(line.held[-1].next_offset, committed)
        return committed

    def held(self) -> Iterator[HeldCheckPoint]:
        """All that are not committed."""
        for line in self._lines.values():
            yield from line.held

    def size(self) -> int:
        """How many these are."""
        return sum(len(line.held) for line in self._lines.values())

    def commit(self) -> None:
        """Commit what is over, and forget lines that have not been used for long."""
        flushed = self._store.flushed_position
        for place, line in self._lines.items():
            if line.held:
                self.commit_line(place, line, flushed)

    def commit_line(self, place: Place, line: Line, flushed: int) -> None:
        """Commit what is over of one line."""
        held = line.held
        offset = NONE
        while held and held[0].is_over(flushed):
            offset = held.popleft().next_offset
        group, topic, queue_id = place
        if offset != NONE and not self._offsets.has_reset(group, topic, queue_id):
            self._offsets.commit(group, topic, queue_id, offset)

    def forget(self, place: Place) -> None:
        """The group goes on elsewhere in a queue: what it popped is not committed."""
        line = self._lines.get(place)
        if line is not None:
            line.held.clear()
        self.clear_in_flight(place)

    def forget_unused(self, seconds: float) -> None:
        """Forget the lines that were not used for so long."""
        oldest = self._seconds() - seconds
        for place, line in list(self._lines.items()):
            if not line.held and not line.is_busy and line.used_s < oldest:
                del self._lines[place]

    def forget_all(self, is_gone: Callable[[str, str], bool]) -> None:
        """Forget groups and topics that are gone.

        @param is_gone: whether a group or a topic is.
        """
        for place, line in self._lines.items():
            if is_gone(*place[:2]):
                line.held.clear()
        for key in [key for key in self._in_flight if is_gone(*key)]:
            del self._in_flight[key]

    # Messages in flight.

    def popped(self, place: Place, count: int) -> None:
        """So many more messages are in flight."""
        group, topic, queue_id = place
        queues = self._in_flight.setdefault((group, topic), {})
        queues[queue_id] = queues.get(queue_id, 0) + count

    def ended(self, place: Place, pop_ms: int, count: int) -> None:
        """So many are acknowledged or revived.

        @param pop_ms: when they were popped.
        """
        if pop_ms < self._started_ms:
            return
        group, topic, queue_id = place
        queues = self._in_flight.get((group, topic))
        if queues is not None and queue_id in queues:
            queues[queue_id] = max(0, queues[queue_id] - count)

    def clear_in_flight(self, place: Place) -> None:
        """None is in flight any more."""
        group, topic, queue_id = place
        queues = self._in_flight.get((group, topic))
        if queues is not None:
            queues.pop(queue_id, None)

    def in_flight(self, group: str, topic: str, queue_id: int) -> int:
        """How many are in flight in one queue."""
        return self._in_flight.get((group, topic), {}).get(queue_id, 0)

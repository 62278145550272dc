# -*- test-case-name: tests.broker.pop.test_pop -*-
"""The pop progress of each group in each queue, with the check points that are open.

A group's committed offset never passes a message whose check point is not in the log,
and on the disk as far as the log is flushed: after a crash it begins there, and what
has no check point is popped again. So each queue of a group has a I{line}: its check
points in the order in which they were popped, each with the offset behind its messages.
The next pop begins behind the last of them; the first is committed, and leaves, when it
is kept, or when all its messages are acknowledged.

The counts of messages in flight live in memory only, as in RocketMQ: they begin at 0,
and acknowledgements of what was popped before are not counted.

The states of a check point
===========================

A check point is on its way to one of two ends: to the log, or to the acknowledgements
of all its messages, after which it needs no log. L{PointState} says how far it is, and
L{TRANSITIONS} is the table of all that L{PointInput} may do to it. An input that a
state has no entry for is a mistake of ours::

    =======  ================================  =======  =======  =======  =========
    state    meaning                           WRITE    WRITTEN  REFUSED  ALL_ACKED
    =======  ================================  =======  =======  =======  =========
    PASSED   no messages: the group passed
             what its filter does not take
    KEPT     waits for acknowledgements        WRITING                    ACKED
             (enablePopBufferMerge)
    DUE      is to be written: it is new, or   WRITING
             the last append was refused
    WRITING  an append is under way                     STORED   DUE
    STORED   is in the log
    ACKED    needs no log: all its messages
             are acknowledged
    =======  ================================  =======  =======  =======  =========

PASSED, STORED and ACKED are the ends. The offset of the first and the last may be
committed at once, that of STORED when the log is flushed behind the record.

An append may be over before the call that begins it returns: a slave refuses it there,
and so does another broker that cannot be reached. So WRITE comes before that call.
Acknowledgements are merged in KEPT only: in all other states they have records of
their own. Those that were merged before are written with the check point.

C{docs/facts/transaction-timer-pop.md} C4, C7, C15.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Final, TypeAlias, final

from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.records.check_points import CheckPoint
from rocketbroker.store.interfaces import IStore

#: Group, topic, queue.
Place: TypeAlias = tuple[str, str, int]


class PointState(IntEnum):
    """Where a check point is; see the module."""

    PASSED = 0
    KEPT = 1
    DUE = 2
    WRITING = 3
    STORED = 4
    ACKED = 5


class PointInput(IntEnum):
    """What happens to a check point.

    WRITE: its append begins. WRITTEN, REFUSED: that is over. ALL_ACKED: the last of its
    messages is acknowledged, in memory.
    """

    WRITE = 0
    WRITTEN = 1
    REFUSED = 2
    ALL_ACKED = 3


#: The table; see the module.
TRANSITIONS: Final[Mapping[PointState, Mapping[PointInput, PointState]]] = {
    PointState.PASSED: {},
    PointState.KEPT: {
        PointInput.WRITE: PointState.WRITING,
        PointInput.ALL_ACKED: PointState.ACKED,
    },
    PointState.DUE: {PointInput.WRITE: PointState.WRITING},
    PointState.WRITING: {
        PointInput.WRITTEN: PointState.STORED,
        PointInput.REFUSED: PointState.DUE,
    },
    PointState.STORED: {},
    PointState.ACKED: {},
}

# Members of an enumeration are slow to look up.
_PASSED: Final = PointState.PASSED
_KEPT: Final = PointState.KEPT
_DUE: Final = PointState.DUE
_STORED: Final = PointState.STORED
_ACKED: Final = PointState.ACKED


@final
class HeldCheckPoint:
    """A check point whose offset is not committed yet.

    @ivar state: where it is.
    @ivar point: None if it is PASSED.
    @ivar revive_queue: where it goes.
    @ivar next_offset: behind its messages.
    @ivar born_s: when it was made, in seconds of the clock.
    @ivar end: of one that is STORED: it is on the disk once the log is flushed up to
        here.
    @ivar acked: of one that was KEPT: which of its messages are acknowledged, a bit for
        each.
    """

    __slots__ = (
        "acked",
        "born_s",
        "end",
        "next_offset",
        "point",
        "revive_queue",
        "state",
    )

    def __init__(
        self,
        point: CheckPoint | None,
        revive_queue: int,
        next_offset: int,
        born_s: float,
        stays: bool = False,
    ) -> None:
        """
        @param stays: whether it waits in memory for acknowledgements.
        """
        self.state = _PASSED if point is None else _KEPT if stays else _DUE
        self.point = point
        self.revive_queue = revive_queue
        self.next_offset = next_offset
        self.born_s = born_s
        self.end = 0
        self.acked = 0

    def on(self, given: PointInput) -> None:
        """Go to the state that C{given} leads to."""
        self.state = TRANSITIONS[self.state][given]

    def is_over(self, flushed: int) -> bool:
        """Whether the offset may be committed.

        @param flushed: all before it is on the disk.
        """
        state = self.state
        if state is _STORED:
            return self.end <= flushed
        return state is _PASSED or state is _ACKED

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

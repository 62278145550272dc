# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""The times of the wheel, how far its work is, and what of that is safe.

The write time is the time of day, in whole slots: slots before it are over. The read
time is the next slot to be delivered, never ahead of the write time. Where the clock is
set back, slots that were delivered are emptied, so that new messages can wait in them;
RocketMQ delivers those early.

What is delivered is in the commit log before it is on the disk. A checkpoint must not
say that it was delivered before its copy is safe, else a power failure would lose it,
nor that it was entered before it is safe itself.
So each state is kept until the log is flushed behind the copies that were made up to
then; the newest of those is what a checkpoint says.

A start goes over again what the run before it did after its checkpoint, and recognises
it by what stands behind the places that the checkpoint names. Until that is done, the
checkpoint goes on to name those places: another crash may come before.

C{docs/facts/transaction-timer-pop.md} B4, B8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, final

from rocketbroker.store.interfaces import IStore
from rocketbroker.store.timerwheel.timers import Timers


class State(NamedTuple):
    """How far the timers were at a moment.

    @ivar read_ms: the next slot to be delivered.
    @ivar queue_offset: the next message of the timer topic to be entered.
    @ivar log_position: where the timer log ended.
    @ivar delivered_from: where the commit log ended: the copies of what is due from
        C{read_ms} on are behind it.
    """

    read_ms: int
    queue_offset: int
    log_position: int
    delivered_from: int


@final
class WheelClock:
    """The read and write times of the wheel.

    @ivar timers: wheel and timer log.
    @ivar read_ms: the next slot to be delivered.
    @ivar write_ms: slots before it are over.
    @ivar queue_offset: the next message of the timer topic to be entered.
    @ivar end: all that was entered, and the copies of all that was delivered, are
        before it in the commit log.
    @ivar has_changed: whether more than the time has, since a checkpoint was made.
    @ivar kept: the newest state that may be written down.
    """

    def __init__(
        self, timers: Timers, store: IStore, wall_ms: Callable[[], int]
    ) -> None:
        self.timers = timers
        self.read_ms = 0
        self.write_ms = 0
        self.queue_offset = 0
        self.end = 0
        self.has_changed = False
        self.kept = State(0, 0, 0, 0)
        self._catch_up: tuple[int, int] | None = None
        self._store = store
        self._wall_ms = wall_ms
        self._slot_from = -1
        self._waiting: deque[tuple[int, State]] = deque()

    def begin(self, found: State, queue_end: int) -> None:
        """Go on from a checkpoint; all that was delivered before is safe.

        @param queue_end: where the timer topic ends: no run before has entered more.
        """
        self.read_ms = found.read_ms
        self.write_ms = max(self.floor(self._wall_ms()), found.read_ms)
        self.queue_offset = found.queue_offset
        self._waiting.clear()
        self.kept = found
        self._catch_up = self.write_ms, queue_end

    def floor(self, ms: int) -> int:
        """The time of the slot of a time."""
        return ms - ms % self.timers.precision_ms

    def move_write_time(self) -> int:
        """The write time now."""
        now_ms = self.floor(self._wall_ms())
        if now_ms < self.write_ms and self._slot_from < 0:
            # The clock was set back: times that have passed come again.
            self.timers.wheel.clear(now_ms, self.read_ms, passed=True)
            self.read_ms = min(self.read_ms, now_ms)
            self.write_ms = now_ms
            self.note()
        self.write_ms = max(self.write_ms, now_ms)
        return self.write_ms

    @property
    def open_ms(self) -> int:
        """The first slot that messages may still be entered into: none of it is
        delivered, though it may be over."""
        is_begun = self._slot_from >= 0
        return self.read_ms + (self.timers.precision_ms if is_begun else 0)

    def begin_slot(self) -> None:
        """The slot of the read time is being delivered."""
        self._slot_from = self._store.published_position

    def end_slot(self) -> None:
        """It is not any more."""
        self._slot_from = -1

    @property
    def is_in_slot(self) -> bool:
        """Whether a slot is being delivered."""
        return self._slot_from >= 0

    def _state(self) -> State:
        position = self._slot_from
        if position < 0:
            position = self._store.published_position
        return State(self.read_ms, self.queue_offset, self.timers.log.end, position)

    def note_time(self) -> None:
        """Nothing has changed but the time."""
        waiting = self._waiting
        if waiting and waiting[-1][0] == self.end:
            waiting.pop()
        waiting.append((self.end, self._state()))

    def note(self) -> None:
        """Something has changed that a checkpoint says."""
        self.has_changed = True
        self.note_time()

    @property
    def is_behind(self) -> bool:
        """Whether a state waits for the commit log's flush."""
        return bool(self._waiting)

    def keep(self, flushed: int) -> State:
        """The newest state whose copies are all before C{flushed} in the log."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= flushed:
            state = waiting.popleft()[1]
            kept = self.kept
            read_ms, queue_offset, *_ = state
            if self._catch_up is not None:
                until_ms, until_offset = self._catch_up
                if read_ms >= until_ms and queue_offset >= until_offset:
                    self._catch_up = None
                else:
                    state = kept._replace(
                        read_ms=min(kept.read_ms, read_ms),
                        queue_offset=min(kept.queue_offset, queue_offset),
                    )
            self.kept = state
        return self.kept

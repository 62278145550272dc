# -*- test-case-name: tests.broker.schedule.test_clock_jumps -*-
"""When a message is due though somebody sets the clock.

A queue of delayed messages says at which time of day each of them is due: store time
and delay. Were that all, a clock that is set an hour ahead would deliver at once what
has to wait another hour, and one that is set back would let everything wait an hour
longer. (The reference does the first, and delivers at once what would have to wait
longer than its level does.)

So times are I{steady} here: the time of day less all jumps that it has made since the
start. A jump is what the time of day has moved more, or less, than the reactor's clock
since the last look, if that is more than L{JUMP_MS}; less is how clocks are kept right,
and followed. A message that was stored before a jump is due by the clock that was right
then. Which ones those are is known but for the tenth of a second between two looks; of
a message from there the store time tells, which is near the time before the jump or
near that behind it.

From before the start no jump is known. What is due later than it could be had it been
stored at the start, is due as if it had.

A machine that sleeps stops the reactor's clock as well, so that its waking is a jump,
and what waits waits on: rather late than early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

#: A time of day that moves so much at once has been set. Clocks that are kept right by
#: slewing move by 50 us in the tenth of a second between two looks.
JUMP_MS: Final = 500


@final
class SteadyTime:
    """The time of day, less its jumps.

    @ivar jumped_ms: the sum of all jumps since the start.
    @ivar jumps: how many there were.
    """

    def __init__(
        self, seconds: Callable[[], float], wall_ms: Callable[[], int]
    ) -> None:
        """
        @param seconds: the reactor's clock, which nobody sets.
        """
        self.jumped_ms = 0
        self.jumps = 0
        self._seconds = seconds
        self._wall_ms = wall_ms
        self._last_seconds = seconds()
        self._last_ms = wall_ms()

    def look(self) -> int:
        """Compare the clocks.

        @return: by how many ms the time of day has jumped since the last look.
        """
        seconds, ms = self._seconds(), self._wall_ms()
        passed = int((seconds - self._last_seconds) * 1000)
        jump = ms - self._last_ms - passed
        self._last_seconds, self._last_ms = seconds, ms
        if abs(jump) <= JUMP_MS:
            return 0
        self.jumps += 1
        self.jumped_ms += jump
        return jump

    def now_ms(self) -> int:
        """The steady time, as of the last look."""
        return self._last_ms - self.jumped_ms


class _Jump(NamedTuple):
    """A jump as the messages of one level know it.

    Those before C{low} were stored before it, those from C{high} on behind it.
    """

    low: int
    high: int
    before_ms: int
    after_ms: int
    jumped_before_ms: int


@final
class DueTimes:
    """When the messages of one level are due."""

    def __init__(self, delay_ms: int, steady: SteadyTime, end: int) -> None:
        """
        @param end: the next offset of its queue.
        """
        self._delay_ms = delay_ms
        self._steady = steady
        self._first_end = end
        self._latest_ms = steady.now_ms() + delay_ms
        self._end = end
        # Replaced, never changed: a thread may look through it.
        self._jumps: tuple[_Jump, ...] = ()

    def look(self, jump: int, offset: int, end: int) -> None:
        """Take note of a jump, if there was one, and of how far the queue is.

        @param jump: what L{SteadyTime.look} has returned.
        @param offset: the next message that is to be delivered.
        @param end: the next offset of the queue.
        """
        if jump:
            steady = self._steady
            before_ms = steady.now_ms() + steady.jumped_ms - jump
            waiting = [each for each in self._jumps if each.high > offset]
            waiting.append(
                _Jump(
                    self._end,
                    end,
                    before_ms,
                    before_ms + jump,
                    steady.jumped_ms - jump,
                )
            )
            self._jumps = tuple(waiting)
        self._end = end

    def due_ms(self, offset: int, time_ms: int) -> int:
        """The steady time at which a message is due.

        @param time_ms: the time of day that its entry says.
        """
        due_ms = time_ms - self._jumped_ms(offset, time_ms - self._delay_ms)
        return min(due_ms, self._latest_ms) if offset < self._first_end else due_ms

    def _jumped_ms(self, offset: int, store_ms: int) -> int:
        """By how much the clock had jumped when a message was stored."""
        for jump in self._jumps:
            if offset < jump.low:
                return jump.jumped_before_ms
            if offset < jump.high:
                before = abs(store_ms - jump.before_ms)
                if before <= abs(store_ms - jump.after_ms):
                    return jump.jumped_before_ms
        return self._steady.jumped_ms

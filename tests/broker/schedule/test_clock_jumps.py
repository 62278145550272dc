"""Tests of L{rocketbroker.broker.schedule.clock_jumps}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.schedule.clock_jumps import JUMP_MS, DueTimes, SteadyTime

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
DELAY_MS = 10_000


class Clocks(SynchronousTestCase):
    """Two clocks, of which one is set."""

    def setUp(self) -> None:
        """Both run."""
        self.seconds = 5000.0
        self.wall_ms = START_MS
        self.steady = SteadyTime(lambda: self.seconds, lambda: self.wall_ms)

    def pass_by(self, ms: int, jump_ms: int = 0) -> int:
        """Let time pass, set the clock, and look."""
        self.seconds += ms / 1000
        self.wall_ms += ms + jump_ms
        return self.steady.look()


class SteadyTests(Clocks):
    """The time without jumps."""

    def test_runs(self) -> None:
        """It is the time of day as long as nobody sets the clock."""
        for _ in range(100):
            self.assertEqual(self.pass_by(99), 0)
        self.assertEqual(self.steady.now_ms(), START_MS + 9900)

    def test_set(self) -> None:
        """It goes on as before when somebody does, ahead or back."""
        self.assertEqual(self.pass_by(100, HOUR_MS), HOUR_MS)
        self.assertEqual(self.steady.now_ms(), START_MS + 100)
        self.assertEqual(self.pass_by(100), 0)
        self.assertEqual(self.pass_by(100, -2 * HOUR_MS), -2 * HOUR_MS)
        self.assertEqual(self.steady.now_ms(), START_MS + 300)
        self.assertEqual(self.steady.jumped_ms, -HOUR_MS)
        self.assertEqual(self.steady.jumps, 2)

    def test_slewed(self) -> None:
        """What is kept right by little and little is followed, however far it goes."""
        for _ in range(100):
            self.assertEqual(self.pass_by(1000, JUMP_MS), 0)
        self.assertEqual(self.steady.now_ms(), self.wall_ms)
        self.assertNotEqual(self.pass_by(1000, JUMP_MS + 1), 0)


class DueTests(Clocks):
    """When messages of one level are due."""

    def setUp(self) -> None:
        """Three messages wait when the broker starts."""
        super().setUp()
        self.times = DueTimes(DELAY_MS, self.steady, 3)

    def look(self, end: int, jump_ms: int = 0, offset: int = 0) -> int:
        """A tenth of a second later; the steady time."""
        self.times.look(self.pass_by(100, jump_ms), offset, end)
        return self.steady.now_ms()

    def due(self, offset: int, stored_ms: int) -> int:
        """When a message is due that was stored at that time of day."""
        return self.times.due_ms(offset, stored_ms + DELAY_MS)

    def test_undisturbed(self) -> None:
        """Store time and delay."""
        self.look(4)
        self.assertEqual(self.due(0, START_MS - 50), START_MS - 50 + DELAY_MS)
        self.assertEqual(self.due(3, START_MS + 50), START_MS + 50 + DELAY_MS)

    def test_ahead(self) -> None:
        """What was stored before the clock was set ahead waits its whole time, what
        was stored behind it does too."""
        before = self.look(4)
        after = self.look(4, HOUR_MS)
        self.look(5)
        self.assertEqual(self.due(0, START_MS), START_MS + DELAY_MS)
        self.assertEqual(self.due(3, before), before + DELAY_MS)
        self.assertEqual(self.due(4, after + HOUR_MS), after + DELAY_MS)

    def test_back(self) -> None:
        """So it is when it is set back, though store times then come twice."""
        before = self.look(4)
        after = self.look(4, -HOUR_MS)
        self.look(5)
        self.assertEqual(self.due(3, before), before + DELAY_MS)
        self.assertEqual(self.due(4, after - HOUR_MS), after + DELAY_MS)
        self.assertEqual(self.due(4, before), before + HOUR_MS + DELAY_MS)

    def test_between(self) -> None:
        """Of those that were stored in the moment of the jump the store time tells."""
        for jump in (HOUR_MS, -HOUR_MS):
            self.setUp()
            before = self.look(4)
            self.look(6, jump)
            self.assertEqual(self.due(4, before + 50), before + 50 + DELAY_MS)
            self.assertEqual(self.due(5, before + 60 + jump), before + 60 + DELAY_MS)

    def test_several(self) -> None:
        """Each jump counts for what was stored before it; those that nothing waits for
        are forgotten."""
        self.look(4)
        first = self.look(4, HOUR_MS)
        self.look(5)
        self.look(5, -3 * HOUR_MS)
        third = self.look(6)
        self.assertEqual(self.due(3, START_MS + 100), START_MS + 100 + DELAY_MS)
        self.assertEqual(self.due(4, first + HOUR_MS), first + DELAY_MS)
        self.assertEqual(self.due(5, third - 2 * HOUR_MS), third + DELAY_MS)
        self.look(6, HOUR_MS, offset=6)
        self.assertEqual(len(self.times._jumps), 1)

    def test_beforeTheStart(self) -> None:
        """What an earlier broker has stored by a clock that was ahead is due as if it
        had been stored at the start."""
        self.assertEqual(self.due(2, START_MS + HOUR_MS), START_MS + DELAY_MS)
        self.assertEqual(self.due(3, START_MS + 70), START_MS + 70 + DELAY_MS)

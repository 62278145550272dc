"""Work that is done in periods, and that no error ends."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.periodic import PeriodicCall


class PeriodicTests(SynchronousTestCase):
    """Work after 5 seconds, then every 10."""

    def setUp(self) -> None:
        """Work that is noted."""
        self.clock = Clock()
        self.done: list[float] = []
        self.broken = False
        self.result: Deferred[None] | None = None
        self.call = self.every(self.work)

    def every(self, work: Callable[[], object]) -> PeriodicCall:
        """Work after 5 seconds, then every 10."""
        call = PeriodicCall(self.clock, "test", work)
        call.start(10, 5)
        self.addCleanup(call.stop)
        return call

    def work(self) -> Deferred[None] | None:
        """Note the time."""
        self.done.append(self.clock.seconds())
        assert not self.broken
        return self.result

    def pass_by(self, seconds: int) -> None:
        """Let time pass."""
        self.clock.pump([1] * seconds)

    def test_periods(self) -> None:
        """The first time is another than the period."""
        self.pass_by(26)
        self.assertEqual((self.done, self.call.failures), ([5, 15, 25], 0))
        self.assertEqual((self.call.runs, self.call.begun_at), (3, 25))

    def test_failure(self) -> None:
        """Work that fails is logged, counted, and done again."""
        self.broken = True
        self.pass_by(16)
        self.assertEqual((self.done, self.call.failures), ([5, 15], 2))
        self.assertEqual(len(self.flushLoggedErrors(AssertionError)), 2)

    def test_deferredFailure(self) -> None:
        """Work that fails later is logged and done again, too."""
        self.result = Deferred()
        self.pass_by(6)
        self.result.errback(ValueError())
        self.result = None
        self.pass_by(10)
        self.assertEqual((self.done, self.call.failures), ([5, 15], 1))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_longest(self) -> None:
        """How long the longest call took is known."""

        def slow() -> None:
            self.clock.rightNow += 0.25

        call = self.every(slow)
        self.pass_by(6)
        self.assertEqual(call.longest.value(self.clock.seconds()), 0.25)

    def test_change(self) -> None:
        """With another period the next time is that long after the change; the same
        period changes nothing."""
        self.pass_by(8)
        self.call.change(4)
        self.pass_by(6)
        self.call.change(4)
        self.pass_by(3)
        self.assertEqual(self.done, [5, 12, 16])

    def test_changeBefore(self) -> None:
        """A change leaves the first time as it is, and begins nothing."""
        self.call.change(2)
        self.pass_by(8)
        self.assertEqual(self.done, [5, 7])
        self.call.stop()
        self.call.change(3)
        self.pass_by(8)
        self.assertEqual((self.done, self.call.running), ([5, 7], False))

    def test_changeMeanwhile(self) -> None:
        """A change while the work goes on counts when it has ended."""
        first = self.result = Deferred()
        self.pass_by(6)
        self.call.change(3)
        self.pass_by(6)
        self.assertEqual(self.done, [5])
        self.result = None
        first.callback(None)
        self.pass_by(6)
        self.assertEqual(self.done, [5, 14, 17])

    def test_noOverlap(self) -> None:
        """Work that has not ended is not begun again."""
        first = self.result = Deferred()
        self.pass_by(27)
        self.assertEqual(self.done, [5])
        self.assertTrue(self.call.is_under_way)
        self.result = None
        first.callback(None)
        self.assertEqual((self.call.is_under_way, self.call.last_seconds), (False, 22))
        self.pass_by(9)
        self.assertEqual(self.done, [5, 35])

    def test_stop(self) -> None:
        """Nothing is left to be done, before the first time and after it."""
        self.assertTrue(self.call.running)
        self.call.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.call = self.every(self.work)
        self.pass_by(6)
        self.call.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual((self.done, self.call.running), ([5], False))

    def test_again(self) -> None:
        """After a stop it may begin again; a call of before that has not ended is
        waited for, and the period counts from the new begin."""
        first = self.result = Deferred()
        self.pass_by(6)
        self.call.stop()
        self.call.start(10, 5)
        self.pass_by(6)
        self.assertEqual(self.done, [5])
        self.result = None
        first.callback(None)
        self.pass_by(30)
        self.assertEqual((self.done, self.call.runs), ([5, 21, 31, 41], 4))

    def test_start(self) -> None:
        """A call begins at once, or after one period."""
        now = PeriodicCall(self.clock, "now", self.work)
        now.start(3, 0)
        self.assertEqual(self.done, [0])
        later = PeriodicCall(self.clock, "later", self.work)
        later.start(4)
        self.pass_by(4)
        self.assertEqual(self.done, [0, 3, 4])
        now.stop()
        later.stop()
        self.call.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

"""What a broker does again and again."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.regular import RegularWork


class RegularWorkTests(SynchronousTestCase):
    """Work that is done in periods."""

    def setUp(self) -> None:
        """Work after 5 seconds, then every 10."""
        self.clock = Clock()
        self.regular = RegularWork(self.clock)
        self.done: list[float] = []
        self.broken = False
        self.regular.every(5, 10, self.work)

    def work(self) -> None:
        """Say when."""
        self.done.append(self.clock.seconds())
        assert not self.broken

    def pass_by(self, seconds: int) -> None:
        """Let time pass."""
        self.clock.pump([1] * seconds)

    def test_periods(self) -> None:
        """The first time is another than the period."""
        self.pass_by(26)
        self.assertEqual(self.done, [5, 15, 25])

    def test_failure(self) -> None:
        """What fails is logged, and done again."""
        self.broken = True
        self.pass_by(16)
        self.assertEqual(self.done, [5, 15])
        self.assertEqual(len(self.flushLoggedErrors(AssertionError)), 2)

    def test_stop(self) -> None:
        """Nothing is left to be done, before the first time and after it."""
        self.regular.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.regular.every(5, 10, self.work)
        self.pass_by(6)
        self.regular.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.done, [5])

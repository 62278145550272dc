"""Tests of L{rocketbroker.replication.stop_watch}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.replication.stop_watch import StopWatch


class StopWatchTests(SynchronousTestCase):
    """The time between looks."""

    def test_laps(self) -> None:
        """Each lap is measured for itself."""
        clock = Clock()
        watch = StopWatch(clock.seconds)
        clock.advance(1)
        watch.start()
        clock.advance(0.5)
        self.assertEqual(watch.lap(), 0.5)
        clock.advance(1)
        self.assertEqual(watch.lap(), 1)

    def test_stopped(self) -> None:
        """Of a long time without a look two seconds count."""
        clock = Clock()
        watch = StopWatch(clock.seconds)
        watch.start()
        clock.advance(60)
        self.assertEqual(watch.lap(), 2)

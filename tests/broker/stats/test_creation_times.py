"""Tests of the times of requests that make topics and groups."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.stats.creation_times import CREATION_BOUNDS, CreationTimes


class CreationTimesTests(SynchronousTestCase):
    """Requests, one after the other."""

    def setUp(self) -> None:
        """No request yet."""
        self.clock = Clock()
        self.times = CreationTimes(self.clock.seconds)

    def test_timeFallsIntoClassWhoseBoundItReaches(self) -> None:
        """Bounds belong to their class; what is longer than all has one of its own."""
        for ms in (0, 10, 11, 5000, 5001):
            with self.times.of_groups():
                self.clock.advance(ms / 1000)
        self.assertEqual(len(CREATION_BOUNDS), 5)
        self.assertEqual(self.times.groups[True].counts, [2, 1, 0, 0, 1, 1])
        self.assertEqual(self.times.groups[True].total_ms, 10022)

    def test_whatRaisesHasFailed(self) -> None:
        """It counts, and what it raised goes on."""
        with self.assertRaises(KeyError), self.times.of_topics() as creation:
            creation.is_system = True
            self.clock.advance(0.05)
            raise KeyError
        with self.assertRaises(KeyError), self.times.of_groups():
            raise KeyError
        self.assertEqual(list(self.times.topics), [(False, True)])
        self.assertEqual(self.times.topics[False, True].counts, [0, 1, 0, 0, 0, 0])
        self.assertEqual(list(self.times.groups), [False])

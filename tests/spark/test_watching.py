"""Asking brokers seldom for the ends of queues."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from rocketbroker.spark.watching import Watch
from tests.sources.origins import MemoryOrigin

ZERO, ONE, OTHER = Queue("T", "a", 0), Queue("T", "a", 1), Queue("T", "b", 0)


class WatchTests(SynchronousTestCase):
    """L{Watch}."""

    def setUp(self) -> None:
        """Two queues of a broker."""
        self.clock = Clock()
        self.origin = MemoryOrigin({ZERO: 5, ONE: 0})
        self.watch = self.watching(ReadOptions(topics=("T",)))

    def watching(self, options: ReadOptions) -> Watch:
        """A watch that has looked once."""
        watch = Watch(self.clock.seconds, self.clock.advance, self.origin, options)
        watch.look()
        return watch

    def test_bounds(self) -> None:
        """All queues are known after the first look."""
        self.assertEqual(self.watch.bounds, {ZERO: (0, 5), ONE: (0, 0)})

    def test_seldom(self) -> None:
        """While nothing comes, brokers get at most 2 requests a second."""
        for _ in range(100):
            self.watch.wait()
        self.assertLess(self.origin.asked / self.clock.seconds(), 2)

    def test_seldomForMany(self) -> None:
        """Also where there are many brokers."""
        for number in range(20):
            self.origin.put(Queue("T", f"broker-{number}", 0), 0)
        watch = self.watching(ReadOptions(topics=("T",)))
        watch.wait()
        before, asked = self.clock.seconds(), self.origin.asked
        for _ in range(10):
            watch.wait()
        spent = self.clock.seconds() - before
        self.assertLess((self.origin.asked - asked) / spent, 2)

    def test_often(self) -> None:
        """Spark's many questions in between cost nothing; news brings the next soon."""
        for _ in range(87):
            self.watch.look()
        self.assertEqual(self.origin.asked, 1)
        self.origin.ends[ZERO] = 6
        self.watch.wait()
        self.assertEqual(self.watch.bounds[ZERO], (0, 6))
        self.assertLess(self.clock.seconds(), 0.2)

    def test_newQueues(self) -> None:
        """New queues are found when it is time to look for them."""
        self.origin.put(OTHER, 3)
        self.clock.advance(29)
        self.watch.look()
        self.assertNotIn(OTHER, self.watch.bounds)
        self.clock.advance(2)
        self.watch.look()
        self.assertEqual(self.watch.bounds[OTHER], (0, 3))

    def test_newTopics(self) -> None:
        """So are new topics, with a pattern."""
        watch = self.watching(ReadOptions(pattern="T.*"))
        new = Queue("T-2", "a", 0)
        self.origin.put(new, 1)
        watch.look_at_once()
        self.assertEqual(watch.bounds[new], (0, 1))

    def test_goneQueue(self) -> None:
        """A queue that the topic has no more is asked about, if its broker has it."""
        self.origin.hidden.add(ONE)
        watch = self.watching(ReadOptions(topics=("T",)))
        self.assertNotIn(ONE, watch.bounds)
        watch.include([ONE])
        watch.look()
        self.assertEqual(watch.bounds[ONE], (0, 0))

    def test_goneBroker(self) -> None:
        """What was known of a broker that is gone stays."""
        self.origin.put(OTHER, 3)
        self.watch.look_at_once()
        self.origin.hidden.add(OTHER)
        self.origin.ends[OTHER] = 9
        self.watch.look_at_once()
        self.assertEqual(self.watch.bounds[OTHER], (0, 3))

"""Reads that begin where an export ended."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.option_values import ExportEnds
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.resolving import resolve
from rocketbroker.sources.source import DataLoss
from tests.export.worlds import ONE, ZERO, World
from tests.sources.messages import START_MS, stored


class StartingTests(SynchronousTestCase):
    """C{startingOffsets=export:DIR}."""

    def setUp(self) -> None:
        """An export of two queues, and new messages."""
        self.world = World(self.mktemp(), {ZERO: 10, ONE: 5})
        self.assertEqual(self.world.run(), 0)
        self.new = Queue("T", "broker-a", 2)
        self.world.origin.ends |= {ZERO: 12, self.new: 4}
        self.world.origin.first[self.new] = 0

    def pairs(self, root: str = "", **words: Any) -> list[tuple[int, int]]:
        """Start and end of each queue."""
        start = ExportEnds(root or self.world.root)
        options = ReadOptions(topics=("T",), starting=start, **words)
        found = resolve(self.world.origin, options, START_MS)
        return [(each.start, each.until) for each in found]

    def test_goesOn(self) -> None:
        """Queues go on where they were exported up to; new ones begin."""
        self.assertEqual(self.pairs(), [(10, 12), (5, 5), (0, 4)])
        late = self.pairs(missing_queues="latest")
        self.assertEqual(late, [(10, 12), (5, 5), (4, 4)])

    def test_nothing(self) -> None:
        """A directory without an export, or with one of others, is refused."""
        error = self.assertRaises(ConfigurationError, self.pairs, self.mktemp())
        self.assertIn("holds no export", str(error))
        for queue in (ZERO, ONE):
            del self.world.origin.ends[queue]
        error = self.assertRaises(ConfigurationError, self.pairs)
        self.assertIn("but queue 0 of T on broker-a, queue 1 of T", str(error))

    def test_recreated(self) -> None:
        """Another message at the last offset is found, unless nobody asks."""
        self.world.origin.records[9] = stored(9, store_ms=START_MS, topic="T")
        error = self.assertRaises(DataLoss, self.pairs)
        self.assertIn("TOPIC_RECREATED: message 9 of queue 0", str(error))
        found = self.pairs(detect_reset=False)
        self.assertEqual(found, [(10, 12), (5, 5), (0, 4)])

    def test_gone(self) -> None:
        """What was deleted since, or a queue that is shorter now, is data loss."""
        self.world.origin.first[ZERO] = 11
        error = self.assertRaises(DataLoss, self.pairs)
        self.assertIn("begins at 11: the messages from 10 on are gone", str(error))
        self.world.origin.first[ZERO] = 0
        self.world.origin.ends[ZERO] = 9
        error = self.assertRaises(DataLoss, self.pairs)
        self.assertIn("ends at 9, before 10", str(error))

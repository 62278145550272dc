"""Ranges made smaller by conditions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.sources.narrowing import Narrowing, narrow
from rocketbroker.sources.ranges import Queue, Range
from tests.sources.messages import START_MS
from tests.sources.origins import MemoryOrigin

ZERO, ONE, OTHER = Queue("T", "b", 0), Queue("T", "b", 1), Queue("U", "c", 0)


class NarrowingTests(SynchronousTestCase):
    """L{narrow}."""

    def pairs(self, narrowing: Narrowing) -> list[tuple[Queue, int, int]]:
        """What is left of three queues of 10, 20 and 30 messages."""
        ends = {ZERO: 10, ONE: 20, OTHER: 30}
        ranges = [Range(queue, 2, end) for queue, end in ends.items()]
        found = narrow(MemoryOrigin(ends), ranges, narrowing)
        return [(each.queue, each.start, each.until) for each in found]

    def test_nothing(self) -> None:
        """Without conditions nothing changes."""
        found = self.pairs(Narrowing())
        self.assertEqual(found, [(ZERO, 2, 10), (ONE, 2, 20), (OTHER, 2, 30)])

    def test_names(self) -> None:
        """Queues that are not wanted are left out."""
        for narrowing, queues in (
            (Narrowing(topics=frozenset({"T", "V"})), [ZERO, ONE]),
            (Narrowing(brokers=frozenset({"c"})), [OTHER]),
            (Narrowing(queue_ids=frozenset({0})), [ZERO, OTHER]),
            (Narrowing(queue_ids=frozenset({0}), topics=frozenset({"T"})), [ZERO]),
        ):
            self.assertEqual([queue for queue, _, _ in self.pairs(narrowing)], queues)

    def test_offsets(self) -> None:
        """Offsets are cut at both ends; what is empty is left out."""
        found = self.pairs(Narrowing(start=12, until=25))
        self.assertEqual(found, [(ONE, 12, 20), (OTHER, 12, 25)])
        found = self.pairs(Narrowing(start=0, until=3))
        self.assertEqual(found, [(ZERO, 2, 3), (ONE, 2, 3), (OTHER, 2, 3)])

    def test_times(self) -> None:
        """Times are searched for; message n was stored n + 1 ms after the start."""
        found = self.pairs(Narrowing(from_ms=START_MS + 15, until_ms=START_MS + 18))
        self.assertEqual(found, [(ONE, 14, 17), (OTHER, 14, 17)])

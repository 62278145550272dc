"""Which member of a group consumes which queue."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.routing.allocation import STRATEGIES, allocate


class StrategyTests(SynchronousTestCase):
    """L{allocate}."""

    def test_everyQueueOnce(self) -> None:
        """Whatever the numbers, each queue has one member, and shares differ by one."""
        for strategy in STRATEGIES:
            for queues in range(8):
                for count in range(1, 10):
                    members = [f"c{at}" for at in range(count)]
                    found = [
                        allocate(strategy, range(queues), members, member) or []
                        for member in members
                    ]
                    flat = sorted(queue for part in found for queue in part)
                    self.assertEqual(flat, list(range(queues)))
                    sizes = [len(part) for part in found]
                    self.assertLessEqual(max(sizes) - min(sizes), 1)

    def test_pieces(self) -> None:
        """AVG gives neighbouring queues, AVG_BY_CIRCLE every second one of two."""
        members = ["a", "b"]
        self.assertEqual(allocate("AVG", range(5), members, "a"), [0, 1, 2])
        self.assertEqual(allocate("AVG", range(5), members, "b"), [3, 4])
        self.assertEqual(allocate("AVG_BY_CIRCLE", range(5), members, "b"), [1, 3])

    def test_stranger(self) -> None:
        """A client that is no member gets no queue."""
        self.assertEqual(allocate("AVG", range(5), ["a"], "b"), [])

    def test_unknown(self) -> None:
        """An unknown strategy decides nothing."""
        self.assertIsNone(allocate("NEAR_ROOM", range(5), ["a"], "a"))

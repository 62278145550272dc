"""When garbage is collected."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.garbage import GROWTH_BLOCKS, LOOK_SECONDS, NEVER, YOUNG, Garbage


class Recorded:
    """A collector that notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def disable(self) -> None:
        """Noted."""
        self.calls.append("disable")

    def enable(self) -> None:
        """Noted."""
        self.calls.append("enable")

    def freeze(self) -> None:
        """Noted."""
        self.calls.append("freeze")

    def collect(self) -> int:
        """Noted; finds something."""
        self.calls.append("collect")
        return 7

    def set_threshold(self, young: int, middle: int, full: int, /) -> None:
        """Noted."""
        self.calls.append(f"threshold {young} {middle} {full}")


class GarbageTests(SynchronousTestCase):
    """A process of which the test says how large it is."""

    def setUp(self) -> None:
        """It has started."""
        self.clock = Clock()
        self.collector = Recorded()
        self.blocks = 200_000
        self.garbage = Garbage(self.clock, self.collector, lambda: self.blocks)
        self.garbage.starting()
        self.garbage.started()
        self.start, self.collector.calls = self.collector.calls, []

    def test_start(self) -> None:
        """Nothing is collected while it starts, nor what is there then."""
        self.assertEqual(
            self.start, ["disable", "freeze", f"threshold {YOUNG} 10 {NEVER}", "enable"]
        )

    def test_steady(self) -> None:
        """While the process does not grow, nothing is collected in full."""
        self.blocks += GROWTH_BLOCKS - 1
        self.clock.pump([LOOK_SECONDS] * 100)
        self.assertEqual(self.collector.calls, [])

    def test_growth(self) -> None:
        """Once it has grown one collection runs, and the next after as much more."""
        with capturedLogs() as events:
            self.blocks = 10 * GROWTH_BLOCKS
            self.clock.pump([LOOK_SECONDS] * 5)
        self.assertEqual(self.collector.calls, ["collect"])
        self.assertEqual(
            [formatEvent(event) for event in events],
            ["Memory has grown; a full collection freed 7 objects in 0 ms."],
        )
        self.blocks = 15 * GROWTH_BLOCKS - 1
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.collector.calls, ["collect"])
        self.blocks += 1
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.collector.calls, ["collect"] * 2)

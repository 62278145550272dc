"""How many a second."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.stats.rates import SAMPLE_SECONDS, Rates


class RatesTests(SynchronousTestCase):
    """Rates over 10, 60 and 600 seconds."""

    def setUp(self) -> None:
        """Two totals, one of which nothing happens to."""
        self.clock = Clock()
        self.count = 0
        self.rates = Rates(
            self.clock.seconds, {"one": lambda: self.count, "none": lambda: 0}
        )

    def live(self, seconds: int, messages: int) -> None:
        """Let so much time pass, with so many messages every second."""
        for _ in range(seconds // SAMPLE_SECONDS):
            self.clock.advance(SAMPLE_SECONDS)
            self.count += messages
            self.rates.sample()

    def test_young(self) -> None:
        """A window is empty until it was lived through; tools cut at the blanks."""
        self.assertEqual(self.rates.text("one"), "  ")
        self.live(9, 2)
        self.assertEqual(self.rates.text("one"), "  ")
        self.live(1, 2)
        self.assertEqual(self.rates.text("one"), "2.00  ")
        self.live(50, 2)
        self.assertEqual(self.rates.text("one"), "2.00 2.00 ")
        self.assertEqual(self.rates.text("none"), "0.00 0.00 ")

    def test_windows(self) -> None:
        """Each window has the rate of its own time, and older times are forgotten."""
        self.live(600, 1)
        self.live(50, 0)
        self.live(10, 7)
        self.assertEqual(self.rates.text("one"), "7.00 1.17 1.02")
        self.live(700, 0)
        self.assertEqual(self.rates.text("one"), "0.00 0.00 0.00")

    def test_sum(self) -> None:
        """A sum has three numbers from the start on, as RocketMQ's has."""
        self.assertEqual(self.rates.sum_text("one", "none"), "0.00 0.00 0.00")
        self.live(10, 3)
        self.assertEqual(self.rates.sum_text("one", "one"), "6.00 0.00 0.00")

    def test_falls(self) -> None:
        """A total that falls, with a topic that is deleted, is no negative rate."""
        self.live(10, 50)
        self.count = 0
        self.live(10, 0)
        self.assertEqual(self.rates.text("one"), "0.00  ")

    def test_noTime(self) -> None:
        """Looks at the same instant say nothing."""
        for _ in range(20):
            self.rates.sample()
        self.assertEqual(self.rates.text("one"), "  ")

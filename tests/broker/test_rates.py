"""How many messages a second."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.rates import SAMPLE_SECONDS, Rates


class RatesTests(SynchronousTestCase):
    """Rates over 10, 60 and 600 seconds."""

    def setUp(self) -> None:
        """A counter."""
        self.clock = Clock()
        self.count = 0
        self.rates = Rates(self.clock.seconds, lambda: self.count)

    def live(self, seconds: int, messages: int) -> None:
        """Let so much time pass, with so many messages every ten seconds."""
        for _ in range(seconds // SAMPLE_SECONDS):
            self.clock.advance(SAMPLE_SECONDS)
            self.count += messages
            self.rates.sample()

    def test_young(self) -> None:
        """A window is empty until it was lived through; tools cut at the blanks."""
        self.assertEqual(self.rates.text(), "  ")
        self.live(10, 25)
        self.assertEqual(self.rates.text(), "2.50  ")
        self.live(50, 25)
        self.assertEqual(self.rates.text(), "2.50 2.50 ")

    def test_windows(self) -> None:
        """Each window has the rate of its own time, and older times are forgotten."""
        self.live(600, 10)
        self.live(50, 0)
        self.live(10, 70)
        self.assertEqual(self.rates.text(), "7.00 1.17 1.02")
        self.live(700, 0)
        self.assertEqual(self.rates.text(), "0.00 0.00 0.00")

    def test_falls(self) -> None:
        """A counter that falls, with a topic that is deleted, is no negative rate."""
        self.live(10, 50)
        self.count = 0
        self.live(10, 0)
        self.assertEqual(self.rates.text(), "0.00  ")

    def test_noTime(self) -> None:
        """Two looks at the same instant say nothing."""
        self.rates.sample()
        self.assertEqual(self.rates.text(), "  ")

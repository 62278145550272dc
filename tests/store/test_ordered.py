"""Looking by halves."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.ordered import first_that


class FirstThatTests(SynchronousTestCase):
    """The first number that passes."""

    def test_everywhere(self) -> None:
        """It is found wherever it is; if none passes, the end."""
        for first in range(3, 12):
            self.assertEqual(first_that(3, 11, first.__le__), first)

    def test_nothing(self) -> None:
        """Where there are no numbers nothing is asked."""
        self.assertEqual(first_that(5, 5, lambda _: 1 // 0 == 0), 5)

"""Whether enough has come together."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.flush_threshold import PAGE, is_due

SIZE = 16 * PAGE


class DueTests(SynchronousTestCase):
    """The rule of all settings that count pages."""

    def test_nothing(self) -> None:
        """Nothing new is never due."""
        self.assertFalse(is_due(5, 5, 0, SIZE))
        self.assertFalse(is_due(SIZE, SIZE, 4, SIZE))

    def test_anything(self) -> None:
        """With no least pages anything is."""
        self.assertTrue(is_due(5, 6, 0, SIZE))

    def test_pages(self) -> None:
        """Pages begun do not count, pages ended do, wherever the last flush was."""
        self.assertFalse(is_due(0, 4 * PAGE - 1, 4, SIZE))
        self.assertTrue(is_due(0, 4 * PAGE, 4, SIZE))
        self.assertTrue(is_due(PAGE - 1, 4 * PAGE, 4, SIZE))
        self.assertFalse(is_due(PAGE, 5 * PAGE - 1, 4, SIZE))

    def test_full(self) -> None:
        """A file that is full is due, however little it is."""
        self.assertFalse(is_due(SIZE - 1, SIZE - 1, 4, SIZE))
        self.assertTrue(is_due(SIZE - 1, SIZE, 4, SIZE))

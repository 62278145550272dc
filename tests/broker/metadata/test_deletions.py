"""Tests of the memory of names that were deleted."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.deletions import KEPT_MS, Deletions


class DeletionsTests(SynchronousTestCase):
    """Names, and the time as it passes."""

    def setUp(self) -> None:
        """Nothing was deleted."""
        self.now_ms = 1_700_000_000_000
        self.deletions = Deletions(lambda: self.now_ms)

    def test_nameIsRecentForAnHour(self) -> None:
        """And then no more; what was never deleted is not."""
        self.deletions.note(["T"])
        self.now_ms += KEPT_MS - 1
        self.assertTrue(self.deletions.is_recent("T"))
        self.assertFalse(self.deletions.is_recent("U"))
        self.now_ms += 1
        self.assertFalse(self.deletions.is_recent("T"))

    def test_lastDeletionCounts(self) -> None:
        """A name that was made again, and deleted again."""
        self.deletions.note(["T", "U"])
        self.now_ms += KEPT_MS - 1
        self.deletions.note(["T"])
        self.now_ms += 1
        self.assertTrue(self.deletions.is_recent("T"))
        self.assertFalse(self.deletions.is_recent("U"))

    def test_oldNamesAreForgotten(self) -> None:
        """With the next deletion: no more are remembered than go in an hour."""
        self.deletions.note(f"T{number}" for number in range(100))
        self.now_ms += KEPT_MS
        self.deletions.note(["U"])
        self.assertEqual(len(self.deletions), 1)

"""The sweeps, some of their cases; C{scripts/sweep.py} has all."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.sweeps import rot


class SweepTests(SynchronousTestCase):
    """Damaged stores."""

    def test_rot(self) -> None:
        """Turned bits: nothing wrong is handed out, and nothing else is lost."""
        figures = rot.Figures()
        for clean in (True, False):
            rot.sweep(figures, clean, step=41)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(figures.counted > 50)

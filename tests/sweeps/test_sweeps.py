"""The sweeps, some of their cases; all of them in the heavy set, as in
C{scripts/torture/sweep.py}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.heavy import HEAVY
from tests.sweeps import blocks, broker, power, rot, slaves, torn, transactions

#: How many workloads lose their power.
WORKLOADS = 150


class SweepTests(SynchronousTestCase):
    """Damaged stores."""

    def test_torn(self) -> None:
        """Torn files: what is whole is handed out, and nothing else."""
        figures = torn.Figures()
        torn.sweep(figures, step=1 if HEAVY else 61)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(sum(figures.cases.values()) > 300)

    def test_rot(self) -> None:
        """Turned bits: nothing wrong is handed out, and nothing else is lost."""
        figures = rot.Figures()
        for clean in (True, False):
            rot.sweep(figures, clean, step=1 if HEAVY else 41)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(figures.counted > 50)

    def test_blocks(self) -> None:
        """Blocks that cannot be read: nothing else is lost, and stores go on."""
        figures = blocks.Figures()
        for clean in (True, False):
            blocks.sweep(figures, clean, step=1 if HEAVY else 7)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(figures.cases > 12)

    def test_power(self) -> None:
        """Power losses: what was flushed is there."""
        figures = power.Figures()
        seeds, rate = (WORKLOADS, 1.0) if HEAVY else (6, 0.2)
        power.sweep(figures, range(seeds), power.STEPS, rate)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(sum(figures.images.values()) > 200)

    def test_slaves(self) -> None:
        """Power losses of a slave: its log is the beginning of its master's."""
        figures = power.Figures()
        seeds, rate = (WORKLOADS // 2, 0.5) if HEAVY else (4, 0.2)
        slaves.sweep(figures, range(seeds), power.STEPS, rate)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(sum(figures.images.values()) > 100)

    def test_broker(self) -> None:
        """Power losses of a broker: what was answered is there."""
        figures = power.Figures()
        seeds, rate = (WORKLOADS // 5, 0.5) if HEAVY else (2, 0.2)
        broker.sweep(figures, range(seeds), power.STEPS, rate)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(sum(figures.images.values()) > 50)

    def test_transactions(self) -> None:
        """Power losses in the middle of transactions: each ends as was decided."""
        figures = transactions.Figures()
        seeds, rate = (WORKLOADS // 3, 0.5) if HEAVY else (3, 0.2)
        transactions.sweep(figures, range(seeds), power.STEPS, rate)
        self.assertEqual(figures.wrong, [])
        self.assertTrue(figures.asked > 300)

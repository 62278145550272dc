"""Transactions and kills, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class KillTests(SynchronousTestCase):
    """C{scripts/torture/transactions.py}."""

    def test_quick(self) -> None:
        """Five kills: each transaction ends as its producer has decided."""
        output = run("torture/transactions", "--inside", "--quick")
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn(" 0 of them missing", output.stdout)
        self.assertIn(" 0 others visible", output.stdout)

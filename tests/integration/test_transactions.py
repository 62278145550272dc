"""Transactions and kills, small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parents[2]


class KillTests(SynchronousTestCase):
    """C{scripts/transactions.py}."""

    def test_quick(self) -> None:
        """Five kills: each transaction ends as its producer has decided."""
        said = subprocess.run(
            [sys.executable, "scripts/transactions.py", "--inside", "--quick"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertIn(" 0 of them missing", said.stdout)
        self.assertIn(" 0 others visible", said.stdout)

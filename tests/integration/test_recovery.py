"""The measurement of recovery, small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parents[2]


class RecoveryTests(SynchronousTestCase):
    """C{scripts/recovery.py}."""

    def test_quick(self) -> None:
        """Stores of both sizes are made, killed, and started again."""
        said = subprocess.run(
            [sys.executable, "scripts/recovery.py", "--inside", "--quick"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(said.returncode, 0, said.stdout)
        for size in (1024, 300):
            self.assertIn(f"records of {size} bytes: ready after", said.stdout)

"""The measurement of recovery, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class RecoveryTests(SynchronousTestCase):
    """C{scripts/bench/recovery.py}."""

    def test_quick(self) -> None:
        """Stores of both sizes are made, killed, and started again."""
        output = run("bench/recovery", "--inside", "--quick")
        self.assertEqual(output.returncode, 0, output.stdout)
        for size in (1024, 300):
            self.assertIn(f"records of {size} bytes: ready after", output.stdout)

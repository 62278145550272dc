"""The measurement of timers, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class TimerRowsTests(SynchronousTestCase):
    """C{scripts/torture/timers.py}."""

    timeout = 300

    def test_quick(self) -> None:
        """None is early, none is lost."""
        output = run("torture/timers", "--inside", "--quick")
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("\n  came early: 0", output.stdout)
        self.assertIn("\npending: holds", output.stdout)

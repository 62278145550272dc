"""The measurement of clients, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class ClientSpeedTests(SynchronousTestCase):
    """C{scripts/bench/client_speed.py}."""

    timeout = 300

    def test_ourClientIsMeasured(self) -> None:
        """Each load runs to its end."""
        output = run("bench/client_speed", "--inside", "--quick")
        self.assertEqual(output.returncode, 0, output.stdout)
        for load in ("outstanding", "awaited", "consumed"):
            self.assertIn(f"\n  {load}, ours: CPU of the client: ", output.stdout)

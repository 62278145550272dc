"""The measurement of replication, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class ReplicationRowsTests(SynchronousTestCase):
    """C{scripts/torture/replication.py} and C{scripts/bench/replication_cost.py}."""

    timeout = 300

    def test_quick(self) -> None:
        """A pair survives a few blows; nothing that was acknowledged is lost, and each
        send is answered as it should be."""
        output = run("torture/replication", "--inside", "--quick", "episodes")
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("\nepisodes: holds", output.stdout)

    def test_noKit(self) -> None:
        """What it costs is measured with a load generator only."""
        output = run("bench/replication_cost", "--inside", "--quick")
        self.assertIn("it needs --kit", output.stdout)

"""Kills of a proxy and its broker, small, and how they are judged."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from scripts.torture.proxy import PROXY, Kill, Seen
from tests.heavy import HEAVY
from tests.integration.scripts import run


class ProxyRowsTests(SynchronousTestCase):
    """C{scripts/torture/proxy.py}."""

    timeout = 3600 if HEAVY else 300

    def test_nothingAcknowledgedIsLost(self) -> None:
        """Each client is served again soon; in the large form that for Java, too."""
        size = () if HEAVY else ("--quick", "python")
        output = run("torture/proxy", "--inside", *size)
        self.assertEqual(output.returncode, 0, output.stdout)
        for role in ("simple", "push"):
            self.assertIn(f"\n  {role}: acknowledged and lost: 0 ", output.stdout)


class SeenTests(SynchronousTestCase):
    """L{Seen}."""

    def test_clientWaitsUntilItsFirstMessageAfterTheStart(self) -> None:
        """Those before count for nothing, and one that has none waits for ever."""
        seen = Seen([("a", 900), ("b", 1500), ("c", 1600)])
        self.assertEqual(seen.waited(Kill(PROXY, 1000)), 0.5)
        self.assertEqual(seen.waited(Kill(PROXY, 1601)), float("inf"))

    def test_messageThatComesAgainIsThereOnce(self) -> None:
        """It is counted beside."""
        seen = Seen([("a", 1), ("b", 2), ("a", 3)])
        self.assertEqual(seen.bodies, {"a", "b"})
        self.assertEqual(seen.again, 1)

"""The measurement of proxies, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class ProxyCostTests(SynchronousTestCase):
    """C{scripts/bench/proxy_cost.py}."""

    timeout = 300

    def test_ourProxyIsMeasured(self) -> None:
        """Each load runs to its end."""
        output = run("bench/proxy_cost", "--inside", "--quick")
        self.assertEqual(output.returncode, 0, output.stdout)
        for load in ("sent", "consumed"):
            for streams in (1, 16, 256):
                words = f"\n  {load}, {streams} under way, ours: CPU of the proxy: "
                self.assertIn(words, output.stdout)

"""The measurement of POP, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class PopRowsTests(SynchronousTestCase):
    """C{scripts/torture/pop.py} and C{scripts/bench/pop_cost.py}."""

    timeout = 300

    def test_cost(self) -> None:
        """What is popped and acknowledged is measured."""
        output = run("bench/pop_cost", "--inside", "--quick")
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("one by one, ours: popped and acknowledged: ", output.stdout)

    def test_order(self) -> None:
        """What is popped in order comes in order."""
        output = run("torture/pop", "--inside", "--quick", "order")
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("\n  out of order: 0", output.stdout)

    def test_kills(self) -> None:
        """Nothing is lost by a kill, and nothing comes that must not."""
        output = run("torture/pop", "--inside", "--quick", "kills")
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("\n  faults: 0", output.stdout)

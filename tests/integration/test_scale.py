"""The measurement of scale, small."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run

#: A figure of each row.
FIGURES = {
    "descriptors": "queues that end elsewhere: ",
    "turns": "longest wait of a light client: ",
    "start": "resident memory: ",
    "members": "requests for the members: ",
    "fairness": "longest pull of another client: ",
    "idle": "CPU of a held pull's wake-up: ",
    "latency": "it needs --kit",
    "memory": "without pages of files: ",
    "sql": "sends a second beside a reader: ",
}


class ScaleTests(SynchronousTestCase):
    """C{scripts/bench/scale.py}, and C{scripts/torture/survival.py}."""

    timeout = 300

    def test_quick(self) -> None:
        """Each row is measured with a small load; times are not judged."""
        output = run("bench/scale", "--inside", "--quick", *FIGURES)
        self.assertEqual(output.returncode, 0, output.stdout)
        for name, figure in FIGURES.items():
            self.assertIn(f"\n{name}: holds", output.stdout)
            self.assertIn(figure, output.stdout)

    def test_survival(self) -> None:
        """A broker survives what befalls it; nothing acknowledged is missing."""
        output = run("torture/survival", "--inside", "--quick")
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("deaths, and other ends that must not be: 0", output.stdout)

    def test_unknown(self) -> None:
        """A row that there is not is refused, with those there are."""
        output = run("bench/scale", "--inside", "nothing")
        self.assertEqual(output.returncode, 2)
        self.assertIn("no row nothing; they are descriptors, ", output.stdout)

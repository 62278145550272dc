"""A broker, its workers, and a model of what they have to answer."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.heavy import HEAVY
from tests.integration.scripts import run

#: How long a run takes, in seconds, besides start and stop; and what else it is told.
RUN = ("600",) if HEAVY else ("3", "--extension", "off", "--seed", "1")


class ModelTests(SynchronousTestCase):
    """Runs of C{scripts/torture/model.py}."""

    timeout = 900

    def compare(self, workers: int) -> None:
        """A run finds no difference."""
        words = "--inside", "--workers", str(workers), "--seconds", *RUN
        done = run("torture/model", *words)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_workersAnswerAsTheModel(self) -> None:
        """Workers answer with what is acknowledged in topics that come and go."""
        self.compare(2)

    if HEAVY:

        def test_ownerAnswersAsTheModel(self) -> None:
            """So does a broker without workers."""
            self.compare(0)

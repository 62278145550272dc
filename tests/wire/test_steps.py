"""Tests of L{rocketbroker.wire.steps}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.steps import Steps, finished


class FinishedTests(SynchronousTestCase):
    """Work that is done at once."""

    def test_resultAfterAllSteps(self) -> None:
        """All steps are done, and the result is that of the work."""
        done = []

        def work() -> Steps[str]:
            for number in range(3):
                done.append(number)
                yield
            return "over"

        self.assertEqual(finished(work()), "over")
        self.assertEqual(done, [0, 1, 2])

"""Waiting for the threads of a broker."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.background_work import AtWork
from rocketbroker.testing.threads import Threads


class AtWorkTests(SynchronousTestCase):
    """Threads that a test steps."""

    def test_settled(self) -> None:
        """It fires when all that was begun has ended, whatever has become of it; with
        nothing under way at once."""
        threads = Threads()
        at_work = AtWork(threads)
        self.successResultOf(at_work.settled())
        good = at_work(lambda: 7)
        bad = at_work(lambda: int("x"))
        settled = at_work.settled()
        self.assertEqual(at_work.count, 2)
        self.assertNoResult(settled)
        threads.run()
        self.assertEqual(self.successResultOf(good), 7)
        self.failureResultOf(bad, ValueError)
        self.successResultOf(settled)
        self.assertEqual(at_work.count, 0)
        self.successResultOf(at_work.settled())

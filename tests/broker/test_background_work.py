"""Waiting for the threads of a broker."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.background_work import BackgroundWork
from rocketbroker.testing.threads import Threads


class BackgroundWorkTests(SynchronousTestCase):
    """Threads that a test steps."""

    def test_settled(self) -> None:
        """It fires when all that was begun has ended, whatever has become of it; with
        nothing under way at once."""
        threads = Threads()
        work = BackgroundWork(threads)
        self.successResultOf(work.settled())
        good = work(lambda: 7)
        bad = work(lambda: int("x"))
        settled = work.settled()
        self.assertEqual(work.count, 2)
        self.assertNoResult(settled)
        threads.run()
        self.assertEqual(self.successResultOf(good), 7)
        self.failureResultOf(bad, ValueError)
        self.successResultOf(settled)
        self.assertEqual(work.count, 0)
        self.successResultOf(work.settled())

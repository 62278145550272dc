"""Work that waits for the disk, without threads."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.testing.threads import Threads, at_once


class ThreadsTests(SynchronousTestCase):
    """Functions are run when the test says so."""

    def test_atOnce(self) -> None:
        """The result, or the failure, is there right away."""
        self.assertEqual(self.successResultOf(at_once(lambda: 3)), 3)
        self.failureResultOf(at_once(lambda: 1 // 0), ZeroDivisionError)

    def test_later(self) -> None:
        """Nothing runs before it is told to."""
        threads = Threads()
        done = threads(lambda: 3)
        self.assertNoResult(done)
        threads.run()
        self.assertEqual(self.successResultOf(done), 3)
        self.assertEqual(threads.waiting, [])

"""Who may append."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.append_lock import ThreadAppendLock


class ThreadLeaseTests(SynchronousTestCase):
    """The lease among threads."""

    def test_oneAtATime(self) -> None:
        """Only one has it, until it is given back."""
        append_lock = ThreadAppendLock()
        self.assertTrue(append_lock.acquire())
        self.assertFalse(append_lock.acquire(False))
        append_lock.release()
        self.assertTrue(append_lock.acquire(False))
        append_lock.release()

"""Who may append."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.append_lock import ThreadAppendLock


class ThreadLeaseTests(SynchronousTestCase):
    """The lease among threads."""

    def test_oneAtATime(self) -> None:
        """Only one has it, until it is given back."""
        lease = ThreadAppendLock()
        self.assertTrue(lease.acquire())
        self.assertFalse(lease.acquire(False))
        lease.release()
        self.assertTrue(lease.acquire(False))
        lease.release()

"""Who uses a store."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.store.shared_positions import ABORT_MS, OWNER, SharedPositions
from rocketbroker.store.store_lock import StoreLock
from rocketbroker.testing.files import MemoryDisk


class StoreLockTests(SynchronousTestCase):
    """Locks and marks."""

    def setUp(self) -> None:
        """A store's directory."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.disk.sync_dir("/")
        self.owner = StoreLock(self.disk, "/s")

    def test_lock(self) -> None:
        """One has it until it lets go."""
        self.owner.take()
        other = StoreLock(self.disk, "/s")
        error = self.assertRaises(StoreError, other.take)
        self.assertEqual(
            str(error),
            f"The store /s is used by another broker, process {os.getpid()}. Stop that "
            "one, or give this one a directory of its own (storePathRootDir).",
        )
        self.owner.release()
        self.owner.release()
        other.take()

    def test_mark(self) -> None:
        """The mark tells the process, the words tell the mark; without it the store was
        left cleanly."""
        positions = SharedPositions(self.disk, "/s")
        self.owner.take()
        self.assertTrue(self.owner.was_left_cleanly())
        self.owner.mark(positions, False)
        self.assertFalse(self.owner.was_left_cleanly())
        self.assertEqual(self.disk.read("/s/abort"), str(os.getpid()).encode())
        self.assertEqual(positions.view[OWNER], os.getpid())
        self.assertEqual(positions.view[ABORT_MS], self.disk.modified_ms("/s/abort"))
        self.owner.unmark()
        self.assertTrue(self.owner.was_left_cleanly())

    def test_unreadable(self) -> None:
        """A lock that cannot be read is taken; nobody knows who has written last."""
        self.owner.take()
        self.owner.mark(SharedPositions(self.disk, "/s"), True)
        self.owner.release()
        self.disk.spoil("/s/lock", 0, 1)
        self.owner.take()
        self.assertFalse(self.owner.is_zeroed)
        self.owner.mark(SharedPositions(self.disk, "/s"), True)
        self.owner.release()
        self.owner.take()
        self.assertTrue(self.owner.is_zeroed)

    def test_zeroed(self) -> None:
        """The lock tells, after a power failure too, whether zeros stand behind the
        log; a start of RocketMQ in between takes that back."""
        positions = SharedPositions(self.disk, "/s")
        for zeroed, text in ((True, b"rocketbroker"), (False, b"lock")):
            self.owner.take()
            self.owner.mark(positions, zeroed)
            self.assertEqual(self.disk.read("/s/lock"), text)
            left = self.disk.image()
            owner = StoreLock(left, "/s")
            owner.take()
            self.assertEqual(owner.is_zeroed, zeroed)
            owner.release()
            left.open("/s/lock").pwrite(b"lock", 0)
            owner.take()
            self.assertFalse(owner.is_zeroed)
            self.owner.release()

    def test_full(self) -> None:
        """On a full disk both files are there, if empty; a broken one is an error."""
        positions = SharedPositions(self.disk, "/s")
        self.disk.capacity = self.disk.used()
        self.owner.take()
        self.owner.mark(positions, True)
        self.assertFalse(self.owner.was_left_cleanly())
        self.assertRaises(StoreError, StoreLock(self.disk, "/s").take)
        self.disk.fail("pwrite", errno.EIO)
        self.assertRaises(OSError, self.owner.mark, positions, True)

"""The owner's side of a shared store."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.store.sharing.append_lock import APPEND_NAME
from rocketbroker.testing.files import MemoryDisk
from tests.store.sharing.joined import TOLD, Shared
from tests.store.stores import ROOT, draft, opened

PATH = f"{ROOT}/{APPEND_NAME}"


class SharingTests(SynchronousTestCase):
    """Beginning and ending."""

    def test_ownerDied(self) -> None:
        """Processes that have joined under an owner that died append nothing more once
        the next one has begun, whether or not that one shares its store."""
        for shares in (False, True):
            shared = Shared()
            joined = shared.join()
            its = shared.theirs(joined, shared.queue())
            self.assertTrue(joined.append([draft(its, b"one")], TOLD))
            # Its files are closed, as its process has ended, and nothing else is done.
            shared.owner._store_lock.release()
            shared.owner.sharing._shared._file.close()  # type: ignore[union-attr]
            if shares:
                store = Shared(shared.disk).owner
            else:
                store = opened(shared.disk)
            self.assertFalse(joined.append([draft(its, b"two")], TOLD))
            self.assertEqual(store.queue("T", 0).max_offset, 1)
            self.assertEqual(shared.disk.exists(PATH), shares)
            store.close()

    def test_cleanStop(self) -> None:
        """A clean stop leaves no file of it."""
        shared = Shared()
        self.assertTrue(shared.disk.exists(PATH))
        shared.owner.close()
        self.assertFalse(shared.disk.exists(PATH))

    def test_noRoom(self) -> None:
        """On a disk that is full the owner goes on alone."""
        disk = MemoryDisk()
        # The positions themselves take the first two.
        disk.fail("allocate", errno.ENOSPC, after=1)
        shared = Shared(disk)
        self.assertFalse(shared.owner.sharing.is_on)
        self.assertFalse(disk.exists(PATH))
        self.assertEqual(shared.owner.sharing.mended, 0)
        shared.owner.append([draft(shared.queue(), b"one")])
        self.assertEqual(shared.stored(shared.queue()), [(0, b"one")])
        shared.owner.close()

    def test_noRoomForPositions(self) -> None:
        """So it does if there is no room for shared positions."""
        disk = MemoryDisk()
        disk.fail("allocate", errno.ENOSPC)
        shared = Shared(disk)
        self.assertFalse(shared.owner.sharing.is_on)
        self.assertRaises(OSError, shared.join)

    def test_diskFails(self) -> None:
        """Another error is one of the start, which leaves nothing behind."""
        disk = MemoryDisk()
        disk.fail("allocate", errno.EIO, after=1)
        self.assertRaises(StoreError, Shared, disk)
        self.assertFalse(disk.exists(PATH))
        opened(disk)

    def test_counts(self) -> None:
        """What others have appended is counted by the owner when it hears of it."""
        shared = Shared()
        shared.owner.sharing.appended(3, 500, shared.wall() + 5)
        self.assertEqual(shared.owner.appended_messages, 3)
        self.assertEqual(shared.owner.appended_bytes, 500)
        shared.owner.sharing.appended(1, 100, shared.wall())
        self.assertEqual(shared.owner._log.published_ms, shared.wall() + 5)

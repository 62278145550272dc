"""A directory as the place of an export."""

from __future__ import annotations

import errno
import os
import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.storage import DirectoryStorage
from rocketbroker.files.disk import Disk
from rocketbroker.testing.contracts.storage import PATH, StorageContract
from rocketbroker.testing.files import MemoryDisk


class DirectoryStorageTests(StorageContract, SynchronousTestCase):
    """L{DirectoryStorage} on the real disk."""

    def setUp(self) -> None:
        """A directory that is not there yet."""
        self.root = os.path.abspath(self.mktemp())
        self.storage = DirectoryStorage(Disk(), self.root)

    def test_drafts(self) -> None:
        """What died attempts left is removed, and nothing else."""
        self.storage.put(PATH, b"x")
        for name in (PATH, PATH, PATH + "2"):
            self.storage.create(name).write(b"half")
        self.assertEqual(self.storage.list("T/dt=1"), ["x.parquet"])
        self.assertEqual(self.storage.remove_drafts(PATH), 2)
        left = os.listdir(os.path.join(self.root, "T", "dt=1"))
        self.assertEqual(len(left), 2)
        self.assertIn("x.parquet", left)


class CrashTests(SynchronousTestCase):
    """L{DirectoryStorage} on a disk that loses power, or is full."""

    def test_crash(self) -> None:
        """A finished file outlives a loss of power; an unfinished one has no name."""
        for seed in range(20):
            disk = MemoryDisk()
            storage = DirectoryStorage(disk, "/lake/export")
            output = storage.create(PATH)
            output.write(b"abc")
            output.finish()
            storage.create(PATH + "2").write(b"abc")
            disk.crash(random.Random(seed))
            self.assertEqual(storage.list("T/dt=1"), ["x.parquet"])
            self.assertEqual(storage.read(PATH), b"abc")

    def test_full(self) -> None:
        """A disk that refuses leaves what was there."""
        for call in ("pwrite", "datasync", "rename"):
            disk = MemoryDisk()
            storage = DirectoryStorage(disk, "/lake/export")
            storage.put(PATH, b"old")
            disk.fail(call, errno.ENOSPC)
            error = self.assertRaises(OSError, storage.put, PATH, b"new")
            self.assertEqual(error.errno, errno.ENOSPC)
            self.assertEqual(storage.read(PATH), b"old")
            self.assertEqual(disk.list("/lake/export/T/dt=1"), ["x.parquet"])

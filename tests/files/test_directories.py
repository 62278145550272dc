"""Directories that are still there after a crash."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.directories import make_lasting
from rocketbroker.testing.files import MemoryDisk


class LastingTests(SynchronousTestCase):
    """Making and crashing."""

    def test_lasting(self) -> None:
        """A directory made so survives a crash, with those above it; making it again
        does nothing."""
        disk = MemoryDisk()
        make_lasting(disk, "/a/b/c")
        syncs = disk.calls["sync_dir"]
        make_lasting(disk, "/a/b/c")
        self.assertEqual(disk.calls["sync_dir"], syncs)
        disk.crash()
        self.assertTrue(disk.is_dir("/a/b/c"))

    def test_relativePath(self) -> None:
        """A relative path begins in the working directory; so does one of one name."""
        disk = MemoryDisk()
        for path in ("sub/store", "store"):
            make_lasting(disk, path)
            self.assertTrue(disk.is_dir(os.path.join(os.getcwd(), path)))

    def test_inAFile(self) -> None:
        """Where a file is in the way, the error is told."""
        disk = MemoryDisk()
        disk.open("/a", create=True)
        self.assertRaises(OSError, make_lasting, disk, "/a/b")

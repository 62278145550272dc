"""The real disk."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from tests.files.contract import FilesContract


class DiskTests(FilesContract, SynchronousTestCase):
    """The contract, in a directory of trial's."""

    def make(self) -> tuple[IFiles, str]:
        """A directory for this test."""
        root = os.path.abspath(self.mktemp())
        os.makedirs(root)
        return Disk(), root

    def test_lock(self) -> None:
        """The lock is one that a process may take twice, and needs writing."""
        files, root = self.make()
        file = files.open(f"{root}/lock", create=True)
        self.assertTrue(file.lock())
        self.assertTrue(file.lock())
        file.close()

    def test_cannotReserve(self) -> None:
        """Where the system cannot reserve blocks (as it says of a range of nothing)
        that is no error: what is missing is written, and what is there is left."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.pwrite(b"abc", 0)
        file.allocate(1, 0)
        self.assertEqual(files.read(f"{root}/a"), b"abc")
        file.close()

    def test_forgotten(self) -> None:
        """A file that nobody closed is closed when it is forgotten."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        self.assertIn("a", repr(file))
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 1
        del file
        after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0
        self.assertEqual(after, before - 1)

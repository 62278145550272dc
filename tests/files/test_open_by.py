"""Which processes use files."""

from __future__ import annotations

import mmap
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFileUsers
from rocketbroker.files.open_by import Processes
from rocketbroker.testing.contracts.processes import UsersContract
from rocketbroker.testing.users import GivenUsers

#: A process that is none: then this one is another for it.
NOBODY = 0


class GivenUsersTests(UsersContract, SynchronousTestCase):
    """The double."""

    def make(self, root: str, path: str) -> IFileUsers:
        """One that knows that this process uses a file."""
        return GivenUsers((os.getpid(), path))


class ProcessesTests(UsersContract, SynchronousTestCase):
    """What the kernel tells of this process."""

    def make(self, root: str, path: str) -> IFileUsers:
        """It uses that file until the end of the test."""
        file = Disk().open(path, create=True)
        self.addCleanup(file.close)
        return Processes(NOBODY)

    def test_kinds(self) -> None:
        """A file counts that is open to write, or mapped, and not one that is only
        read; by whatever name it was opened, and not if it is this process that asks.
        """
        root: str = os.path.realpath(self.mktemp())
        os.makedirs(root)
        path = os.path.join(root, "used")
        with open(path, "wb") as file:
            file.write(b"used")
        other: str = self.mktemp()
        os.link(path, other)
        users = Processes(NOBODY)
        with open(path, "rb") as reading:
            self.assertEqual(users.user_of([root]), None)
            mapped = mmap.mmap(reading.fileno(), 0, access=mmap.ACCESS_READ)
        found = users.user_of([root])
        mapped.close()
        self.assertEqual(found, (os.getpid(), path))
        self.assertEqual(users.user_of([root]), None)
        for mode in ("r+b", "ab"):
            with open(other, mode):
                self.assertEqual(users.user_of([root]), (os.getpid(), path))
                self.assertEqual(Processes(os.getpid()).user_of([root]), None)

    def test_unknown(self) -> None:
        """Where the system tells nothing, and of what it does not tell, nothing is
        known."""
        root: str = os.path.realpath(self.mktemp())
        proc: str = os.path.realpath(self.mktemp())
        os.makedirs(root)
        path = os.path.join(root, "used")
        with open(path, "wb"):
            self.assertEqual(Processes(NOBODY, proc).user_of([root]), None)
            os.makedirs(os.path.join(proc, "12", "fd"))
            os.symlink(path, os.path.join(proc, "12", "fd", "3"))
            os.makedirs(os.path.join(proc, "self"))
            self.assertEqual(Processes(NOBODY, proc).user_of([root]), None)

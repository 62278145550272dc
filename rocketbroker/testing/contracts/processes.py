# -*- test-case-name: tests.files.test_processes -*-
"""The contracts of a machine's processes: which there are, and who uses files."""

from __future__ import annotations

import os

from rocketbroker.files.interfaces import IFileUsers, IProcesses
from rocketbroker.testing.contracts.case import Contract

#: Linux has no process with that id, or a higher one.
NOBODY = 1 << 22


class ProcessesContract(Contract):
    """The suite of L{IProcesses}; a test class says what to test with L{make}."""

    def make(self) -> IProcesses:
        """
        @return: one that knows of this process.
        """
        raise AssertionError("a test class makes its own processes")

    def test_identityIsOneWord(self) -> None:
        """A process that runs is known by one word, and does not wait for the disk."""
        processes = self.make()
        self.assertEqual(len(processes.identity(os.getpid()).split()), 1)
        self.assertFalse(processes.waits_for_disk(os.getpid()))

    def test_noProcess(self) -> None:
        """One that is none has no identity, and nothing happens when it is killed."""
        processes = self.make()
        processes.kill(NOBODY)
        self.assertEqual(processes.identity(NOBODY), "")
        self.assertFalse(processes.waits_for_disk(NOBODY))


class UsersContract(Contract):
    """The suite of L{IFileUsers}; a test class says what to test with L{make}."""

    def make(self, root: str, path: str) -> IFileUsers:
        """
        @param root: a directory of the test.
        @param path: a file in a directory below it, which need not be there yet.
        @return: one that knows that this process uses the file.
        """
        raise AssertionError("a test class makes its own users")

    def test_found(self) -> None:
        """Who uses a file is found by any directory above it, and by no other."""
        root: str = os.path.realpath(self.mktemp())
        path = os.path.join(root, "a", "b", "used")
        for name in ("a/b", "ab"):
            os.makedirs(os.path.join(root, name))
        users = self.make(root, path)
        for folder in ("", "/a", "/a/b"):
            found = users.user_of([f"{root}/none", root + folder])
            self.assertEqual(found, (os.getpid(), path))
        self.assertEqual(users.user_of([f"{root}/ab", f"{root}/none"]), None)
        self.assertEqual(users.user_of([]), None)

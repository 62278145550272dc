# -*- test-case-name: tests.files.test_open_by -*-
"""Processes that have files open, from the tables of the Linux kernel.

A lock says only who has asked for it. A broker locks the C{lock} in the root of its
store, and its log may lie anywhere; but whoever can change a file has it open. In
C{/proc} each process has a directory with what it has open, and what it has mapped.

Files are known by device and inode, so by whatever name, through whatever link and in
whatever container they were opened. What stands there of the processes of other users
only the superuser may read; of the others it cannot be known. Where there is no such
directory nothing is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import final

from zope.interface import implementer

from rocketbroker.files.interfaces import IFileUsers

#: A file, by device and inode.
_Identity = tuple[int, int]


def _within(folders: Sequence[str]) -> dict[_Identity, str]:
    """All files in directories, and below."""
    found = {}
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    state = os.stat(path)
                    found[state.st_dev, state.st_ino] = path
    return found


@final
@implementer(IFileUsers)
class Processes:
    """All processes but one."""

    def __init__(self, own: int, proc: str = "/proc") -> None:
        """
        @param own: the id of the process that does not count.
        @param proc: where the kernel tells of them.
        """
        self._own = str(own)
        self._proc = proc

    def user_of(self, folders: Sequence[str]) -> tuple[int, str] | None:
        """I{Blocking.} See L{IFileUsers.user_of}."""
        wanted = _within(folders)
        names = [name for name in self._list("") if name.isdigit()]
        for name in sorted(names, key=int) if wanted else ():
            if name == self._own:
                continue
            for identity in self._used_by(name):
                if identity in wanted:
                    return int(name), wanted[identity]
        return None

    def _list(self, path: str) -> list[str]:
        """The names in a directory; none if the process has ended, or is not ours."""
        try:
            return os.listdir(os.path.join(self._proc, path))
        except OSError:
            return []

    def _lines(self, path: str) -> list[bytes]:
        """Those of a file; the same."""
        try:
            with open(os.path.join(self._proc, path), "rb") as file:
                return file.read().splitlines()
        except OSError:
            return []

    def _used_by(self, process: str) -> Iterator[_Identity]:
        for number in self._list(f"{process}/fd"):
            # It may be closed meanwhile.
            with contextlib.suppress(OSError):
                if self._is_written(f"{process}/fdinfo/{number}"):
                    state = os.stat(os.path.join(self._proc, process, "fd", number))
                    yield state.st_dev, state.st_ino
        for line in self._lines(f"{process}/maps"):
            # Addresses, rights, position, device, inode, path.
            words = line.split(None, 5)
            major, minor = words[3].split(b":")
            yield os.makedev(int(major, 16), int(minor, 16)), int(words[4])

    def _is_written(self, path: str) -> bool:
        """Whether a descriptor is one that can be written to."""
        for line in self._lines(path):
            if line.startswith(b"flags:"):
                return bool(int(line[6:], 8) & os.O_ACCMODE != os.O_RDONLY)
        return False

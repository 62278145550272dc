# -*- test-case-name: tests.files -*-
"""Every call that this package makes to a disk.

Two things provide L{IFiles}: L{rocketbroker.files.disk.Disk}, and the memory disk of
L{rocketbroker.testing.files}, which can tear writes, lose unsynced bytes, and be
full.
Paths are absolute C{str}. All calls raise C{OSError} as the operating system would.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Final

from zope.interface import Interface

#: What L{IFiles.lengths} says where no file is.
FOLDER: Final = -1
NOTHING: Final = -2


class IFile(Interface):
    """One open file; positions are explicit, so several threads may share it."""

    def pread(size: int, position: int) -> bytes:
        """Up to C{size} bytes from C{position}."""

    def pwrite(data: bytes, position: int) -> int:
        """Write all of C{data} at C{position}; the number of bytes, always all."""

    def allocate(position: int, size: int) -> None:
        """Reserve blocks; the file grows to C{position + size} and reads as zeros."""

    def truncate(size: int) -> None:
        """Cut or extend the file."""

    def size() -> int:
        """The file's length in bytes."""

    def is_hole(position: int) -> bool:
        """Whether it is known that no block is behind a position, so that only zeros
        are read there."""

    def read_ahead(is_wanted: bool) -> None:
        """Let the system read more than is asked for, or not: an advice."""

    def datasync() -> None:
        """Wait until its bytes are on the disk."""

    def map(size: int, writable: bool) -> mmap.mmap:
        """A shared mapping of the first C{size} bytes."""

    def lock() -> bool:
        """Take the POSIX record lock of byte 0, as Java does; False if it is taken."""

    def record_lock_holder() -> int:
        """The id of the process that has the lock of L{lock}; 0 if none has it, or if
        it is not known."""

    def lock_alone(seconds: float) -> bool:
        """Take a lock that no other opening of this file has at the same time; it is
        another one than that of L{lock}.

        The kernel releases it when this opening is closed, or its process ends.

        @param seconds: how long to wait for it; 0: not at all.
        @return: whether it was taken.
        """

    def lock_holder() -> int:
        """The id of the process that has the lock of L{lock_alone}; 0 if none has it,
        or if it is not known."""

    def unlock() -> None:
        """Release what L{lock_alone} has taken."""

    def close() -> None:
        """Close it (and so release its locks); idempotent."""


class IFiles(Interface):
    """A file system."""

    def open(path: str, create: bool = False) -> IFile:
        """Open for reading and writing; C{create} makes it if it is missing."""

    def open_readonly(path: str) -> IFile:
        """Open for reading."""

    def exists(path: str) -> bool:
        """Whether there is a file or directory."""

    def size(path: str) -> int:
        """A file's length in bytes."""

    def modified_ms(path: str) -> int:
        """When a file was last changed."""

    def stamp(path: str) -> int:
        """A number that is another one after a change: of the bytes of a file, or of
        the names in a directory. Nobody can set it, and a copy has its own.

        @raise OSError: there is none; or the file system has no such numbers.
        """

    def list(path: str) -> list[str]:
        """The names in a directory, sorted; empty if there is no such directory."""

    def lengths(path: str) -> Sequence[tuple[str, int]]:
        """The names in a directory, sorted, each with the length of its file:
        L{FOLDER} of a directory, L{NOTHING} of a link that leads nowhere. Empty if
        there is no such directory."""

    def is_dir(path: str) -> bool:
        """Whether it is a directory."""

    def make_dirs(path: str) -> None:
        """Make a directory and those above it."""

    def remove(path: str) -> None:
        """Remove a file."""

    def remove_dir(path: str) -> None:
        """Remove an empty directory."""

    def rename(old: str, new: str) -> None:
        """Rename, replacing C{new}."""

    def copy_mode(path: str, other: str) -> None:
        """Give C{other} the permissions of the file C{path}, and its owner where that
        is allowed."""

    def restrict(path: str) -> None:
        """Let nobody but its owner read or write a file: it has secrets."""

    def sync_dir(path: str) -> None:
        """Wait until the directory's entries are on the disk."""

    def sync(path: str) -> bool:
        """Wait until all of the file system that holds C{path} is on the disk.

        Much faster than file by file. Errors are told by L{IFile.datasync} alone.

        @return: whether the system can do that.
        """

    def read(path: str) -> bytes:
        """A whole small file."""

    def usage(path: str) -> tuple[int, int]:
        """C{(total, usable)} bytes of the disk that holds C{path}.

        Blocks that are reserved for root are in neither, as in C{df}: nobody has used
        them, and a server cannot.
        """


class IProcesses(Interface):
    """The processes of this machine."""

    def identity(process: int) -> str:
        """A word without spaces that no other process has, before or later, though it
        gets the same id; empty if there is no such process, or if it is not known."""

    def waits_for_disk(process: int) -> bool:
        """Whether a process waits for a device, so that nothing can end it."""

    def kill(process: int) -> None:
        """End a process at once; nothing if there is none."""


class IFileUsers(Interface):
    """The processes that use files, as far as they are known."""

    def user_of(folders: Sequence[str]) -> tuple[int, str] | None:
        """A process, other than this one, that may write to a file in one of these
        directories, or below them, or has one mapped, which then must not become
        shorter.

        @return: its id, and the file; None if none is known.
        """

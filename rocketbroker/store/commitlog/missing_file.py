# -*- test-case-name: tests.store.commitlog.test_segments -*-
"""A stand-in for the file of a segment that is missing."""

from __future__ import annotations

import errno
import mmap
import os
from typing import final

from zope.interface import implementer

from rocketbroker.files.interfaces import IFile


@final
@implementer(IFile)
class MissingFile:
    """A stand-in for the open file of a segment that is missing.

    The last segment of a log is never missing, so this is read, but not written to.
    """

    def __init__(self, content: bytes, size: int) -> None:
        """
        @param content: how it begins; the rest reads as zeros.
        """
        self._content = content
        self._size = size

    def pread(self, size: int, position: int) -> bytes:
        """See L{IFile.pread}."""
        size = min(size, self._size - position)
        return self._content[position : position + size].ljust(size, b"\0")

    def pwrite(self, data: bytes, position: int) -> int:
        """It cannot be written to."""
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def allocate(self, position: int, size: int) -> None:
        """It needs no blocks."""

    def truncate(self, size: int) -> None:
        """It stays as it is."""

    def size(self) -> int:
        """See L{IFile.size}."""
        return self._size

    def read_ahead(self, is_wanted: bool) -> None:
        """Nothing is read."""

    def is_hole(self, position: int) -> bool:
        """Nobody asks."""
        return False

    def datasync(self) -> None:
        """There is nothing to put on the disk."""

    def map(self, size: int, writable: bool) -> mmap.mmap:
        """See L{IFile.map}."""
        found = mmap.mmap(-1, size)
        found[: len(self._content)] = self._content
        return found

    def lock(self) -> bool:
        """Nobody else has it."""
        return True

    def record_lock_holder(self) -> int:
        """Nobody is known to have it."""
        return 0

    def lock_alone(self, seconds: float) -> bool:
        """Nobody else has it."""
        return True

    def lock_holder(self) -> int:
        """Nobody is known to have it."""
        return 0

    def unlock(self) -> None:
        """Nobody waits for it."""

    def close(self) -> None:
        """Nothing is open."""

# -*- test-case-name: tests.store.reader.test_unreadable -*-
"""A read-only view of a file system, for disks of which some blocks cannot be read.

Such blocks read as zeros, and are noted. A file or directory that cannot be opened or
listed raises an error with one sentence. Nothing is written.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Iterator
from typing import NamedTuple, NoReturn, final

from zope.interface import implementer

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK, blocks, pieces
from rocketbroker.files.interfaces import IFile, IFiles


class Unread(NamedTuple):
    """Bytes of a file that cannot be read, from C{start} to C{end}, and the system's
    message."""

    path: str
    start: int
    end: int
    why: str


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file that the system refused, unless it is gone.

    @raise StoreError: one sentence.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error


def _refuse(*_: object, **__: object) -> NoReturn:
    """Refuse a call that would write."""
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@final
@implementer(IFile)
class ReadFile:
    """One open file.

    @ivar length: at least so many bytes can be read: zeros behind its end.
    """

    def __init__(self, file: IFile, path: str, files: ReadFiles) -> None:
        self._file = file
        self._path = path
        self._files = files
        self.length = 0

    def pread(self, size: int, position: int) -> bytes:
        """See L{IFile.pread}. Zeros where it cannot be read."""
        found = []
        with naming(self._path):
            for start, piece, error in pieces(self._file, size, position):
                found.append(piece)
                if error is not None:
                    first = start // BLOCK * BLOCK
                    end = min(first + BLOCK, self._file.size())
                    self._files.note(self._path, first, end, error)
        data = self._files.blanked(self._path, position, b"".join(found))
        behind = min(self.length - position, size) - len(data)
        return data if behind <= 0 else data + bytes(behind)

    def size(self) -> int:
        """See L{IFile.size}."""
        return self._file.size()

    def map(self, size: int, writable: bool) -> mmap.mmap:
        """See L{IFile.map}."""
        return self._file.map(size, writable)

    def close(self) -> None:
        """See L{IFile.close}."""
        self._file.close()

    pwrite = allocate = truncate = datasync = lock = _refuse


@final
@implementer(IFiles)
class ReadFiles:
    """The file system.

    @ivar is_bad: whether there is something that could not be read.
    """

    def __init__(self, files: IFiles) -> None:
        self._files = files
        self._blocks: dict[tuple[str, int], str] = {}
        self._unread: list[Unread] = []
        self.is_bad = False

    def taken(self) -> list[Unread]:
        """The bytes that could not be read since the last call, in the order of
        reading."""
        found, self._unread = self._unread, []
        return found

    def note(self, path: str, start: int, end: int, error: OSError) -> None:
        """A block cannot be read."""
        key = path, start // BLOCK
        if key not in self._blocks:
            self._blocks[key] = why = error.strerror or "it cannot be read"
            self.is_bad = True
            last = self._unread[-1] if self._unread else None
            if last and (last.path, last.end, last.why) == (path, start, why):
                self._unread[-1] = last._replace(end=end)
            else:
                self._unread.append(Unread(path, start, end, why))

    def blanked(self, path: str, position: int, data: bytes) -> bytes:
        """Bytes of a file, with zeros in all blocks of which one was once refused."""
        if not self.why(path, position, len(data)):
            return data
        found = bytearray(data)
        for start, end in blocks(position, position + len(data)):
            if self.why(path, start, end - start):
                found[start - position : end - position] = bytes(end - start)
        return bytes(found)

    def why(self, path: str, start: int, size: int) -> str:
        """The system's message for some bytes of a file; empty if they were read, or
        not tried."""
        for at, _ in blocks(start, start + size) if self.is_bad else ():
            if why := self._blocks.get((path, at // BLOCK)):
                return why
        return ""

    def open_readonly(self, path: str) -> ReadFile:
        """See L{IFiles.open_readonly}."""
        with naming(path):
            return ReadFile(self._files.open_readonly(path), path, self)

    def exists(self, path: str) -> bool:
        """See L{IFiles.exists}."""
        with naming(path):
            return self._files.exists(path)

    def size(self, path: str) -> int:
        """See L{IFiles.size}."""
        with naming(path):
            return self._files.size(path)

    def modified_ms(self, path: str) -> int:
        """See L{IFiles.modified_ms}."""
        with naming(path):
            return self._files.modified_ms(path)

    def list(self, path: str) -> list[str]:
        """See L{IFiles.list}."""
        with naming(path):
            return self._files.list(path)

    def is_dir(self, path: str) -> bool:
        """See L{IFiles.is_dir}."""
        with naming(path):
            return self._files.is_dir(path)

    def read(self, path: str) -> bytes:
        """See L{IFiles.read}."""
        with naming(path):
            return self._files.read(path)

    def usage(self, path: str) -> tuple[int, int]:
        """See L{IFiles.usage}."""
        return self._files.usage(path)

    open = make_dirs = remove = remove_dir = rename = sync_dir = _refuse

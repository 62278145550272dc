# -*- test-case-name: tests.store.reader.test_unreadable -*-
"""A disk of which some blocks cannot be read, for who reads a store all the same.

Where a read is refused, it is done again block by block. The blocks that cannot be read
are zeros then, and it is noted which ones they are; they are not tried again, as a bad
disk may take seconds for each, and what is between them is read at once. What cannot
even be opened ends in one sentence. So does a directory that cannot be listed; but for
who wants to go on all the same it is empty, and that is noted, too. Nothing is written.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
from collections.abc import Iterator
from typing import Final, NoReturn, final

from zope.interface import implementer

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK, blocks
from rocketbroker.files.interfaces import IFile, IFiles

#: Why a directory cannot be listed, or what is in it not be looked at.
REFUSALS: Final = frozenset((errno.EACCES, errno.EPERM, errno.EIO))


@final
class Unread:
    """Bytes of a file that cannot be read, or a directory that cannot be listed.

    @ivar start: the first; 0 of a directory.
    @ivar end: the one behind; 0 of a directory.
    @ivar why: what the system said.
    """

    __slots__ = ("end", "path", "start", "why")

    def __init__(self, path: str, start: int, end: int, why: str) -> None:
        self.path = path
        self.start = start
        self.end = end
        self.why = why


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Say of which file the system refused what; but not that it is gone.

    @raise StoreError: one sentence.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error


def _refuse() -> NoReturn:
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
        if self._files.why(self._path, position, size):
            data = self._around(size, position)
        else:
            data = self._run(size, position)
        behind = min(self.length - position, size) - len(data)
        return data if behind <= 0 else data + bytes(behind)

    def _around(self, size: int, position: int) -> bytes:
        """Bytes of which some are known not to be readable."""
        found = []
        end = min(position + size, self._file.size())
        for is_known, run in itertools.groupby(blocks(position, end), self._is_known):
            parts = list(run)
            start, length = parts[0][0], parts[-1][1] - parts[0][0]
            found.append(bytes(length) if is_known else self._run(length, start))
        return b"".join(found)

    def _is_known(self, part: tuple[int, int]) -> bool:
        start, end = part
        return self._files.why(self._path, start, end - start) != ""

    def _run(self, size: int, position: int) -> bytes:
        """Bytes of which that is not known."""
        try:
            return self._file.pread(size, position)
        except OSError:
            end = min(position + size, self._file.size())
            return b"".join(self._block(*part) for part in blocks(position, end))

    def _block(self, start: int, end: int) -> bytes:
        """Bytes of one block."""
        try:
            return self._file.pread(end - start, start)
        except OSError as error:
            first = start // BLOCK * BLOCK
            behind = max(min(first + BLOCK, self._file.size()), first + 1)
            self._files.note(self._path, first, behind, error)
            return bytes(end - start)

    def pwrite(self, data: bytes, position: int) -> int:
        """Refused."""
        _refuse()

    def allocate(self, position: int, size: int) -> None:
        """Refused."""
        _refuse()

    def truncate(self, size: int) -> None:
        """Refused."""
        _refuse()

    def size(self) -> int:
        """See L{IFile.size}."""
        return self._file.size()

    def datasync(self) -> None:
        """Refused."""
        _refuse()

    def map(self, size: int, writable: bool) -> mmap.mmap:
        """See L{IFile.map}."""
        return self._file.map(size, writable)

    def lock(self) -> bool:
        """Refused."""
        _refuse()

    def close(self) -> None:
        """See L{IFile.close}."""
        self._file.close()


@final
@implementer(IFiles)
class ReadFiles:
    """A file system that is only read.

    @ivar is_bad: whether there is something that could not be read.
    @ivar goes_on: whether a directory that cannot be listed is noted, and no error.
    """

    def __init__(self, files: IFiles) -> None:
        self._files = files
        self.goes_on = False
        self._refused: set[str] = set()
        self._blocks: dict[str, dict[int, str]] = {}
        self._unread: list[Unread] = []
        self.is_bad = False

    def taken(self) -> list[Unread]:
        """What could not be read since this was asked, in the order of the attempts."""
        found, self._unread = self._unread, []
        return found

    def note(self, path: str, start: int, end: int, error: OSError) -> None:
        """A block cannot be read.

        @raise StoreError: that is not the disk's fault.
        """
        if error.errno in (errno.EBADF, errno.EISDIR, errno.EINVAL):
            raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
        why = error.strerror or "it cannot be read"
        self._blocks.setdefault(path, {})[start // BLOCK] = why
        self.is_bad = True
        if self._unread:
            last = self._unread[-1]
            if (last.path, last.end, last.why) == (path, start, why):
                last.end = end
                return
        self._unread.append(Unread(path, start, end, why))

    def why(self, path: str, start: int, size: int) -> str:
        """What the system said of some bytes of a file; empty if they could be read, or
        nobody has tried."""
        blocks = self._blocks.get(path)
        if not blocks:
            return ""
        for block in range(start // BLOCK, -(-(start + size) // BLOCK)):
            if block in blocks:
                return blocks[block]
        return ""

    def open(self, path: str, create: bool = False) -> IFile:
        """Refused."""
        _refuse()

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
            try:
                return self._files.list(path)
            except OSError as error:
                if not self._goes_on_without(path, error):
                    raise
                return []

    def is_dir(self, path: str) -> bool:
        """See L{IFiles.is_dir}. Also if nobody may know what it is."""
        with naming(path):
            try:
                return self._files.is_dir(path)
            except OSError as error:
                if not self._goes_on_without(os.path.dirname(path), error):
                    raise
                return True

    def _goes_on_without(self, path: str, error: OSError) -> bool:
        """Whether a directory is left out; it is noted then, once."""
        if not self.goes_on or error.errno not in REFUSALS:
            return False
        if path not in self._refused:
            self._refused.add(path)
            why = error.strerror or "it cannot be read"
            self._unread.append(Unread(path, 0, 0, why))
        return True

    def is_refused(self, path: str) -> bool:
        """Whether a directory was left out."""
        return path in self._refused

    def make_dirs(self, path: str) -> None:
        """Refused."""
        _refuse()

    def remove(self, path: str) -> None:
        """Refused."""
        _refuse()

    def remove_dir(self, path: str) -> None:
        """Refused."""
        _refuse()

    def rename(self, old: str, new: str) -> None:
        """Refused."""
        _refuse()

    def sync_dir(self, path: str) -> None:
        """Refused."""
        _refuse()

    def read(self, path: str) -> bytes:
        """See L{IFiles.read}."""
        with naming(path):
            return self._files.read(path)

    def usage(self, path: str) -> tuple[int, int]:
        """See L{IFiles.usage}."""
        return self._files.usage(path)

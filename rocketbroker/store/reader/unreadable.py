# -*- test-case-name: tests.store.reader.test_unreadable -*-
"""Files that the disk cannot read, in a directory that is only read.

Of a file of the commit log single blocks may be bad: they read as zeros, and are noted.
Any other file that cannot be read is bad as a whole: one error with one sentence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple, final

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK, blocks, pieces
from rocketbroker.files.interfaces import IFile


class Unread(NamedTuple):
    """Bytes of a file of the log that cannot be read, from C{start} to C{end}; or a
    whole file, with both 0. C{why} is the system's message."""

    path: str
    start: int
    end: int
    why: str


@final
class Unreadable:
    """All that could not be read so far.

    @ivar is_bad: whether there is anything.
    """

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, int], str] = {}
        self._files: dict[str, str] = {}
        self._new: list[Unread] = []
        self.is_bad = False

    def taken(self) -> list[Unread]:
        """What could not be read since the last call, in the order of reading."""
        found, self._new = self._new, []
        return found

    @contextlib.contextmanager
    def naming(self, path: str) -> Iterator[None]:
        """Open a file, or read one that is no file of the log; once refused, it is not
        tried again.

        @raise StoreError: it cannot be read; one sentence.
        @raise FileNotFoundError: it is gone.
        """
        try:
            if path not in self._files:
                yield
                return
        except FileNotFoundError:
            raise
        except OSError as error:
            self._files[path] = why = error.strerror or "it cannot be read"
            self._note(Unread(path, 0, 0, why))
        raise StoreError(f"{path} cannot be read: {self._files[path]}.")

    def pread(self, path: str, file: IFile, size: int, position: int) -> bytes:
        """Bytes of a file of the log, zeros where they cannot be read."""
        if not self.is_bad:
            # So it nearly always is; an error comes again below.
            with contextlib.suppress(OSError):
                return file.pread(size, position)
        found = []
        for at, piece, error in pieces(file, size, position):
            found.append(piece)
            start = at // BLOCK * BLOCK
            if error is not None and (path, start) not in self._blocks:
                self._blocks[path, start] = why = error.strerror or "it cannot be read"
                self._note(Unread(path, start, min(start + BLOCK, file.size()), why))
        return b"".join(found)

    def _note(self, unread: Unread) -> None:
        self.is_bad = True
        last = self._new[-1] if self._new else None
        if last and (last.path, last.end, last.why) == (*unread[:2], unread.why):
            unread = self._new.pop()._replace(end=unread.end)
        self._new.append(unread)

    def why(self, path: str, start: int, size: int) -> str:
        """The system's message for some bytes of a file of the log; empty if they were
        read, or not tried."""
        for at, _ in blocks(start, start + size) if self.is_bad else ():
            if why := self._blocks.get((path, at // BLOCK * BLOCK)):
                return why
        return ""

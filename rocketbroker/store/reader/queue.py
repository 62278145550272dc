# -*- test-case-name: tests.store.reader.test_directory -*-
"""One queue of a directory that is opened for reading only.

A file that is missing between others is like one that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.store.reader.file_sequence import FileSequence
from rocketbroker.store.reader.unreadable import Unreadable

#: Whether a record of a size stands at a position of the log.
IsRecord: TypeAlias = Callable[[int, int], bool]


@final
class QueueReader:
    """The files of one queue, and what can be read of it.

    @ivar row: the files.
    @ivar file_size: the bytes of each; 0 without any.
    @ivar start: the number of the first entry.
    @ivar first: the first offset that can be read.
    @ivar end: the offset behind the last one.
    """

    __slots__ = ("end", "file_size", "first", "row", "start")

    def __init__(self, files: IFiles, folder: str, unread: Unreadable) -> None:
        """
        @param unread: is told what cannot be read.
        """
        self.row = FileSequence(files, folder, SIZE, unread)
        self.file_size = self.row.size
        self.start = self.row.start // SIZE
        self.first = self.start
        self.end = self.start

    def path_of(self, offset: int) -> str:
        """The file that holds an entry; empty if none does."""
        return self.row.path_of(offset * SIZE)

    def limit(self) -> int:
        """The number of the entry that would stand behind the last file."""
        return self.row.end // SIZE

    def entries(self, offset: int, count: int) -> list[tuple[int, int, int]]:
        """Entries from an offset on, to the end of one file at the most.

        @raise StoreError: the file cannot be read, or was removed meanwhile; one
            sentence.
        """
        return list(ENTRY.iter_unpack(self.read(offset, count)))

    def read(self, offset: int, count: int) -> bytes:
        """The bytes of some entries from an offset on; see L{entries}."""
        return self.row.read(offset * SIZE, count * SIZE)

    def entry(self, offset: int) -> tuple[int, int, int] | None:
        """One entry; None if there is none, or its file cannot be read or is
        missing."""
        try:
            entries = self.entries(offset, 1)
        except StoreError:
            return None
        return entries[0] if entries else None

    def behind_file(self, offset: int) -> int:
        """The first offset behind the file that holds an entry."""
        return self.row.behind_file(offset * SIZE) // SIZE

    # The range.

    def bound(self, lowest: int, is_record: IsRecord | None) -> None:
        """Find the first and the last offset that can be read.

        @param lowest: where the log begins.
        @param is_record: asked of the last entries, which may never have been written
            whole; C{None} after a clean stop: their records were there.
        """
        low, high = self.start, self.limit()
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry is None or entry[1] > 0:
                low = middle + 1
            else:
                high = middle
        end = low if is_record is None else self.last_whole(low, lowest, is_record)
        low, high = self.start, end
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry is not None and (entry[1] == FILLED_SIZE or entry[0] < lowest):
                low = middle + 1
            else:
                high = middle
        self.first = low
        self.end = end

    def last_whole(self, end: int, lowest: int, is_record: IsRecord) -> int:
        """The offset behind the last entry that leads to a record, or is one of those
        before the first, or that cannot be read.

        @param end: where to begin to look, backwards.
        """
        while end > self.start and (entry := self.entry(end - 1)) is not None:
            position, size, _ = entry
            if size == FILLED_SIZE or position < lowest or is_record(position, size):
                break
            end -= 1
        return end

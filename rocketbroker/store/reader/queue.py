# -*- test-case-name: tests.store.reader.test_directory -*-
"""One queue of a directory that is opened for reading only.

It begins behind the last file that is missing. The files before that are a part of
their own, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.store.reader.file_sequence import FileSequence
from rocketbroker.store.reader.unreadable import ReadFiles

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
    @ivar whole_end: of those that lead to a record; -1 before it was looked for.
    @ivar before: the part before the files that are missing.
    """

    __slots__ = (
        "_files",
        "before",
        "end",
        "file_size",
        "first",
        "row",
        "start",
        "whole_end",
    )

    def __init__(self, files: ReadFiles, folder: str, below: int | None = None) -> None:
        """
        @param below: leave out the files from this byte on.
        """
        self._files = files
        self.row = FileSequence(files, folder, SIZE, below)
        self.before: QueueReader | None = None
        if self.row.gap >= 0:
            self.before = QueueReader(files, folder, self.row.gap)
        self.file_size = self.row.size
        self.start = self.row.start // SIZE
        self.first = self.start
        self.end = self.start
        self.whole_end = -1

    def part(self, offset: int) -> QueueReader:
        """The part that an offset is in; this one if it is in none."""
        part: QueueReader | None = self
        while part is not None and offset < part.start:
            part = part.before
        return part if part is not None and offset < part.limit() else self

    def path_of(self, offset: int) -> str:
        """The file that holds an entry; empty if none does."""
        return self.row.path_of(offset * SIZE)

    def limit(self) -> int:
        """The number of the entry that would stand behind the last file."""
        return self.row.end // SIZE

    def entries(self, offset: int, most: int) -> list[tuple[int, int, int]]:
        """Entries from an offset on, to the end of one file at the most.

        @raise StoreError: the file was removed meanwhile; one sentence.
        """
        return list(ENTRY.iter_unpack(self.read(offset, most)))

    def read(self, offset: int, most: int) -> bytes:
        """The bytes of some entries from an offset on; see L{entries}."""
        return self.row.read(offset * SIZE, most * SIZE)

    def unread(self, offset: int) -> str:
        """The disk's error for an entry; empty if it was read."""
        if not self._files.is_bad or not self.file_size:
            return ""
        at = offset * SIZE % self.file_size
        return self._files.why(self.path_of(offset), at, SIZE)

    # The range.

    def bound(self, lowest: int, is_record: IsRecord | None) -> None:
        """Find the first and the last offset that can be read, here and in the parts
        before.

        @param lowest: where the log begins.
        @param is_record: asked of the last entries, which may never have been written
            whole; L{None} after a clean stop: their records were there.
        """
        low, high = self.start, self.limit()
        while low < high:
            middle = (low + high) // 2
            _, size, _ = self.entries(middle, 1)[0]
            if size > 0 or self.unread(middle):
                low = middle + 1
            else:
                high = middle
        end = low if is_record is None else self.last_whole(low, lowest, is_record)
        low, high = self.start, end
        while low < high:
            middle = (low + high) // 2
            position, size, _ = self.entries(middle, 1)[0]
            is_before = position < lowest and not self.unread(middle)
            if size == FILLED_SIZE or is_before:
                low = middle + 1
            else:
                high = middle
        self.first = low
        self.end = end
        if self.before is not None:
            self.before.bound(lowest, is_record)

    def last_whole(self, end: int, lowest: int, is_record: IsRecord) -> int:
        """The offset behind the last entry that leads to a record, or is one of those
        before the first.

        @param end: where to begin to look, backwards.
        """
        while end > self.start:
            position, size, _ = self.entries(end - 1, 1)[0]
            if size == FILLED_SIZE or position < lowest or is_record(position, size):
                break
            end -= 1
        return end

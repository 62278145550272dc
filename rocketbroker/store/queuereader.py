# -*- test-case-name: tests.store.test_reader -*-
"""One queue of a directory that is opened for reading only."""

from __future__ import annotations

from typing import final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.store.filerow import FileRow


@final
class QueueReader:
    """The files of one queue, and what can be read of it.

    @ivar row: the files.
    @ivar file_size: the bytes of each; 0 without any.
    @ivar start: the number of the first entry.
    @ivar first: the first offset that can be read.
    @ivar end: the offset behind the last one.
    @ivar whole_end: of those that lead to a record; -1 before it was looked for.
    """

    __slots__ = ("end", "file_size", "first", "row", "start", "whole_end")

    def __init__(self, files: IFiles, folder: str) -> None:
        self.row = FileRow(files, folder, SIZE)
        self.file_size = self.row.size
        self.start = self.row.start // SIZE
        self.first = self.start
        self.end = self.start
        self.whole_end = -1

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
        """The same as they stand in the file."""
        return self.row.read(offset * SIZE, most * SIZE)

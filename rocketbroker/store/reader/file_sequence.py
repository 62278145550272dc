# -*- test-case-name: tests.store.reader.test_directory -*-
"""The files of one queue opened for reading only: a sequence of bytes, over files of
one size.

A broker may use them: a file that it removes meanwhile is an error that says so.

docs/facts/store.md 2.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.store.reader.log import size_of_files
from rocketbroker.store.reader.unreadable import Unreadable


@final
class FileSequence:
    """The files of one directory.

    @ivar lengths: how long the files are, by their first byte.
    @ivar size: how long each should be (one that is short reads as zeros behind its
        end); 0 without any.
    @ivar start: the first byte.
    @ivar end: the byte behind the last file.
    """

    __slots__ = (
        "_files",
        "_folder",
        "_paths",
        "_unread",
        "end",
        "lengths",
        "size",
        "start",
    )

    def __init__(
        self,
        files: IFiles,
        folder: str,
        unit: int,
        unread: Unreadable,
    ) -> None:
        """
        @param unit: the size of an entry; the size of files is a multiple of it.
        @param unread: is told what cannot be read.
        """
        self._unread = unread
        self._files = files
        self.lengths: dict[int, int] = {}
        paths = {}
        for name in files.list(folder):
            start = position_of_name(name)
            path = os.path.join(folder, name)
            if start >= 0 and not files.is_dir(path):
                # A broker that cleans its store may have removed it meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    self.lengths[start] = files.size(path)
                    paths[start] = path
        whole = {at: length - length % unit for at, length in self.lengths.items()}
        self.size = size_of_files(whole)
        self._paths = {
            start: path
            for start, path in sorted(paths.items())
            if not self.size or start % self.size == 0
        }
        self._folder = folder
        self.start = min(self._paths, default=0)
        self.end = max(self._paths, default=0) + self.size

    def missing(self) -> list[str]:
        """The paths of files that are missing between others, the first of each gap."""
        return [
            os.path.join(self._folder, segment_name(before + self.size))
            for before, behind in itertools.pairwise(self._paths)
            if before + self.size != behind
        ]

    def behind_file(self, position: int) -> int:
        """The first byte of the next file behind a byte."""
        return min((at for at in self._paths if at > position), default=self.end)

    def path_of(self, position: int) -> str:
        """The file that holds a byte; empty if none does."""
        at = position % self.size if self.size else 0
        return self._paths.get(position - at, "")

    def read(self, position: int, size: int) -> bytes:
        """Bytes from a position on, to the end of one file at the most.

        @raise StoreError: the file cannot be read, or is missing; one sentence.
        """
        path = self.path_of(position)
        if not self.start <= position < self.end or not self.size:
            return b""
        if not path:
            name = segment_name(position - position % self.size)
            raise StoreError(f"{os.path.join(self._folder, name)} is missing.")
        at = position % self.size
        size = min(size, self.size - at)
        try:
            with self._unread.naming(path):
                file = self._files.open_readonly(path)
                with contextlib.closing(file):
                    return file.pread(size, at).ljust(size, b"\0")
        except FileNotFoundError:
            raise StoreError(f"{path} was removed while it was read.") from None

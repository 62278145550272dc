# -*- test-case-name: tests.store.test_reader -*-
"""The files of one queue opened for reading only: a row of bytes, over files of one
size.

A broker may use them: one that it removes meanwhile is said to be gone.

The store sheet, section 2.
"""

from __future__ import annotations

import os
from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.segments import position_of_name


@final
class FileRow:
    """What is in one directory.

    @ivar size: the bytes of each file; 0 without any.
    @ivar start: the first byte.
    @ivar end: the byte behind the last file.
    """

    __slots__ = ("_files", "_paths", "end", "size", "start")

    def __init__(self, files: IFiles, folder: str, unit: int) -> None:
        """
        @param unit: what the bytes come in; the size of files is a multiple of it.
        """
        self._files = files
        found = {}
        for name in files.list(folder):
            if position_of_name(name) >= 0:
                found[position_of_name(name)] = os.path.join(folder, name)
        sizes = []
        for start, path in list(found.items()):
            try:
                sizes.append(files.size(path))
            except FileNotFoundError:
                # A broker that cleans its store has removed it meanwhile.
                del found[start]
        #: The longest: one that a crash left short reads as zeros behind its end.
        self.size = max(sizes, default=0)
        self.size -= self.size % unit
        self._paths: dict[int, str] = {}
        for start in sorted(found, reverse=True):
            if self._paths and start + self.size not in self._paths:
                break
            self._paths[start] = found[start]
        self.start = min(self._paths, default=0)
        self.end = max(self._paths, default=0) + self.size

    def path_of(self, position: int) -> str:
        """The file that holds a byte; empty if none does."""
        at = position % self.size if self.size else 0
        return self._paths.get(position - at, "")

    def read(self, position: int, size: int) -> bytes:
        """Bytes from a position on, to the end of one file at the most.

        @raise StoreError: the file was removed meanwhile; one sentence.
        """
        path = self.path_of(position)
        if not path or not self.size:
            return b""
        at = position % self.size
        size = min(size, self.size - at)
        try:
            file = self._files.open_readonly(path)
        except FileNotFoundError:
            raise StoreError(f"{path} was removed while it was read.") from None
        try:
            return file.pread(size, at).ljust(size, b"\0")
        finally:
            file.close()

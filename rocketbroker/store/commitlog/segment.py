# -*- test-case-name: tests.store.commitlog.test_segments -*-
"""One file of the commit log; L{rocketbroker.store.commitlog.segments} has them all.

Written by C{pwrite}: on a full disk that is an error, where a touched mapping is a
signal that kills the process. Read through a mapping, or by C{pread} where the disk may
have to work: a page fault holds the interpreter lock as long as the disk takes.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
from typing import Final, final

from rocketbroker.files.interfaces import IFile
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.commitlog.missing_file import MissingFile

#: How many bytes of blocks are reserved at once, and kept reserved ahead of the writer:
#: a second of the fastest load, and not a whole GiB for somebody's laptop.
ALLOCATION: Final = 64 << 20


@final
class Segment:
    """One file of the log.

    @ivar start: the position of its first byte.
    @ivar end: the position behind its last byte.
    @ivar path: where it is.
    @ivar allocated: how many of its bytes have blocks for certain.
    @ivar is_dir_synced: whether its directory entry is on the disk.
    @ivar warmed: to how many of its bytes zeros were written ahead.
    """

    __slots__ = (
        "_file",
        "_open_files",
        "_pages",
        "_view",
        "allocated",
        "end",
        "is_dir_synced",
        "path",
        "start",
        "warmed",
    )

    def __init__(
        self,
        start: int,
        size: int,
        path: str,
        open_files: OpenFiles,
        file: IFile | None = None,
    ) -> None:
        """
        @param open_files: opens it when it is used, if it is not open.
        @param file: it, if it is to stay open, as messages are appended to it.
        """
        self.start = start
        self.end = start + size
        self.path = path
        self._open_files = open_files
        self._file = file
        self.allocated = 0
        self.is_dir_synced = True
        self.warmed = 0
        self._view: mmap.mmap | None = None
        self._pages: memoryview | None = None

    @property
    def file(self) -> IFile:
        """The open file, to be read, and to be written to while it stays open."""
        return self._file or self._open_files.get_to_read(self, self.path)

    @property
    def is_missing(self) -> bool:
        """Whether it is a stand-in."""
        return type(self._file) is MissingFile

    def keep_open(self) -> None:
        """Let it stay open, as messages are appended to it.

        @raise OSError: it cannot be opened for that.
        """
        self._file = self._writable()

    def let_go(self) -> None:
        """Let it be closed, as it is full and on the disk."""
        if self._file is not None and not self.is_missing:
            self._open_files.put(self, self._file)
            self._file = None

    def _writable(self) -> IFile:
        return self._file or self._open_files.get(self, self.path)

    def view(self) -> mmap.mmap:
        """A mapping of the whole file. Slices of it are copies."""
        view = self._view
        if view is None:
            size = self.end - self.start
            try:
                view = self.file.map(size, False)
            except OSError as error:
                if error.errno != errno.EROFS:
                    raise
                # The file system was made read-only since it was opened, to be written.
                file = self._open_files.files.open_readonly(self.path)
                view = file.map(size, False)
                file.close()
            self._view = view
            if self._open_files.is_random(self.path):
                view.madvise(mmap.MADV_RANDOM)
        return view

    def pages(self) -> memoryview:
        """The same; slices of it are no copies. Who has one keeps the mapping, and so
        the blocks of a removed file, for as long."""
        pages = self._pages
        if pages is None:
            pages = self._pages = memoryview(self.view())
        return pages

    def read_ahead(self, is_wanted: bool) -> None:
        """Let the system read more of what is open than is asked for, or not."""
        file = self._file or self._open_files.opened(self)
        if file is not None:
            file.read_ahead(is_wanted)
        if self._view is not None:
            self._view.madvise(mmap.MADV_NORMAL if is_wanted else mmap.MADV_RANDOM)

    def forget_pages(self) -> None:
        """Let the system alone keep what was read through the mapping."""
        if self._view is not None:
            self._view.madvise(mmap.MADV_DONTNEED)

    def allocate(self, until: int, after: int = 0) -> bool:
        """Reserve blocks up to a position, at most to the end.

        @param after: blocks before this position are not reserved: writes take them.
        @return: whether there was anything to do.
        @raise OSError: there is no room.
        """
        wanted = min(until, self.end) - self.start
        if wanted <= self.allocated:
            return False
        first = max(self.allocated, after - self.start)
        if first < wanted:
            self._writable().allocate(first, wanted - first)
        self.allocated = wanted
        return True

    def cut(self, position: int) -> None:
        """Let zeros follow a position, whatever was written there."""
        file = self._writable()
        file.truncate(position - self.start)
        file.truncate(self.end - self.start)
        self.allocated = min(self.allocated, position - self.start)

    def overwrite(self, position: int, end: int) -> None:
        """I{Blocking.} Put zeros on the disk from one position up to another; others
        may be reading through the mapping."""
        file = self._writable()
        for start in range(position, end, ALLOCATION):
            size = min(ALLOCATION, end - start)
            file.pwrite(bytes(size), start - self.start)
        file.datasync()

    def close(self) -> None:
        """Close file and mapping."""
        if self._pages is not None:
            self._pages.release()
            self._pages = None
        if self._view is not None:
            # If a part of it is being sent, the mapping goes with that.
            with contextlib.suppress(BufferError):
                self._view.close()
            self._view = None
        if self._file is not None:
            self._file.close()
        self._open_files.drop(self)

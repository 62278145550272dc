# -*- test-case-name: tests.store.consumequeue.test_files -*-
"""The files of one queue: a sequence of bytes over files of one size.

They hold entries of 20 bytes, units of batches, or units of the extension; here they
are only bytes. A file is named by its first byte.

C{docs/facts/store.md} 2.
"""

from __future__ import annotations

import errno
import os
from typing import Final, final

from rocketbroker.files.blocks import BLOCK, UNREADABLE, is_bad
from rocketbroker.files.interfaces import IFile
from rocketbroker.files.misplaced_files import clear_for_file, clear_for_folder
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.consumequeue.deferred_writes import (
    DeferredWrites,
    PendingWrites,
    overlay,
)
from rocketbroker.store.disk_usage import NO_ROOM
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.flush_threshold import is_due
from rocketbroker.store.quarantine import QueueQuarantine

#: The errors where a directory's place is taken by a file, or a file's by a directory.
_IN_THE_WAY: Final = (
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
    FileNotFoundError,
)


@final
class QueueFile:
    """One file of a queue. It is opened when it is used (L{OpenFiles}), but not once it
    is closed: then its name may be that of another file, as its topic was deleted and
    made again."""

    __slots__ = (
        "_is_closed",
        "_open_files",
        "is_lost",
        "path",
        "rewrite",
        "start",
        "unsynced",
    )

    def __init__(
        self, open_files: OpenFiles, start: int, path: str, file: IFile | None = None
    ) -> None:
        """
        @param file: it, if it is open already.
        """
        self._open_files = open_files
        self._is_closed = False
        self.start = start
        self.path = path
        self.unsynced = False
        #: Whether it replaces one that could not be written while the broker runs, and
        #: whose entries are therefore missing.
        self.is_lost = False
        #: Whether a sync has failed: the system may take unwritten pages for written,
        #: and the next sync would succeed without them.
        self.rewrite = False
        if file is not None:
            open_files.put(self, file)

    @property
    def file(self) -> IFile:
        """The open file.

        @raise FileNotFoundError: it is closed.
        """
        file = self._open_files.get(self, self.path)
        self._check()
        return file

    def pread(self, size: int, position: int) -> bytes:
        """See L{IFile.pread}.

        @raise FileNotFoundError: it is closed.
        """
        file = self._open_files.get_to_read(self, self.path)
        self._check()
        return file.pread(size, position)

    def _check(self) -> None:
        """Let go what was opened for this one after it was closed, or meanwhile, in
        another thread."""
        if self._is_closed:
            self._open_files.drop(self)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)

    def replace(self, file: IFile) -> None:
        """Use another file from now on; running reads of the one before go on."""
        self._open_files.put(self, file)
        self.unsynced = True

    def sync(self, end: int) -> None:
        """I{Blocking.} Put it on the disk.

        @param end: the bytes of the queue before this one are not written meanwhile.
        @raise OSError: the disk refused.
        """
        file = self.file
        if self.rewrite:
            content = file.pread(max(0, end - self.start), 0)
            file.pwrite(content, 0)
        self.unsynced = False
        try:
            file.datasync()
        except OSError:
            self.unsynced = self.rewrite = True
            raise
        self.rewrite = False

    def close(self) -> None:
        """Let the file go, as it is not used any more; running reads of it go on."""
        self._is_closed = True
        self._open_files.drop(self)


@final
class QueueFiles:
    """The files of one queue.

    @ivar folder: their directory.
    @ivar size: the bytes of each.
    @ivar setting: the name of the setting of that size.
    @ivar all: the files, by their first byte, in order and without gaps.
    @ivar has_others: whether something else is known to be in their directory.
    """

    __slots__ = (
        "_deferred_writes",
        "_dir_unsynced",
        "_files",
        "_flushed",
        "_open_files",
        "_pending",
        "_quarantine",
        "_zeros_from",
        "all",
        "folder",
        "has_others",
        "setting",
        "size",
    )

    def __init__(
        self,
        open_files: OpenFiles,
        folder: str,
        size: int,
        setting: str = "mappedFileSizeConsumeQueue",
        deferred_writes: DeferredWrites | None = None,
        quarantine: QueueQuarantine | None = None,
    ) -> None:
        """
        @param open_files: opens them.
        @param setting: the name of the setting of the size.
        @param deferred_writes: counts the bytes that the disk has no room for; without
            it that is an error.
        @param quarantine: takes the files that the disk cannot read; the same.
        """
        self._quarantine = quarantine
        self._deferred_writes = deferred_writes
        self._pending: PendingWrites | None = None
        self._open_files = open_files
        self._files = open_files.files
        self.setting = setting
        self._dir_unsynced = False
        #: Where the queue ended at its last flush.
        self._flushed = 0
        #: From where on zeros follow in the last file, if that was seen; else -1.
        self._zeros_from = -1
        self.folder = folder
        self.size = size
        self.has_others = False
        self.all: list[QueueFile] = []

    def know(self, start: int, count: int) -> None:
        """Have files, from one that starts at a byte on."""
        self.all = [
            QueueFile(self._open_files, at, f"{self.folder}/{segment_name(at)}")
            for at in range(start, start + count * self.size, self.size)
        ]

    def find(self, position: int) -> QueueFile | None:
        """The file that holds a byte."""
        files = self.all
        if not files or position < files[0].start:
            return None
        index = (position - files[0].start) // self.size
        return files[index] if index < len(files) else None

    def read(self, position: int, size: int) -> bytes:
        """Bytes of one file."""
        pending = self._pending
        if pending is None:
            return self._read(position, size)
        size = min(size, self.size - position % self.size)
        # In this order: pieces written in between are seen in both.
        pieces = pending.pieces
        return overlay(self._read(position, size), position, size, pieces)

    def _read(self, position: int, size: int) -> bytes:
        found = self.find(position)
        if found is None:
            return b""
        at = position - found.start
        left = self.size - at
        if size > left:
            size = left
        try:
            if found.is_lost:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            file = self._open_files.opened(found)
            return (found if file is None else file).pread(size, at)
        except FileNotFoundError:
            # It was removed between being found and being opened.
            return b""
        except OSError as error:
            quarantine = self._quarantine
            if quarantine is None or error.errno not in UNREADABLE:
                raise
            if not quarantine.is_starting:
                raise quarantine.refused(found.path, error, at) from error
            self._replace(found, quarantine, error)
            return found.pread(size, at)

    def _replace(
        self, found: QueueFile, quarantine: QueueQuarantine, error: OSError
    ) -> None:
        """Put an empty file in the place of one that cannot be read or written."""
        found.replace(quarantine.replace(found.path, self.size, error))
        found.is_lost = not quarantine.is_starting
        self._dir_unsynced = True

    def write(self, position: int, content: bytes) -> None:
        """Write, over as many files as it takes.

        @raise OSError: the disk refused; with L{DeferredWrites} only if not for want
            of room.
        """
        if self._pending is not None:
            self._pending.put(position, content)
            return
        try:
            self._write(position, content)
        except OSError as error:
            if self._deferred_writes is None or error.errno not in NO_ROOM:
                raise
            self._pending = PendingWrites(self._deferred_writes, self._write)
            self._pending.put(position, content)

    def _write(self, position: int, content: bytes) -> None:
        at = position % self.size
        size = len(content)
        found = self.find(position) or self._add(position - at)
        if at + size <= self.size:
            self._put(found, content, at)
            return
        done = 0
        while done < size:
            at = (position + done) % self.size
            start = position + done - at
            found = self.find(position + done) or self._add(start)
            part = content[done : done + self.size - at]
            self._put(found, part, at)
            done += len(part)

    def _put(self, found: QueueFile, content: bytes, at: int) -> None:
        """Write into one file."""
        try:
            found.file.pwrite(content, at)
        except OSError as error:
            quarantine = self._quarantine
            if quarantine is None or not is_bad(found.file, len(content), at):
                raise
            self._replace(found, quarantine, error)
            found.file.pwrite(content, at)
        found.unsynced = True
        self._zeros_from = -1

    def _add(self, start: int) -> QueueFile:
        if self.all and self.all[-1].start + self.size != start:
            # Entries between are lost; only those that follow can be read. Deferred
            # writes stay: this may be the writing of one.
            self._remove(0)
        path = os.path.join(self.folder, segment_name(start))
        try:
            file = self._make(path)
        except _IN_THE_WAY:
            clear_for_folder(self._files, os.path.dirname(self.folder))
            clear_for_folder(self._files, self.folder)
            clear_for_file(self._files, path)
            file = self._make(path)
        file.truncate(self.size)
        added = QueueFile(self._open_files, start, path, file)
        added.unsynced = True
        self.all = [*self.all, added]
        self._dir_unsynced = True
        return added

    def _make(self, path: str) -> IFile:
        self._files.make_dirs(self.folder)
        return self._open_files.open(path, create=True)

    def cut(self, position: int) -> None:
        """Let nothing follow a position: files that start there or later are removed,
        zeros follow it in its own file."""
        self._flushed = min(self._flushed, position)
        if self._pending is not None:
            self._pending.cut(position)
        keep = 0
        while keep < len(self.all) and self.all[keep].start < position:
            keep += 1
        self.drop(keep)
        if keep and position < self.all[-1].start + self.size:
            self._clear(self.all[-1], position - self.all[-1].start)

    def ends_at(self, position: int) -> bool:
        """Whether it is seen that zeros follow a position in the last file, as in a
        file of which nothing was ever cut. That is remembered until the next write: a
        start asks while the file is open, and need not open it again."""
        if not self.all or self._pending is not None:
            return False
        last = self.all[-1]
        at = position - last.start
        if not 0 <= at < self.size:
            return False
        if position != self._zeros_from:
            rest = min(-at % BLOCK, self.size - at)
            try:
                file = last.file
                if file.pread(rest, at) != bytes(rest):
                    return False
                if at + rest < self.size and not file.is_hole(at + rest):
                    return False
            except OSError:
                return False
            self._zeros_from = position
        return True

    def _clear(self, last: QueueFile, at: int) -> None:
        """Let zeros follow a place in a file."""
        if self.ends_at(last.start + at):
            return
        try:
            last.file.truncate(at)
        except OSError as error:
            if self._quarantine is None or not is_bad(last.file, 1, at):
                raise
            self._replace(last, self._quarantine, error)
        last.file.truncate(self.size)
        last.unsynced = True

    def drop(self, keep: int) -> None:
        """Remove all files but the first C{keep}."""
        if not keep and self._pending is not None:
            self._pending.cut(0)
        self._remove(keep)

    def _remove(self, keep: int) -> None:
        gone, self.all = self.all[keep:], self.all[:keep]
        if not keep:
            self._flushed = 0
        # Or a crash could bring them back, behind where the queue ends.
        self._dir_unsynced = self._dir_unsynced or bool(gone)
        self._discard(gone)

    def _discard(self, gone: list[QueueFile]) -> None:
        """Remove files that are out of the queue already."""
        others, self.has_others = self.has_others, True
        for file in gone:
            self._files.remove(file.path)
            file.close()
        self.has_others = others

    def forget(self) -> None:
        """Have no files, as they were moved away; running reads of them go on."""
        if self._pending is not None:
            self._pending.cut(0)
        self._flushed = 0
        self._dir_unsynced = self._dir_unsynced or bool(self.all)
        self.close()

    def drop_before(self, position: int) -> int:
        """Remove the files that end at a position or before it, but never the last.

        @return: how many.
        """
        count = 0
        while (
            count < len(self.all) - 1 and self.all[count].start + self.size <= position
        ):
            count += 1
        gone, self.all = self.all[:count], self.all[count:]
        self._discard(gone)
        return count

    def mark_unsynced(self, position: int, size: int) -> None:
        """Let the next flush put bytes on the disk that are in the files: the process
        that wrote them may have been killed before it did."""
        for start in range(position - position % self.size, position + size, self.size):
            found = self.find(start)
            if found is not None:
                found.unsynced = True

    def mark_dir_unsynced(self) -> None:
        """Let the next flush put the names of the files on the disk: the process that
        made them may have been killed before it did."""
        self._dir_unsynced = True

    def forget_names(self) -> bool:
        """Take the names of the files for ones that are on the disk.

        @return: whether a flush would have put them there.
        """
        were_unsynced, self._dir_unsynced = self._dir_unsynced, False
        return were_unsynced

    @property
    def is_unsynced(self) -> bool:
        """Whether something may not be on the disk."""
        return self._dir_unsynced or any(file.unsynced for file in self.all)

    def flush(self, least_pages: int = 0, end: int = 0) -> int:
        """I{Blocking.} Put them on the disk.

        @param least_pages: only if so many pages came since the last flush.
        @param end: the byte behind the queue's last entry.
        @return: how many files there were to sync.
        """
        if self._pending is not None:
            self._pending.write_all()
        if least_pages and not is_due(self._flushed, end, least_pages, self.size):
            return 0
        count = 0
        for file in self.all:
            if file.unsynced:
                try:
                    file.sync(min(end, file.start + self.size))
                except FileNotFoundError:
                    # Its topic is deleted at this moment.
                    pass
                except OSError:
                    if file in self.all:
                        raise
                count += 1
        self._flushed = end
        if self._dir_unsynced:
            self._dir_unsynced = False
            try:
                topic = os.path.dirname(self.folder)
                for folder in (self.folder, topic, os.path.dirname(topic)):
                    # A topic that was deleted has none any more.
                    if self._files.is_dir(folder):
                        self._files.sync_dir(folder)
            except OSError:
                self._dir_unsynced = True
                raise
        return count

    def close(self) -> None:
        """Have no files; running reads of them go on."""
        gone, self.all = self.all, []
        for file in gone:
            file.close()

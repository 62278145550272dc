# -*- test-case-name: tests.store.commitlog.test_segments -*-
"""The segments, which are the files of the commit log: named by their first position,
all of one size.

A segment is made at its full length, as RocketMQ makes it, but without blocks; these
are reserved some way ahead of the writer, in a thread, so that a full disk is known
before it is hit and a write does not wait for the file system. The next segment is made
in a directory beside the log's, C{commitlog.ahead}, and moved to its place when it is
needed: so no file without records ever stands behind the last one, and no directory in
the log's, both of which a 4.9 broker would stumble over. Where the log's directory is a
file system of its own, C{ahead} has to be inside it.

C{docs/facts/store.md} 1 and 2.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable
from typing import Final, final

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.commitlog.badblocks import BadBlocks
from rocketbroker.store.commitlog.missing_file import MissingFile
from rocketbroker.store.commitlog.segment import ALLOCATION, Segment
from rocketbroker.store.disk_usage import describe_refusal
from rocketbroker.store.file_names import beside, segment_name
from rocketbroker.store.flush_threshold import PAGE

#: How many bytes of pages are written ahead at once, while a roll would have to wait.
WARMED_BATCH_SIZE: Final = 1 << 20

AHEAD: Final = "ahead"


@final
class Segments:
    """The segments of one log, in order and without gaps.

    @ivar open_files: opens those that are not appended to.
    @ivar size: the bytes of each.
    @ivar all: the segments; at least one once the log is open.
    @ivar folders: where new ones go.
    @ivar read_only: where only old ones are.
    @ivar full: those of C{folders} that get no new segments while others do.
    @ivar bad: the blocks that could not be read.
    """

    def __init__(
        self,
        open_files: OpenFiles,
        folders: Iterable[str],
        size: int,
        read_only: Iterable[str] = (),
    ) -> None:
        """
        @param open_files: opens them.
        @param folders: where segments are; a new one goes to each in turn.
        @param read_only: where they are too, but no new one goes.
        """
        self.open_files = open_files
        self._files = open_files.files
        self.read_only = sorted(set(read_only))
        self.folders = sorted(set(folders) - set(self.read_only))
        self.full: frozenset[str] = frozenset()
        self.bad = BadBlocks()
        self.size = size
        self.all: list[Segment] = []
        self._ahead: Segment | None = None
        self._ahead_folder = ""
        #: Directories beside which nothing can be made that can be moved into them.
        self._alone: set[str] = set()
        #: One at a time makes a segment: a thread ahead, or an append that ran into it.
        self._making = threading.Lock()

    @property
    def is_prepared(self) -> bool:
        """Whether the next segment is made."""
        return self._ahead is not None

    def find(self, position: int) -> Segment | None:
        """The segment that holds the byte at C{position}."""
        segments = self.all
        if not segments or position < segments[0].start:
            return None
        index = (position - segments[0].start) // self.size
        return segments[index] if index < len(segments) else None

    def read(self, position: int, size: int, cold: bool) -> bytes:
        """Bytes of one segment; fewer if it ends before."""
        segment = self.find(position)
        if segment is None:
            return b""
        at = position - segment.start
        try:
            if cold:
                return segment.file.pread(min(size, self.size - at), at)
            return segment.view()[at : at + size]
        except FileNotFoundError:
            # It was removed between being found and being opened.
            return b""

    def before_bad(self, segment: Segment, size: int, at: int) -> tuple[bytes, str]:
        """I{Blocking.} Bytes of a segment; see L{BadBlocks.before}."""
        size = min(size, self.size - at)
        return self.bad.before(segment.file, segment.path, segment.start, size, at)

    def around_bad(self, segment: Segment, size: int, at: int) -> bytes:
        """I{Blocking.} Bytes of a segment; see L{BadBlocks.around}."""
        size = min(size, self.size - at)
        return self.bad.around(segment.file, segment.path, segment.start, size, at)

    def keep_last_open(self) -> None:
        """Let the last one stay open: a start has found it, and appends go there.

        @raise OSError: it cannot be written to.
        """
        if os.path.dirname(self.all[-1].path) not in self.read_only:
            self.all[-1].keep_open()

    def prepare(self) -> bool:
        """I{Blocking.} Make the next segment, if that is not done yet.

        @raise OSError: there is no room.
        """
        with self._making:
            start = self.all[-1].end if self.all else 0
            if self._ahead is not None and self._ahead.start == start:
                return False
            self._ahead_folder = self._folder(start)
            self._ahead = self._make(start, self._ahead_folder)
            return True

    def warm(self, max_bytes: int, sync_pages: int) -> bool:
        """I{Blocking.} Write zeros into the segment that is made ahead.

        @param max_bytes: about so many bytes; the next call goes on.
        @param sync_pages: after so many pages they are put on the disk; 0: never.
        @return: whether there was anything to do.
        @raise OSError: there is no room.
        """
        segment = self._ahead
        if segment is None or segment.warmed >= self.size:
            return False
        at_once = min(WARMED_BATCH_SIZE, sync_pages * PAGE or WARMED_BATCH_SIZE)
        zeros = bytes(min(at_once, self.size))
        until = segment.warmed + max_bytes
        synced = segment.warmed
        while segment.warmed < min(until, self.size):
            at = segment.warmed
            with self._making:
                if self._ahead is not segment:
                    # It is in use.
                    return True
                segment.file.pwrite(zeros[: self.size - at], at)
                segment.warmed = at + len(zeros)
                segment.allocated = max(
                    segment.allocated, min(segment.warmed, self.size)
                )
            if sync_pages and segment.warmed - synced >= sync_pages * PAGE:
                synced = segment.warmed
                segment.file.datasync()
        return True

    def roll(self) -> Segment:
        """Put the next segment behind the last; one that is not ready is made now.

        @raise OSError: it cannot be made.
        """
        with self._making:
            return self._roll()

    def _roll(self) -> Segment:
        start = self.all[-1].end if self.all else 0
        segment, folder = self._ahead, self._ahead_folder
        if segment is None or segment.start != start:
            folder = self._folder(start)
            segment = self._make(start, folder)
        self._ahead = None
        segment = self._move(segment, folder)
        # Its name reaches the disk with the first flush, not in the turn of an append.
        segment.is_dir_synced = False
        self.all = [*self.all, segment]
        return segment

    def begin_at(self, start: int) -> None:
        """Let an empty log begin at another position.

        A crash may leave it without a file; then it is an empty one again.

        @raise OSError: the file for that cannot be made, or the old one not removed.
        """
        with self._making:
            self._drop_ahead()
            folder = self._folder(start)
            made = self._make(start, folder)
            old = self.all[0]
            self._files.remove(old.path)
            made = self._move(made, folder)
            made.is_dir_synced = False
            self.all = [made]
            old.close()

    def _drop_ahead(self) -> None:
        """Give up the segment that is made ahead, as another one is the next."""
        if self._ahead is not None:
            self._ahead.close()
            self._files.remove(self._ahead.path)
            self._ahead = None

    def _move(self, segment: Segment, folder: str) -> Segment:
        """Put a segment to its place from where it was made."""
        path = os.path.join(folder, segment_name(segment.start))
        try:
            self._files.rename(segment.path, path)
        except OSError as error:
            segment.close()
            if error.errno != errno.EXDEV or folder in self._alone:
                raise
            self._alone.add(folder)
            segment = self._make(segment.start, folder)
            self._files.rename(segment.path, path)
        segment.path = path
        return segment

    def stand_in(self, start: int, content: bytes) -> Segment:
        """A segment in memory alone, in the place of one that is missing: C{content},
        and zeros behind it."""
        path = os.path.join(self._folder(start), segment_name(start))
        missing = MissingFile(content, self.size)
        return Segment(start, self.size, path, self.open_files, missing)

    def describe_refusal(self, position: int, text: str, error: OSError) -> str:
        """A sentence about an error of the disk of a position's segment; see
        L{rocketbroker.store.disk_usage.describe_refusal}."""
        segment = self.find(position)
        folder = self._folder(position)
        if segment is not None:
            folder = os.path.dirname(segment.path)
        return describe_refusal(self._files, folder, text, error)

    def _folder(self, start: int) -> str:
        folders = [f for f in self.folders if f not in self.full] or self.folders
        return folders[start // self.size % len(folders)]

    def _make(self, start: int, folder: str) -> Segment:
        """Make a segment where none is read."""
        try:
            if folder not in self._alone:
                self._files.make_dirs(beside(folder, AHEAD))
        except OSError:
            self._alone.add(folder)
        if folder in self._alone:
            folder = os.path.join(folder, AHEAD)
            self._files.make_dirs(folder)
        else:
            folder = beside(folder, AHEAD)
        path = os.path.join(folder, segment_name(start))
        file = self.open_files.open(path, create=True)
        try:
            file.truncate(0)
            file.truncate(self.size)
            segment = Segment(start, self.size, path, self.open_files, file)
            segment.allocate(start + ALLOCATION)
        except OSError:
            file.close()
            self._files.remove(path)
            raise
        return segment

    def remove_first(self, begin_at: Callable[[int], None]) -> None:
        """I{Blocking.} Remove the oldest segment, which must not be the last.

        Readers that have it open read on; its blocks are freed when the last closes it.

        @param begin_at: called with the new first position, before the segment goes.
        @raise OSError: the system refuses; it stays in the log. But not if the file
            system of a read-only directory says so: then it is only left out.
        """
        first = self.all[0]
        assert first is not self.all[-1], "the last segment stays"
        try:
            # Somebody else may have done it.
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(first.path)
        except OSError as error:
            is_old = os.path.dirname(first.path) in self.read_only
            if not is_old or error.errno != errno.EROFS:
                raise
        begin_at(first.end)
        with self._making:
            self.all = self.all[1:]
        self.open_files.drop(first)

    def remove_behind(self, position: int) -> None:
        """I{Blocking.} Remove the segments that begin at a position or behind it, but
        never the first; the last one stays open, to be appended to.

        @raise OSError: the system refuses; it can be tried again.
        """
        while len(self.all) > 1 and self.all[-1].start >= position:
            last = self.all[-1]
            if not last.is_missing:
                with contextlib.suppress(FileNotFoundError):
                    self._files.remove(last.path)
                self.sync_dir_of(last)
            with self._making:
                self.all = self.all[:-1]
            self.open_files.drop(last)
        with self._making:
            self._drop_ahead()
        self.keep_last_open()

    def sync_dir_of(self, segment: Segment) -> None:
        """I{Blocking.} Put a segment's directory entry on the disk."""
        self._files.sync_dir(os.path.dirname(segment.path))
        segment.is_dir_synced = True

    def close(self) -> None:
        """Close all; a segment that was prepared and not used is removed."""
        for segment in self.all:
            segment.close()
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        self.remove_ahead()

    def remove_ahead(self) -> None:
        """Remove segments that this or an earlier process prepared and did not use.

        A directory among them is not one, and stays.
        """
        for folder in self.folders:
            for ahead in (beside(folder, AHEAD), os.path.join(folder, AHEAD)):
                if not self._files.is_dir(ahead):
                    continue
                for name in self._files.list(ahead):
                    path = os.path.join(ahead, name)
                    if not self._files.is_dir(path):
                        self._files.remove(path)
                if not self._files.list(ahead):
                    self._files.remove_dir(ahead)

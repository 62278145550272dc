# -*- test-case-name: tests.store.reader.test_log -*-
"""The files of the log in a directory that is only read, even if some are damaged.

All are of one size, which is written nowhere; their names are their first positions.
In a copy that was not complete, or on a bad disk, one may be shorter, longer, or
missing. The others are read all the same: one that is too short reads as zeros behind
its end, of one that is too long the rest is left out, and one that is missing leaves a
gap.

A directory may have none of them. RocketMQ's broker makes the first file of its log
when the first message comes. Until then its store has a C{checkpoint} and an empty
directory for the log, whether it runs, was stopped or was killed. That is a store, and
it is empty. (Ours always has a file of the log.) The last file of a log is never
removed by age, and a queue gets its first file after the log. So if queues have files,
the log is lost, or it is elsewhere; and the next start of any broker removes these
queues.

docs/facts/store.md 2 and 15.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.store.commitlog.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.store.reader.unreadable import Unreadable


def size_of_files(lengths: Mapping[int, int], given: int = 0) -> int:
    """The size that all files of a sequence should have.

    The length of all, if all have one that fits; else the given one; else the distance
    of two of them, if one has it; else the length that fits most names and files.

    @param lengths: how long they are, by where they begin.
    @param given: the size in the settings; 0 if it is not known.
    @return: 0 if all are empty.
    """
    votes = Counter(length for length in lengths.values() if length)
    if not votes:
        return 0

    def fitting(size: int) -> int:
        return sum(start % size == 0 for start in lengths)

    first = next(iter(votes))
    if len(votes) == 1 and votes[first] > 1 and fitting(first) == len(lengths):
        return first
    if given > 0 and fitting(given) == len(lengths):
        return given
    pairs = itertools.pairwise(sorted(lengths))
    nearest = min((behind - before for before, behind in pairs), default=0)
    if nearest in votes:
        return nearest
    candidates = {*votes, nearest} - {0}
    return max(
        candidates,
        key=lambda size: (fitting(size) + votes[size], size == nearest, size),
    )


@final
class OddFile:
    """One that is longer or shorter than the others, or does not fit between them.

    @ivar start: where it begins, by its name.
    @ivar length: how long it is.
    """

    __slots__ = ("length", "path", "start")

    def __init__(self, path: str, start: int, length: int) -> None:
        self.path = path
        self.start = start
        self.length = length


@final
class LogSegment:
    """A file of the log; it reads as zeros behind its end, and in bad blocks.

    @ivar start: the position of its first byte.
    @ivar end: that behind its last, as its length should be.
    """

    __slots__ = ("_file", "_unread", "end", "path", "start")

    def __init__(
        self, start: int, size: int, path: str, file: IFile, unread: Unreadable
    ) -> None:
        self.start = start
        self.end = start + size
        self.path = path
        self._file = file
        self._unread = unread

    def pread(self, size: int, at: int) -> bytes:
        """Bytes from a position of the file on, to its end at the most."""
        size = max(0, min(size, self.end - self.start - at))
        return self._unread.pread(self.path, self._file, size, at).ljust(size, b"\0")

    def close(self) -> None:
        """Close it."""
        self._file.close()


@final
class LogFiles:
    """The opened files of a commit log, for reading.

    @ivar folders: the directories where they are.
    @ivar paths: all that there are.
    @ivar size: what each should have; 0 if all are empty.
    @ivar given: the size in the settings; 0 if it is not known.
    @ivar segments: those that can be read, in order.
    @ivar odd: those of another length, but an empty one at the end, which is just being
        made.
    @ivar astray: those that begin where no file of that size does. They are not read.
    """

    def __init__(
        self,
        files: IFiles,
        folders: Sequence[str],
        given: int,
        unread: Unreadable,
    ) -> None:
        """
        @param given: the size that the settings say; 0 if that is not known.
        @param unread: is told what cannot be read.
        @raise StoreError: one cannot be opened; one sentence.
        """
        self._files = files
        self._unread = unread
        self.folders = folders
        self.given = given
        opened = self._open()
        self.paths = [path for path, _ in opened.values()]
        lengths = {start: file.size() for start, (_, file) in opened.items()}
        self.size = size_of_files(lengths, given)
        self.segments: list[LogSegment] = []
        self.odd: list[OddFile] = []
        self.astray: list[OddFile] = []
        for start, (path, file) in opened.items():
            length = lengths[start]
            if not self.size:
                # All are empty.
                pass
            elif start % self.size:
                self.astray.append(OddFile(path, start, length))
            elif length or start != max(opened):
                if length != self.size:
                    self.odd.append(OddFile(path, start, length))
                segment = LogSegment(start, self.size, path, file, self._unread)
                self.segments.append(segment)
                continue
            file.close()
        self._starts = [segment.start for segment in self.segments]

    @property
    def folder(self) -> str:
        """The directory of the first one, or where it would be."""
        return os.path.dirname(self.paths[0]) if self.paths else self.folders[0]

    def _open(self) -> dict[int, tuple[str, IFile]]:
        found = {}
        for folder in self.folders:
            for name in self._files.list(folder):
                path = os.path.join(folder, name)
                if position_of_name(name) >= 0 and not self._files.is_dir(path):
                    found[position_of_name(name)] = path
        opened: dict[int, tuple[str, IFile]] = {}
        for start, path in sorted(found.items()):
            # One that a broker has removed meanwhile is left out.
            with contextlib.suppress(FileNotFoundError), self._unread.naming(path):
                opened[start] = path, self._files.open_readonly(path)
        return opened

    def find(self, position: int) -> LogSegment | None:
        """The segment that holds a byte; None if there is none."""
        at = bisect.bisect_right(self._starts, position) - 1
        if at < 0 or position >= self.segments[at].end:
            return None
        return self.segments[at]

    def gaps(self) -> list[tuple[int, int, str]]:
        """The gaps between files: start, end, and the path of the first missing file,
        if it was in the directory of the one before."""
        found = []
        for before, behind in itertools.pairwise(self.segments):
            if before.end != behind.start:
                folder = os.path.dirname(before.path)
                path = os.path.join(folder, segment_name(before.end))
                found.append((before.end, behind.start, path))
        return found

    def again(self) -> LogFiles:
        """Those that are there now; these are closed."""
        self.close()
        return LogFiles(self._files, self.folders, self.given, self._unread)

    def close(self) -> None:
        """Close all."""
        for segment in self.segments:
            segment.close()


def without_log(files: IFiles, root: str, folders: Sequence[str]) -> str:
    """Look at a directory in which no file of a log was found.

    Beside a RocketMQ broker the first file may have come since: a caller that gets a
    loss looks for the log once more.

    @param folders: the directories where the log should be.
    @return: the loss, in a sentence; empty if it is a store without messages.
    @raise StoreError: it is no store; one sentence.
    """
    places = " or ".join(folders)
    queue = next(_queues_with_files(files, root), "")
    if queue:
        return (
            f"The log is lost, or elsewhere (--commit-log): {places} has no file of "
            f"it, and queues have files, as {queue} has; the start of a broker removes "
            "them."
        )
    if files.exists(os.path.join(root, CHECKPOINT)) and any(map(files.is_dir, folders)):
        return ""
    raise StoreError(f"There is no store in {root}: no file of a log in {places}.")


def _queues_with_files(files: IFiles, root: str) -> Iterator[str]:
    """The names of all queues that have a file."""
    for kind in ("consumequeue", BATCHES):
        for topic in files.list(os.path.join(root, kind)):
            for queue_id in files.list(os.path.join(root, kind, topic)):
                for name in files.list(os.path.join(root, kind, topic, queue_id)):
                    if position_of_name(name) >= 0:
                        yield f"{topic}/{queue_id}"

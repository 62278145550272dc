# -*- test-case-name: tests.storetools.repair.test_segment_sizes -*-
"""How long the files of a log should be, and which are missing, for a repair.

The length of all is that of the settings, if these are given, else that of most files;
all names must be multiples of it. The distance between two names alone says nothing: a
file between them may be missing.

What is missing is not made, unless it is given up: it may be on a disk that is not
mounted, and then what was put in its place would be in the way. After a clean stop it
is known where the log ended: C{rocketbroker.ends} says it, if nobody else has appended
since, and so do the last entries of the queues (two of them: one alone may be rotten).
After a crash queues may have been flushed before the log. That the first files were
lost, and not removed by age, only queues tell
(L{rocketbroker.storetools.verify.logbegin}).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Iterator
from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.commitlog.loading import MAX_MISSING, MAX_MISSING_BEHIND
from rocketbroker.store.flush_threshold import PAGE
from rocketbroker.store.reader.unreadable import ReadFiles
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
from rocketbroker.storetools.repair.backup import Backup, Done
from rocketbroker.storetools.repair.exclusive_lock import log_files, log_folders
from rocketbroker.storetools.verify.logbegin import is_begin_lost
from rocketbroker.storetools.verify.rawqueues import RawQueue, raw_queues


@final
class SegmentSizes:
    """The files of one log.

    @ivar size: how long each should be; 0 if nothing tells.
    @ivar wrong: start, path and length of those that are not, if none is missing.
    @ivar missing: from where to where files are missing.
    @ivar given_up: the same of those that will not come back.
    """

    def __init__(
        self,
        files: IFiles,
        root: str,
        commit_log: str | None,
        said: int,
        give_up: bool = False,
    ) -> None:
        """
        @param said: the length by the settings; 0 if these are not given.
        @param give_up: whether what is missing will not come back.
        """
        self._files = files
        self._said = said
        found = log_files(files, log_folders(root, commit_log))
        self._found = sorted(
            (start, path, files.size(path))
            for start, paths in found.items()
            for path in paths
        )
        self._first = -1
        self.size = self._size()
        self.missing: list[tuple[int, int]] = []
        self.given_up: list[tuple[int, int]] = []
        self.wrong: list[tuple[int, str, int]] = []
        if self.is_empty or not self.size:
            return
        known = 0
        if not files.exists(os.path.join(root, "abort")):
            reading = ReadFiles(files)
            queues = raw_queues(reading, root)
            known = self._known_end(CleanShutdown(reading, root), queues)
            if self._first >= 0 and not is_begin_lost(queues, self._first, min(found)):
                # Removed by age, or nobody can tell.
                self._first = -1
        self._miss(sorted(found), known)
        if give_up:
            most = MAX_MISSING * self.size
            self.given_up = [each for each in self.missing if each[1] - each[0] <= most]
            self.missing = [each for each in self.missing if each not in self.given_up]
        last = max(found)
        self.wrong = [
            (start, path, length)
            for start, path, length in self._found
            if length != self.size
            and (length or start != last or known > start)
            and not self.missing
        ]

    # What is known.

    def _fits(self, size: int) -> bool:
        return all(start % size == 0 for start, _, _ in self._found)

    def _size(self) -> int:
        lengths = [length for _, _, length in self._found if length]
        if self._said:
            # With other settings than these the files would be too long.
            is_likely = self._fits(self._said) and max(lengths, default=0) < (
                2 * self._said
            )
            return self._said if is_likely else 0
        starts = [start for start, _, _ in self._found]
        steps = {after - before for before, after in itertools.pairwise(starts)}
        counted = sorted(((n, size) for size, n in Counter(lengths).items()))
        for count, size in reversed(counted):
            if self._fits(size) and (
                count > 1 or size in steps or (len(lengths) == 1 and size % PAGE == 0)
            ):
                return size
        return 0

    def _known_end(self, ends: CleanShutdown, queues: list[RawQueue]) -> int:
        """Where the log ended when it was stopped, as far as that is known."""
        with contextlib.suppress(StoreError):
            ends.load()
        limit = self._found[-1][0] + (1 + MAX_MISSING_BEHIND) * self.size
        said = []
        for queue in queues:
            for offset in range(max(queue.start, queue.end - 2), queue.end):
                position, size = queue.place(offset)
                if size > 0 and position + size <= limit:
                    said.append(position + size)
        by_queues = sorted(said)[-2] if len(said) > 1 else 0
        if by_queues <= ends.published <= limit:
            self._first = ends.first
            return ends.published
        return by_queues

    def _miss(self, starts: list[int], known: int) -> None:
        size = self.size
        if 0 <= self._first < starts[0]:
            self.missing.append((self._first // size * size, starts[0]))
        for before, after in itertools.pairwise(starts):
            if before + size < after:
                self.missing.append((before + size, after))
        end = starts[-1] + size
        if known > end:
            self.missing.append((end, -(-known // size) * size))

    @property
    def is_empty(self) -> bool:
        """Whether there are none, as no message has come yet."""
        return not self._found

    @property
    def differ(self) -> bool:
        """Whether nothing tells the length, and the files are no help: there are
        several, or one that the settings do not fit."""
        return not self.size and (len(self._found) > 1 or self._said > 0)

    def gaps(self) -> list[tuple[int, int, str]]:
        """From where to where files that are given up need others in their places,
        which are those behind the first file, and the directory of the one before."""
        return [
            (first, end, os.path.dirname(max(self._before(first))[1]))
            for first, end in self.given_up
            if self._before(first)
        ]

    def _before(self, position: int) -> list[tuple[int, str, int]]:
        return [each for each in self._found if each[0] < position]

    # What is told and done.

    def unrepaired(self, files: IFiles, root: str) -> list[Done]:
        """What a repair cannot do anything about: files that are missing, with the
        messages in them; nothing that tells the length."""
        told = []
        folder = os.path.dirname(self._found[0][1])
        if not self.size:
            lengths = sorted({length for _, _, length in self._found})
            text = f"the files of the log have {', '.join(map(str, lengths))} bytes; "
            if self._said:
                text += f"mappedFileSizeCommitLog, which is {self._said}, does not fit"
            else:
                text += "give -c with the broker's mappedFileSizeCommitLog"
            told.append(Done("unrepaired", folder, 0, 0, text))
        for start, end in self.missing:
            text = f"the files of the log from position {start} to {end} are missing; "
            text += "nothing is changed while they are; a broker goes on without them"
            if end - start <= MAX_MISSING * self.size:
                text += "; if they will not come back, give --give-up-missing"
            told.append(Done("unrepaired", folder, start, end - start, text))
            told += self._messages("unrepaired", files, root, start, end)
        return told

    def lost(self, files: IFiles, root: str) -> list[Done]:
        """What is given up, with the messages in it."""
        told = []
        for start, end in self.given_up:
            before = self._before(start)
            text = f"the files of the log from position {start} to {end} are given up; "
            text += "new ones take their places" if before else "it begins behind them"
            folder = os.path.dirname(max(before or self._found[:1])[1])
            told.append(Done("given-up", folder, start, end - start, text))
            told += self._messages("given-up", files, root, start, end)
        return told

    def _messages(
        self, kind: str, files: IFiles, root: str, start: int, end: int
    ) -> Iterator[Done]:
        """What queues know of a part of the log."""
        for queue in raw_queues(ReadFiles(files), root):
            first, behind = queue.within(start, end)
            if first < behind:
                where = f"{queue.topic}/{queue.queue_id} offsets {first} to "
                where += str(behind - 1)
                text = f"{behind - first} messages stand in what is missing"
                yield Done(kind, where, start, 0, text)

    def changes(self) -> list[Done]:
        """What L{mend} does."""
        size = self.size
        return [
            Done(
                "changed",
                path,
                min(length, size),
                abs(length - size),
                f"it has {length} bytes and should have {size}",
            )
            for _, path, length in self.wrong
        ]

    def mend(self, copies: Backup) -> None:
        """I{Blocking.} Give each file its length; what is cut off is kept.

        @raise OSError: the disk refused.
        """
        for _, path, length in self.wrong:
            file = self._files.open(path)
            try:
                kept = min(length, self.size)
                copies.keep(path, file, kept, length - kept)
                copies.sync()
                file.truncate(self.size)
                file.datasync()
            finally:
                file.close()

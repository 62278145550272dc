# -*- test-case-name: tests.store.consumequeue.test_loading -*-
"""The opening of queue files at a start, and the replacement of damaged ones.

Each has to be as long as the settings say, and none may be missing between two others.
On a bad disk, or in a copy that was not complete, that may not be so. A file of a wrong
length is bad as a whole: it is set aside, and an empty one takes its place; an empty
one is made where one is missing. Then all queues are made again from the log. With many
missing in a row, the files before them are of another time, and are set aside, too; in
batch queues and extensions, with any missing.

A directory that is called like a file, or a link that leads nowhere, is set aside, and
the file is missing. It would be in the way, and RocketMQ's broker would not start.

One case is normal: an empty last file after a crash. A process died, or the power was
lost, while it was made, and nothing was in it yet.

A setting that was changed looks much the same. But then no file fits it, most have one
other length, and are as far from each other; that is refused, before anything is
changed. One file alone is no proof, if it begins where one could; so it is taken for a
damaged one.

RocketMQ refuses to start when a length is wrong, and ends a queue at a missing file.

C{docs/facts/store.md} 2.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from rocketbroker.errors import StoreError
from rocketbroker.files.misplaced_files import ASIDE, clear_for_file, is_no_file
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import SIZE
from rocketbroker.store.consumequeue.files import QueueFile, QueueFiles
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.store.quarantine import kept_beside, set_aside

#: So many missing files in a row are made again: with RocketMQ's setting 96 MB.
MAX_MISSING: Final = 16

#: Start, path and length of a file.
_Seen: TypeAlias = tuple[int, str, int]


@final
class QueueLoading:
    """The opening of all files of queues at one start.

    @ivar report: sentences about what was not right.
    """

    def __init__(
        self, open_files: OpenFiles, clean: bool, distrust: Callable[[], None]
    ) -> None:
        """
        @param open_files: opens them.
        @param clean: whether the last stop was a clean one.
        @param distrust: called before something is changed of queues that are not to be
            believed.
        """
        self._open_files = open_files
        self._files = open_files.files
        self._clean = clean
        self._distrust = distrust
        self.report: list[str] = []

    def load(self, kinds: Sequence[tuple[Sequence[QueueFiles], int]]) -> None:
        """Open the files of all queues that are not known to be as they were.

        @param kinds: for each kind of queue the files of all its queues, and the bytes
            of an entry or unit.
        @raise StoreError: those of a kind were made for another size; nothing was
            changed.
        """
        seen = [
            ([(r, self._list(r)) for r in rows if not r.all], unit)
            for rows, unit in kinds
        ]
        for (found, unit), (rows, _) in zip(seen, kinds, strict=True):
            if len(found) == len(rows):
                _check(found, unit)
        for found, unit in seen:
            for row, files in found:
                row.all = self._row(row, sorted(files), unit)

    def _list(self, row: QueueFiles) -> list[_Seen]:
        """The files in the directory of a queue."""
        found = []
        for name, length in self._files.lengths(row.folder):
            path = f"{row.folder}/{name}"
            start = position_of_name(name)
            row.has_others = row.has_others or start < 0
            if start < 0 and not name.endswith(ASIDE):
                self.report.append(
                    f"{path!r} is not a file of a consume queue; it is ignored."
                )
                continue
            if start < 0 or length < 0:
                # RocketMQ's broker would not start with it.
                self._distrust()
                self._put_away(path, "is no file")
                continue
            found.append((start, path, length))
        return found

    def _row(self, row: QueueFiles, found: list[_Seen], unit: int) -> list[QueueFile]:
        """The files of a queue, without gaps."""
        kept: list[QueueFile] = []
        for start, path, length in found:
            if start % row.size:
                self._distrust()
                self._put_away(path, "does not fit between the files of its queue")
                continue
            if kept and kept[-1].start + row.size != start:
                self._distrust()
                kept = self._bridge(row, kept, start, unit)
            if length == row.size:
                kept.append(QueueFile(self._open_files, start, path))
                continue
            if length or path != found[-1][1] or self._clean:
                self._distrust()
                self._put_away(path, f"has {length} bytes, not {row.size}")
            else:
                self.report.append(f"{path} had 0 bytes; it has {row.size} now.")
            kept.append(self._make(row, start))
        return kept

    def _make(self, row: QueueFiles, start: int) -> QueueFile:
        """An empty file."""
        path = os.path.join(row.folder, segment_name(start))
        file = self._open_files.open(path, create=True)
        file.truncate(row.size)
        made = QueueFile(self._open_files, start, path, file)
        made.unsynced = True
        return made

    def _bridge(
        self, row: QueueFiles, kept: list[QueueFile], until: int, unit: int
    ) -> list[QueueFile]:
        """Go on at a position behind files: with empty files between, or without the
        files before."""
        end = kept[-1].start + row.size
        path = os.path.join(row.folder, segment_name(end))
        if unit != SIZE or until - end > MAX_MISSING * row.size:
            for each in kept:
                each.close()
                self._put_away(each.path, f"is before {path}, which is missing")
            return []
        for start in range(end, until, row.size):
            kept.append(self._make(row, start))
            self.report.append(f"{kept[-1].path} was missing; it is made again.")
        return kept

    def _put_away(self, path: str, why: str) -> None:
        """Take a file out of its queue, and keep it."""
        try:
            now = set_aside(self._files, path, kept_beside(path))
        except OSError as error:
            # The directory of all queues may be a file system of its own.
            if is_no_file(self._files, path):
                self.report += clear_for_file(self._files, path)
                return
            now = f"removed, as it cannot be kept elsewhere: {error.strerror}"
            self._files.remove(path)
        self.report.append(f"{path} {why}; it is now {now}.")


def _check(seen: list[tuple[QueueFiles, list[_Seen]]], unit: int) -> None:
    """See whether files were made with another setting, not damaged.

    @raise StoreError: they seem to be.
    """
    odd: list[tuple[QueueFiles, int, str, int]] = []
    for row, found in seen:
        for start, path, length in found:
            if length == row.size and start % row.size == 0:
                return
            if length:
                odd.append((row, start, path, length))
    if not odd:
        return
    other, count = Counter(length for _, _, _, length in odd).most_common(1)[0]
    if 2 * count <= len(odd) or other % unit:
        return
    alike = [each for each in odd if each[3] == other]
    if any(start % other for _, start, _, _ in alike):
        return
    for row, start, path, _ in alike:
        if start % row.size or (other > row.size and count > 1):
            raise StoreError(
                f"{path} ({other} bytes) does not fit {row.setting}, which is "
                f"{row.size}."
            )

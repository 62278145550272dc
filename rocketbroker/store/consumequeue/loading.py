# -*- test-case-name: tests.store.consumequeue.test_loading -*-
"""The files of the queues, as a start finds them.

Each should be as long as the settings say, and none be missing between two others. On a
bad disk, or in a copy that was not complete, that may not be so. Then nothing of what
the queues hold is believed, and all of it is made again from the log, as far as that
reaches. Only the numbers matter that files and entries have: a queue goes on where it
was, though all of its records may be gone.

So a file of a wrong length is cut or extended in its place, and one that is missing is
made. What nobody knows any more has the entry before it, as have the places of rotten
records (L{rocketbroker.store.dispatch.offset_sequence}), until the log gives the right
one. With many missing, what is before is of another time, and is set aside. So it is
in batch queues, whose units have no fixed places, and in extensions, which are of no
use in pieces.

A directory that is called like a file, or a link that leads nowhere, is set aside, and
the file is missing. It would be in the way, and RocketMQ's broker would not start.

One case is not odd: an empty last file after a crash. A process died, or the power was
lost, while it was made, and nothing was in it yet.

Of a file that is too long the rest becomes files of its own, as far as there are none
yet: a unit stands at the same byte of its queue, however its files are cut.

A setting that was changed looks much the same. But then no file fits it, most have one
other length, and are as far from each other; that is refused, before anything is
changed. One file alone tells nothing, if it begins where one could; so it is taken for
a damaged one, and all that stands in it stays.

The reference refuses to start when a length is wrong, and stops at what is missing.

The store sheet, section 2.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import around, is_bad
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.obstacles import ASIDE, clear_for_file, is_no_file
from rocketbroker.records.entries import ENTRY, FILLED, FILLED_SIZE, SIZE
from rocketbroker.store.consumequeue.files import QueueFile, QueueFiles
from rocketbroker.store.disk_usage import NO_ROOM
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.store.quarantine import kept_beside, set_aside

#: So many missing files in a row are made again: with RocketMQ's setting 96 MB.
MAX_MISSING: Final = 16

#: Of a file that is too long the rest is kept in so many others.
MAX_SPLIT: Final = 16

#: Start, path and length of a file.
_Seen: TypeAlias = tuple[int, str, int]


@final
class QueueLoading:
    """One start.

    @ivar said: sentences about what was not right.
    """

    def __init__(self, files: IFiles, clean: bool, doubt: Callable[[], None]) -> None:
        """
        @param clean: whether the last stop was a clean one.
        @param doubt: called before something is changed of queues that are not to be
            believed.
        """
        self._files = files
        self._clean = clean
        self._doubt = doubt
        self.said: list[str] = []

    def load(self, kinds: Sequence[tuple[Sequence[QueueFiles], int]]) -> None:
        """Open what is there.

        @param kinds: the files of all queues of one kind, and of how many bytes each
            unit is that they have.
        @raise StoreError: those of a kind were made for another size; nothing was
            changed.
        """
        seen = [([(r, self._look(r)) for r in rows], unit) for rows, unit in kinds]
        for found, unit in seen:
            _check(found, unit)
        for found, unit in seen:
            for row, files in found:
                row.all = self._row(row, self._split(row, files, unit), unit)

    def _look(self, row: QueueFiles) -> list[_Seen]:
        """What is in the directory of a queue."""
        found = []
        for name in self._files.list(row.folder):
            path = os.path.join(row.folder, name)
            start = position_of_name(name)
            if start < 0 and not name.endswith(ASIDE):
                self.said.append(
                    f"{path!r} is not a file of a consume queue; it is ignored."
                )
                continue
            if start < 0 or is_no_file(self._files, path):
                # RocketMQ's broker would not start with it.
                self._doubt()
                self._put_away(path, "is no file")
                continue
            found.append((start, path, self._files.size(path)))
        return found

    def _split(self, row: QueueFiles, found: list[_Seen], unit: int) -> list[_Seen]:
        """What is in the directory, with files of their own for the rest of those that
        are too long."""
        starts = {start for start, _, _ in found}
        rests: list[_Seen] = []
        for start, path, length in found:
            # Units of extensions may lie across the end of a file.
            if start % row.size or length <= row.size or unit == 1:
                continue
            self._doubt()
            end = min(start + length, start + (1 + MAX_SPLIT) * row.size)
            for rest in range(start + row.size, end, row.size):
                if rest in starts or not self._copy_rest(row, path, start, rest):
                    break
                name = os.path.join(row.folder, segment_name(rest))
                rests.append((rest, name, row.size))
                self.said.append(f"{name} is the rest of {path}, which was too long.")
        if rests:
            self._files.sync_dir(row.folder)
        return sorted(found + rests)

    def _copy_rest(self, row: QueueFiles, path: str, start: int, rest: int) -> bool:
        """Copy a part of a file that is too long into one of its own.

        @param rest: where in the queue the part begins.
        @return: whether there is one; not if nothing is in it, or no room for it.
        """
        long = self._files.open_readonly(path)
        try:
            content = around(long, row.size, rest - start)
        finally:
            long.close()
        if not any(content):
            return False
        name = os.path.join(row.folder, segment_name(rest))
        file = self._files.open(name, create=True)
        try:
            file.truncate(row.size)
            file.pwrite(content, 0)
            file.datasync()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._files.remove(name)
            return False
        finally:
            file.close()
        return True

    def _row(self, row: QueueFiles, found: list[_Seen], unit: int) -> list[QueueFile]:
        """The files of a queue, without gaps."""
        kept: list[QueueFile] = []
        for start, path, length in found:
            if start % row.size:
                self._doubt()
                self._put_away(path, "does not fit between the files of its queue")
                continue
            if kept and kept[-1].start + row.size != start:
                self._doubt()
                kept = self._bridge(row, kept, start, unit)
            kept.append(QueueFile(self._files, start, path))
            if length != row.size:
                is_last = path == found[-1][1]
                if length or not is_last or self._clean:
                    self._doubt()
                self._resize(row.size, kept[-1], length, length - length % unit)
                if length < row.size and not is_last and unit == SIZE:
                    self._fill(row, kept, length - length % unit)
        return kept

    def _resize(self, size: int, file: QueueFile, length: int, whole: int) -> None:
        """Give a file the length that it should have.

        @param whole: how many bytes of it are whole units.
        """
        whole = min(whole, size)
        if is_bad(file.file, whole, 0):
            # A disk that cannot read a block cannot write a part of it.
            content = around(file.file, whole, 0)
            file.close()
            self._put_away(file.path, "cannot be read by the disk")
            copy = self._files.open(file.path, create=True)
            copy.pwrite(content, 0)
            copy.close()
        file.file.truncate(whole)
        file.file.truncate(size)
        file.unsynced = True
        self.said.append(f"{file.path} had {length} bytes; it has {size} now.")

    def _bridge(
        self, row: QueueFiles, kept: list[QueueFile], until: int, unit: int
    ) -> list[QueueFile]:
        """Go on at a position behind files, with others between or without what is
        before."""
        end = kept[-1].start + row.size
        path = os.path.join(row.folder, segment_name(end))
        if unit != SIZE or until - end > MAX_MISSING * row.size:
            for each in kept:
                each.close()
                self._put_away(each.path, f"is before {path}, which is missing")
            return []
        for start in range(end, until, row.size):
            path = os.path.join(row.folder, segment_name(start))
            file = self._files.open(path, create=True)
            file.truncate(row.size)
            made = QueueFile(self._files, start, path, file)
            made.unsynced = True
            kept.append(made)
            self._fill(row, kept, 0)
            self.said.append(f"{path} was missing; it is made again.")
        return kept

    def _fill(self, row: QueueFiles, kept: list[QueueFile], at: int) -> None:
        """Let the rest of the last file lead to the record before it."""
        before = b""
        if at:
            before = around(kept[-1].file, SIZE, at - SIZE)
        elif len(kept) > 1:
            before = around(kept[-2].file, SIZE, row.size - SIZE)
        position, size, _ = ENTRY.unpack(before or FILLED)
        entry = ENTRY.pack(position, size, 0) if 0 < size < FILLED_SIZE else FILLED
        try:
            kept[-1].file.pwrite(entry * ((row.size - at) // SIZE), at)
        except OSError as error:
            # The entries themselves find room later, or are kept in memory.
            if error.errno not in NO_ROOM:
                raise

    def _put_away(self, path: str, why: str) -> None:
        """Take a file out of its queue, and keep it."""
        try:
            now = set_aside(self._files, path, kept_beside(path))
        except OSError as error:
            # The directory of all queues may be a file system of its own.
            if is_no_file(self._files, path):
                self.said += clear_for_file(self._files, path)
                return
            now = f"removed, as it cannot be kept elsewhere: {error.strerror}"
            self._files.remove(path)
        self.said.append(f"{path} {why}; it is now {now}.")


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

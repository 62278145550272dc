# -*- test-case-name: tests.store.timerwheel.test_recovery -*-
"""The timer log: segments of equal length, full of units.

Units never change once they are written. A segment has its full length from the
beginning, as RocketMQ wants it, and blocks of the disk only where it has units.

C{docs/facts/transaction-timer-pop.md} B3, B8.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, final

from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFile
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.store.timerwheel.units import (
    BLANK_SIZE,
    NONE,
    SIZE,
    Unit,
    blank,
    decode,
    is_blank,
)

FOLDER: Final = "timerlog"

#: A chain is read in parts of so many bytes: units of one time often were entered
#: together, and then one part has many of them.
_PART: Final = 8192

#: So many bytes are scanned at once.
_SCAN: Final = SIZE * 16384


@final
class TimerLog:
    """The timer log, in which slots link their entries.

    @ivar starts: where its segments begin, in order.
    @ivar end: where the next unit goes, or the rest of a segment that has no room.
    @ivar size: the length of a segment.
    """

    def __init__(self, open_files: OpenFiles, root: str, size: int) -> None:
        """
        @param root: the directory of the store.
        @param size: mappedFileSizeTimerLog.
        """
        self.starts: list[int] = []
        self.end = 0
        self.size = size
        self._open_files = open_files
        self._files = open_files.files
        self._folder = os.path.join(root, FOLDER)
        self._unsynced: set[int] = set()

    def load(self) -> list[str]:
        """I{Blocking.} Find the segments; the end is the last one's until a scan.

        A file of another length is set aside, with those behind it: with another
        mappedFileSizeTimerLog no position means anything.

        @return: a sentence on each file that is set aside.
        @raise OSError: the disk refuses.
        """
        report = []
        expected = None
        for name, length in self._files.lengths(self._folder):
            start = position_of_name(name)
            if start < 0:
                continue
            in_order = expected is None or start == expected
            if length == self.size and in_order and start % self.size == 0:
                self.starts.append(start)
                expected = start + self.size
                continue
            expected = NONE
            path = os.path.join(self._folder, name)
            self._files.rename(path, f"{path}.damaged")
            report.append(
                f"{path} has {length} bytes in place of {self.size}, or is not next in "
                f"order: it is kept as {name}.damaged, and its timers are entered anew."
            )
        self.end = self.starts[-1] + self.size if self.starts else 0
        return report

    @property
    def begin(self) -> int:
        """Where the oldest segment begins."""
        return self.starts[0] if self.starts else self.end

    def place(self, position: int) -> int:
        """Where a unit goes when the log ends at C{position}."""
        offset = position % self.size
        if offset + SIZE + BLANK_SIZE <= self.size:
            return position
        return position - offset + self.size

    def append(self, found: Iterable[tuple[int, bytes]]) -> None:
        """Write units, each to where L{place} wants it.

        @raise OSError: the disk refuses; the log ends where it did.
        """
        pieces: list[tuple[int, list[bytes]]] = []
        end = self.end
        for position, data in found:
            if position != end and end % self.size:
                pieces.append((end, [blank(self.size - end % self.size)]))
            if not pieces or position != end or position % self.size == 0:
                pieces.append((position, []))
            pieces[-1][1].append(data)
            end = position + SIZE
        for position, parts in pieces:
            start = position - position % self.size
            file = self._segment(start)
            self._unsynced.add(start)
            file.pwrite(b"".join(parts), position - start)
        self.end = end

    def _segment(self, start: int) -> IFile:
        """The file of a segment, which is made if it is the next one."""
        path = os.path.join(self._folder, segment_name(start))
        if start in self.starts:
            return self._open_files.get(path, path)
        make_lasting(self._files, self._folder)
        file = self._open_files.open(path, create=True)
        file.truncate(self.size)
        self._files.sync_dir(self._folder)
        self._open_files.put(path, file)
        self.starts.append(start)
        return file

    def read(self, position: int, size: int) -> bytes:
        """I{Blocking if cold.} Bytes of one segment; fewer at its end.

        @raise OSError: the disk refuses.
        """
        start = position - position % self.size
        if start not in self.starts:
            return b""
        path = os.path.join(self._folder, segment_name(start))
        file = self._open_files.get_to_read(path, path)
        return file.pread(min(size, start + self.size - position), position - start)

    def chain(self, last: int, most: int, behind: int = NONE) -> tuple[list[Unit], int]:
        """I{Blocking if cold.} Up to C{most} units of a chain, the newest first.

        @param last: where the newest one is.
        @param behind: only those that stand behind this place.
        @return: the units; and where the next one is, -1 if there is none. A place
            without a unit ends the chain.
        @raise OSError: the disk refuses.
        """
        return chain(self.read, self.size, last, most, behind)

    def scan(self, position: int) -> Iterator[tuple[int, bytes]]:
        """I{Blocking.} Whole units from a position on, up to the first place where no
        unit is: where they stand, and their bytes, many units at once.

        @param position: that of a unit, or where one would be.
        @raise OSError: the disk refuses.
        """
        return scan(self.read, self.starts, self.size, position)

    def cut(self, end: int) -> None:
        """I{Blocking.} Let the log end there: what is behind it becomes zeros.

        @raise OSError: the disk refuses.
        """
        for start in reversed(self.starts.copy()):
            path = os.path.join(self._folder, segment_name(start))
            if start >= end:
                self._open_files.drop(path)
                self._files.remove(path)
                self.starts.remove(start)
            elif start + self.size > end:
                file = self._open_files.get(path, path)
                file.truncate(end - start)
                file.truncate(self.size)
                file.datasync()
        self.end = end

    def sync(self) -> None:
        """I{Blocking.} Put all units on the disk.

        @raise OSError: the disk refuses.
        """
        waiting = sorted(self._unsynced)
        for start in waiting:
            path = os.path.join(self._folder, segment_name(start))
            # One more may be written meanwhile; then it waits again.
            self._unsynced.discard(start)
            try:
                self._open_files.get(path, path).datasync()
            except OSError:
                self._unsynced.add(start)
                raise

    def clean(self, min_position: int) -> int:
        """I{Blocking.} Remove the oldest segment if the messages of all its units are
        gone.

        @param min_position: where the commit log begins.
        @return: how many were removed.
        @raise OSError: the disk refuses.
        """
        if len(self.starts) < 2:
            return 0
        start = self.starts[0]
        rest = self.size - SIZE - BLANK_SIZE
        last = decode(self.read(start + rest - rest % SIZE, SIZE))
        if last is None or last.position >= min_position:
            return 0
        path = os.path.join(self._folder, segment_name(start))
        self.starts.pop(0)
        self._unsynced.discard(start)
        self._open_files.drop(path)
        self._files.remove(path)
        return 1


def chain(
    read: Callable[[int, int], bytes],
    segment_size: int,
    last: int,
    most: int,
    behind: int = NONE,
) -> tuple[list[Unit], int]:
    """I{Blocking if cold.} See L{TimerLog.chain}.

    @param read: given a position and a number of bytes, these bytes of one segment.
    """
    found: list[Unit] = []
    data, begin = b"", 0
    while last > behind and len(found) < most:
        if not begin <= last <= begin + len(data) - SIZE:
            segment = last - last % segment_size
            begin = max(segment, last + SIZE - _PART)
            data = read(begin, last + SIZE - begin)
        unit = decode(data, last - begin)
        if unit is None:
            return found, NONE
        found.append(unit)
        # An older one stands further in front, else the chain would be a ring.
        last = unit.previous if unit.previous < last else NONE
    return found, last


def scan(
    read: Callable[[int, int], bytes],
    starts: Collection[int],
    segment_size: int,
    position: int,
) -> Iterator[tuple[int, bytes]]:
    """I{Blocking.} See L{TimerLog.scan}.

    @param read: as of L{chain}.
    @param starts: where segments begin.
    """
    while (start := position - position % segment_size) in starts:
        data = read(position, _SCAN)
        length = units_in(data)
        if length:
            yield position, data[:length]
        position += length
        if length < len(data) - len(data) % SIZE or len(data) < SIZE:
            if not is_blank(data, length):
                return
            position = start + segment_size


def units_in(data: bytes) -> int:
    """How many bytes of whole units stand at the beginning."""
    whole = len(data) - len(data) % SIZE
    low, high = 0, whole // SIZE
    if high and decode(data, (high - 1) * SIZE) is not None and _all_units(data, high):
        return whole
    while low < high and decode(data, low * SIZE) is not None:
        low += 1
    return low * SIZE


def _all_units(data: bytes, count: int) -> bool:
    """Whether all of them have the size of a unit, and bits that units have."""
    sizes = data[3 : count * SIZE : SIZE]
    if sizes != bytes((SIZE,)) * count:
        return False
    magics = data[15 : count * SIZE : SIZE]
    others = (0, 1, 2, 12, 13, 14)
    zeros = bytes(count)
    return max(magics) <= 0xF and all(
        data[at : count * SIZE : SIZE] == zeros for at in others
    )

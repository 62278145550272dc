# -*- test-case-name: tests.store.test_indexverification -*-
"""The files of the index checked: their headers, their chains, and of some entries
whether their record has a key with that hash.

The chains are checked whole, by entering all hashes once more: each entry must name the
one that was in its slot before it, and in the end each slot must hold its last one.
Positions must not go down. Of the records behind the entries only L{SAMPLE} for each
file are read: reading all would cost many times what the rest does.

How many slots a file has does not stand in it, and is told by the settings.

The store sheet, section 12.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile
from rocketbroker.records.hashing import unsigned_hash
from rocketbroker.store.faults import Fault, Tell
from rocketbroker.store.indexfile import (
    FOLDER,
    HEADER,
    INDEX_ENTRY,
    SLOT,
    big_endian,
    columns,
    file_size,
)
from rocketbroker.store.indexkeys import codes_of_one
from rocketbroker.store.reader import StoreReader
from rocketbroker.store.scanning import Blank, Broken, parse

#: So many entries of each file are followed to their records.
SAMPLE: Final = 1000

#: So many entries are read at once, which fit the processor's cache.
AT_ONCE: Final = 10_000

_SHORTER: Final = "the file became shorter while it was read"

#: So many faults of one file are told; more only come of one that is lost as a whole.
MOST_TOLD: Final = 20


@final
class IndexVerification:
    """One walk through the index.

    @ivar entries: how many entries were checked.
    @ivar done: how many bytes were read.
    @ivar faults: how many were told.
    @ivar unknown: the files whose size fits no settings, and were not looked at.
    """

    def __init__(
        self,
        reader: StoreReader,
        slots: int,
        numbers: int,
        tell: Tell,
        progress: Callable[[int], None],
    ) -> None:
        """
        @param slots: the setting maxHashSlotNum.
        @param numbers: the setting maxIndexNum.
        @param tell: is given each fault when it is found.
        @param progress: is given the bytes read so far, after each piece.
        """
        self._files = reader.files
        self._reader = reader
        self._folder = os.path.join(reader.root, FOLDER)
        self._slots = slots
        self._numbers = numbers
        self._begin = HEADER.size + slots * SLOT.size
        self._tell_fault = tell
        self._progress = progress
        self.entries = 0
        self.done = 0
        self.faults = 0
        self.unknown: list[str] = []

    def expected_bytes(self) -> int:
        """How much there is to read, for the time left."""
        total = 0
        for path in self._paths():
            try:
                file = self._files.open_readonly(path)
            except StoreError:
                continue
            total += self._begin + self._count(file) * INDEX_ENTRY.size
            file.close()
        return total

    def run(self) -> None:
        """Check everything. Only in a store that was stopped cleanly: in one that runs
        the last file changes, and after a crash the next start makes it again."""
        for path in self._paths():
            try:
                file = self._files.open_readonly(path)
            except StoreError as error:
                self._tell("unreadable", path, 0, str(error))
                continue
            try:
                for position, text in self._file(file):
                    self._tell("index", path, position, text)
            finally:
                file.close()

    def _tell(self, kind: str, path: str, position: int, text: str) -> None:
        self.faults += 1
        self._tell_fault(Fault(kind, path, position, text))

    def _paths(self) -> list[str]:
        """The files that can be checked."""
        self.unknown = []
        if not self._reader.is_clean:
            return []
        paths = []
        for name in sorted(self._files.list(self._folder)):
            path = os.path.join(self._folder, name)
            if not (name.isascii() and name.isdigit()) or self._files.is_dir(path):
                continue
            size = self._files.size(path)
            if size == file_size(self._slots, self._numbers):
                paths.append(path)
            elif size:
                self.unknown.append(path)
        return paths

    def _count(self, file: IFile) -> int:
        """How many entries a file has, if it can have so many; otherwise 0."""
        head = file.pread(HEADER.size, 0)
        count = HEADER.unpack(head)[5] if len(head) == HEADER.size else 0
        return count - 1 if 0 < count <= self._numbers else 0

    def _file(self, file: IFile) -> Iterator[tuple[int, str]]:
        """What is wrong with a file: where in it, and what."""
        head = file.pread(HEADER.size, 0)
        if len(head) < HEADER.size:
            yield 0, _SHORTER
            return
        begin_position, end_position, used, count = HEADER.unpack(head)[2:]
        if not 0 <= count <= self._numbers or not 0 <= used <= self._slots:
            yield 0, f"its header says {used} slots in use and {count} entries"
            return
        if not 0 <= begin_position <= end_position:
            yield 16, f"it goes from position {begin_position} to {end_position}"
        slots = array("i", bytes(4 * self._slots))
        for told, fault in enumerate(self._chains(file, count, slots)):
            if told == MOST_TOLD:
                yield fault[0], "more entries are wrong"
                return
            yield fault
            if fault[1] == _SHORTER:
                return
        for slot in self._wrong_slots(file, slots):
            yield HEADER.size + slot * SLOT.size, f"slot {slot} leads to a wrong entry"
        self._read(self._begin)

    def _chains(
        self, file: IFile, count: int, slots: array[int]
    ) -> Iterator[tuple[int, str]]:
        """Entries that are wrong; C{slots} has the last of each in the end."""
        size, of = INDEX_ENTRY.size, self._slots
        sample = max(1, count // SAMPLE)
        last = 0
        for first in range(1, count, AT_ONCE):
            some = min(AT_ONCE, count - first)
            data = file.pread(some * size, self._begin + first * size)
            if len(data) < some * size:
                yield self._begin, _SHORTER
                return
            for each in _negative(data):
                text = "its hash or its time is negative"
                yield self._told(first + each, text)
            codes, positions, befores = columns(data)
            numbers = range(first, first + some)
            # This is nearly all that the check of an index costs.
            for number, code, position, before in zip(
                numbers, codes, positions, befores, strict=True
            ):
                slot = code % of
                if slots[slot] != before or position < last:
                    if slots[slot] != before:
                        text = f"it names entry {before} before it, not {slots[slot]}"
                    else:
                        text = f"its position {position} is before the last one's"
                    yield self._told(number, text)
                slots[slot] = number
                last = position
            for number in range(-(-first // sample) * sample, first + some, sample):
                at = number - first
                why = self._why(codes[at], positions[at])
                if why:
                    yield self._told(number, why)
            self.entries += some
            self._read(some * size)

    def _read(self, more: int) -> None:
        self.done += more
        self._progress(self.done)

    def _told(self, number: int, why: str) -> tuple[int, str]:
        """Where an entry stands, and what is wrong with it."""
        at = self._begin + number * INDEX_ENTRY.size
        return at, f"entry {number}: {why}"

    def _why(self, code: int, position: int) -> str:
        """What is wrong with where an entry leads; empty if nothing is, or its record
        is not in the log any more."""
        for segment in self._reader.segments:
            if segment.start <= position < segment.end:
                break
        else:
            gone = position < self._reader.lowest
            return "" if gone else f"the log has no position {position}"
        at = position - segment.start
        head = segment.file.pread(4, at)
        size = min(max(8, int.from_bytes(head, "big")), segment.end - position)
        if self._reader.unread(position, size):
            # That is told by itself.
            return ""
        try:
            found = parse(segment.file.pread(size, at), 0, position, False)
        except (Broken, Blank) as error:
            return f"no record stands at position {position}: {error}"
        topic = found[2].decode("utf-8", "replace")
        if code in codes_of_one(unsigned_hash(topic + "#"), found[7]):
            return ""
        return f"the record at position {position} has no key with its hash"

    def _wrong_slots(self, file: IFile, slots: array[int]) -> list[int]:
        """The first slots that do not hold the last entry of theirs."""
        data = file.pread(self._slots * SLOT.size, HEADER.size)
        there = big_endian(array("i", data.ljust(self._slots * SLOT.size, b"\0")))
        if there == slots:
            return []
        pairs = enumerate(zip(there, slots, strict=True))
        return [slot for slot, (is_, should) in pairs if is_ != should][:MOST_TOLD]


def _negative(entries: bytes) -> list[int]:
    """Which of these entries have a hash or a time below zero."""
    signs = entries[0 :: INDEX_ENTRY.size], entries[12 :: INDEX_ENTRY.size]
    if signs[0].isascii() and signs[1].isascii():
        return []
    return [at for at, pair in enumerate(zip(*signs, strict=True)) if max(pair) > 127]

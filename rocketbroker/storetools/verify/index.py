# -*- test-case-name: tests.storetools.verify.test_index -*-
"""A check of the index files: headers, chains, and of some entries the keys of their
records.

The chains are checked whole, by entering all hashes once more: each entry must name the
one that was in its slot before it, and in the end each slot must hold its last one.
Positions must not go down. Of the records behind the entries only L{SAMPLE} for each
file are read: reading all would cost many times what the rest does.

The number of slots is not in the file; it is taken from the settings.

If all files are missing the checkpoint shows it, if there was a full one.

docs/facts/store.md 12, 15.1 and 15.4.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Callable, Iterator
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile
from rocketbroker.records.hashing import unsigned_hash
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse
from rocketbroker.store.index.file import (
    FOLDER,
    HEADER,
    INDEX_ENTRY,
    SLOT,
    big_endian,
    columns,
    file_size,
)
from rocketbroker.store.index.keys import codes_of_one
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.report import Fault, Report

#: So many entries of each file are followed to their records.
SAMPLE: Final = 1000

#: So many entries are read at once, which fit the processor's cache.
BATCH_SIZE: Final = 10_000

_SHORTER: Final = "the file became shorter while it was read"

#: So many faults of one file are reported; a file with more is lost as a whole.
MAX_REPORTED: Final = 20


@final
class IndexVerification:
    """One walk through the index.

    @ivar entries: how many entries were checked.
    @ivar done: how many bytes were read.
    @ivar faults: how many were reported.
    @ivar unknown: the files whose size fits no settings, and were not looked at.
    """

    def __init__(
        self,
        reader: StoreReader,
        slots: int,
        numbers: int,
        report: Report,
        progress: Callable[[int], None],
        is_off: bool = False,
    ) -> None:
        """
        @param slots: the setting maxHashSlotNum.
        @param numbers: the setting maxIndexNum.
        @param report: is given each fault when it is found.
        @param progress: is given the bytes read so far, after each piece.
        @param is_off: whether the settings say that there is none.
        """
        self._files = reader.files
        self._reader = reader
        self._folder = os.path.join(reader.root, FOLDER)
        self._slots = slots
        self._numbers = numbers
        self._begin = HEADER.size + slots * SLOT.size
        self._report_fault = report
        self._is_off = is_off
        self._progress = progress
        self.entries = 0
        self.done = 0
        self.faults = 0
        self.unknown: list[str] = []

    def expected_bytes(self) -> int:
        """The number of bytes to read, for the time left."""
        total = 0
        for path in self._paths():
            with contextlib.suppress(OSError):
                file = self._files.open_readonly(path)
                with contextlib.closing(file):
                    total += self._begin + self._count(file) * INDEX_ENTRY.size
        return total

    def run(self) -> None:
        """Check everything. Only in a store that was stopped cleanly: in one that runs
        the last file changes, and after a crash the next start makes it again."""
        for path in self._paths():
            # One that cannot be read is reported by itself.
            with contextlib.suppress(StoreError), self._reader.unread.naming(path):
                file = self._files.open_readonly(path)
                with contextlib.closing(file):
                    for position, text in self._file(path, file):
                        self._report("index", path, position, text)
        self._no_files()

    def _no_files(self) -> None:
        """There was an index, and all its files are missing."""
        reader = self._reader
        if self._is_off or not reader.is_clean or reader.unread.is_bad:
            return
        checkpoint = Checkpoint(self._files, reader.root)
        checkpoint.load()
        if checkpoint.index_ms > 0 and not self._files.list(self._folder):
            text = "there was an index; it has no file"
            self._report("index", self._folder, 0, text)

    def _report(self, kind: str, path: str, position: int, text: str) -> None:
        self.faults += 1
        self._report_fault(Fault(kind, path, position, text))

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
        """The number of entries of a file; 0 if it cannot have so many."""
        head = file.pread(HEADER.size, 0)
        count = HEADER.unpack(head)[5] if len(head) == HEADER.size else 0
        return count - 1 if 0 < count <= self._numbers else 0

    def _file(self, path: str, file: IFile) -> Iterator[tuple[int, str]]:
        """The faults of a file: position and text."""
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
        for reported, fault in enumerate(self._chains(file, count, slots)):
            if reported == MAX_REPORTED:
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
        for first in range(1, count, BATCH_SIZE):
            some = min(BATCH_SIZE, count - first)
            data = file.pread(some * size, self._begin + first * size)
            if len(data) < some * size:
                yield self._begin, _SHORTER
                return
            for each in _negative(data):
                text = "its hash or its time is negative"
                yield self._fault(first + each, text)
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
                    yield self._fault(number, text)
                slots[slot] = number
                last = position
            for number in range(-(-first // sample) * sample, first + some, sample):
                at = number - first
                why = self._why(codes[at], positions[at])
                if why:
                    yield self._fault(number, why)
            self.entries += some
            self._read(some * size)

    def _read(self, more: int) -> None:
        self.done += more
        self._progress(self.done)

    def _fault(self, number: int, why: str) -> tuple[int, str]:
        """The fault of an entry: its position and the text."""
        at = self._begin + number * INDEX_ENTRY.size
        return at, f"entry {number}: {why}"

    def _why(self, code: int, position: int) -> str:
        """The fault of an entry's position; empty if there is none, or its record is
        not in the log any more."""
        for segment in self._reader.segments:
            if segment.start <= position < segment.end:
                break
        else:
            gone = position < self._reader.lowest
            return "" if gone else f"the log has no position {position}"
        at = position - segment.start
        head = segment.pread(4, at)
        size = min(max(8, int.from_bytes(head, "big")), segment.end - position)
        if self._reader.why_unread(position, size):
            # That is reported by itself.
            return ""
        try:
            found = parse(segment.pread(size, at), 0, position, False)
        except (Broken, Blank) as error:
            return f"no record stands at position {position}: {error}"
        topic = found.topic.decode("utf-8", "replace")
        if code in codes_of_one(unsigned_hash(topic + "#"), found.properties):
            return ""
        return f"the record at position {position} has no key with its hash"

    def _wrong_slots(self, file: IFile, slots: array[int]) -> list[int]:
        """The first slots that do not hold the last entry of theirs."""
        data = file.pread(self._slots * SLOT.size, HEADER.size)
        there = big_endian(array("i", data.ljust(self._slots * SLOT.size, b"\0")))
        if there == slots:
            return []
        pairs = enumerate(zip(there, slots, strict=True))
        return [slot for slot, (is_, should) in pairs if is_ != should][:MAX_REPORTED]


def _negative(entries: bytes) -> list[int]:
    """Which of these entries have a hash or a time below zero."""
    signs = entries[0 :: INDEX_ENTRY.size], entries[12 :: INDEX_ENTRY.size]
    if signs[0].isascii() and signs[1].isascii():
        return []
    return [at for at, pair in enumerate(zip(*signs, strict=True)) if max(pair) > 127]

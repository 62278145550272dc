# -*- test-case-name: tests.storetools.verify.test_index -*-
"""A check of the index files: headers, chains, and of some entries the keys of their
records.

The chains are checked whole, by entering all hashes once more: each entry must name the
one that was in its slot before it, and in the end each slot must hold its last one.
Positions must not go down. Of the records behind the entries only L{SAMPLE} for each
file are read: reading all would cost many times what the rest does.

The number of slots is not in the file; it is taken from the settings.

A missing file is reported if the next one begins behind records with keys, or if the
last one is full and such records follow. If all files are missing the checkpoint shows
it, if there was a full one. RocketMQ's broker leaves an index like that behind: when
it starts after a crash it drops the file that it was writing, and enters again only
what its recovery walks through; no query finds the rest any more. If that file was the
first one, this is only a remark: the index may as well have been turned on later.

docs/facts/store.md 12, 15.1 and 15.4.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from array import array
from collections.abc import Callable, Iterator
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile
from rocketbroker.records.hashing import unsigned_hash
from rocketbroker.records.sysflags import (
    INNER_BATCH,
    TRANSACTION_MASK,
    TRANSACTION_ROLLBACK,
)
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
from rocketbroker.store.index.keys import codes_of_one, tags_code
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.queues import MAX_RECORD
from rocketbroker.storetools.verify.report import Fault, Remark, Report

#: So many entries of each file are followed to their records.
SAMPLE: Final = 1000

#: So many entries are read at once, which fit the processor's cache.
BATCH_SIZE: Final = 10_000

_SHORTER: Final = "the file became shorter while it was read"

#: So many records without keys are passed over where a file may be missing.
MAX_LOOKED_AT: Final = 10_000

#: So many faults of one file are reported; a file with more is lost as a whole.
MAX_REPORTED: Final = 20


@final
class IndexVerification:
    """One walk through the index.

    @ivar entries: how many entries were checked.
    @ivar done: how many bytes were read.
    @ivar faults: how many were reported.
    @ivar remarks: findings that are no faults; when the walk is over.
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
        self.remarks: list[Remark] = []
        self.unknown: list[str] = []
        #: Of each file where the log is in it, and whether it is full.
        self._spans: list[tuple[str, int, int, bool]] = []

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
        self._missing_files()

    def _missing_files(self) -> None:
        """Files that are missing between others, behind them, or altogether."""
        reader = self._reader
        if not reader.is_clean or self.unknown or self.faults or reader.unread.is_bad:
            # Nothing is known, or enough is wrong.
            return
        folder = self._folder
        if not self._spans:
            checkpoint = Checkpoint(self._files, reader.root)
            checkpoint.load()
            is_empty = not self._files.list(folder)
            if checkpoint.index_ms > 0 and is_empty and not self._is_off:
                self._report("index", folder, 0, "there was an index; it has no file")
            return
        pairs = itertools.pairwise(self._spans)
        gaps = [(path, end, begin) for (path, _, end, _), (_, begin, _, _) in pairs]
        path, _, end, is_full = self._spans[-1]
        if is_full and not self._is_off:
            gaps.append((path, end, reader.log_end()))
        for path, end, begin in gaps:
            position = self._with_keys(end, end + 1, begin)
            if position >= 0:
                text = "the file behind it is missing: no query by key finds messages "
                text += f"from position {position} "
                text += "on" if begin == reader.log_end() else f"to {begin}"
                text += "; a repair makes the index again from the log"
                self._report("index", path, 0, text)
        path, begin, _, _ = self._spans[0]
        if not self._is_off:
            self._first(path, begin)

    def _first(self, path: str, begin: int) -> None:
        """Remark that the first file begins behind records with keys."""
        lowest = self._reader.lowest
        position = self._with_keys(lowest, lowest, begin)
        if position >= 0:
            text = f"no query by key finds messages from position {position} to {begin}"
            text += (
                ": the index was turned on later, or RocketMQ's broker lost them in "
            )
            text += "a crash; moved away, it is made again by a start of ours"
            self.remarks.append(Remark(path, begin, text))

    def _with_keys(self, position: int, first: int, end: int) -> int:
        """The position of the first record with keys.

        @param position: where a record begins, to look from.
        @param first: those before it do not count.
        @param end: where to end.
        @return: -1 if there is none, or it takes too long to find.
        """
        reader = self._reader
        for _ in range(MAX_LOOKED_AT):
            segment = reader.log.find(position)
            if segment is None or position >= end:
                return -1
            at = position - segment.start
            size = int.from_bytes(segment.pread(4, at), "big")
            size = min(max(8, size), segment.end - position, MAX_RECORD)
            try:
                found = parse(segment.pread(size, at), 0, position, True)
            except Blank:
                position = segment.end
                continue
            except Broken:
                return -1
            flags = found.sys_flag
            is_kept = flags & TRANSACTION_MASK != TRANSACTION_ROLLBACK
            is_single = position >= first and not flags & INNER_BATCH
            if is_single and is_kept and codes_of_one(0, found.properties):
                return position
            position += found.size
        return -1

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
        self._spans.append((path, begin_position, end_position, count >= self._numbers))
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
        segment = self._reader.log.find(position)
        if segment is None:
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
        prefix = unsigned_hash(topic + "#")
        if code in codes_of_one(prefix, found.properties):
            return ""
        if code == tags_code(prefix, found.properties):
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

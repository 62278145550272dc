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

from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.records.hashing import unsigned_hash
from rocketbroker.store.faults import Fault
from rocketbroker.store.index import FOLDER
from rocketbroker.store.indexfile import HEADER, INDEX_ENTRY, SLOT, file_size
from rocketbroker.store.indexkeys import codes_of_one
from rocketbroker.store.reader import StoreReader
from rocketbroker.store.scanning import Blank, Broken, parse

#: So many entries of each file are followed to their records.
SAMPLE: Final = 1000

#: So many entries are read at once.
AT_ONCE: Final = 100_000

#: So many faults of one file are told; more only come of one that is lost as a whole.
MOST_TOLD: Final = 20


@final
class IndexVerification:
    """One walk through the index.

    @ivar entries: how many entries were checked.
    @ivar faults: how many were told.
    @ivar unknown: the files whose size fits no settings, and were not looked at.
    """

    def __init__(
        self,
        files: IFiles,
        reader: StoreReader,
        root: str,
        slots: int,
        numbers: int,
        tell: Callable[[Fault], None],
    ) -> None:
        """
        @param slots: the setting maxHashSlotNum.
        @param numbers: the setting maxIndexNum.
        @param tell: is given each fault when it is found.
        """
        self._files = files
        self._reader = reader
        self._folder = os.path.join(root, FOLDER)
        self._slots = slots
        self._numbers = numbers
        self._tell_fault = tell
        self.entries = 0
        self.faults = 0
        self.unknown: list[str] = []

    def run(self) -> None:
        """Check everything. Only in a store that was stopped cleanly: in one that runs
        the last file changes, and after a crash the next start makes it again."""
        if not self._reader.is_clean:
            return
        for name in sorted(self._files.list(self._folder)):
            path = os.path.join(self._folder, name)
            if not (name.isascii() and name.isdigit()) or self._files.is_dir(path):
                continue
            size = self._files.size(path)
            if size != file_size(self._slots, self._numbers):
                if size:
                    self.unknown.append(path)
                continue
            file = self._files.open_readonly(path)
            try:
                for position, text in self._file(file):
                    self.faults += 1
                    self._tell_fault(Fault("index", path, position, text))
            finally:
                file.close()

    def _file(self, file: IFile) -> Iterator[tuple[int, str]]:
        """What is wrong with a file: where in it, and what."""
        fields = HEADER.unpack(file.pread(HEADER.size, 0))
        begin_position, end_position, used, count = fields[2:]
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
        for slot in self._wrong_slots(file, slots):
            yield HEADER.size + slot * SLOT.size, f"slot {slot} leads to a wrong entry"

    def _chains(
        self, file: IFile, count: int, slots: array[int]
    ) -> Iterator[tuple[int, str]]:
        """Entries that are wrong; C{slots} has the last of each in the end."""
        start = HEADER.size + self._slots * SLOT.size
        size = INDEX_ENTRY.size
        step = max(1, count // SAMPLE)
        last = 0
        for first in range(1, count, AT_ONCE):
            some = min(AT_ONCE, count - first)
            data = file.pread(some * size, start + first * size)
            for number, entry in enumerate(INDEX_ENTRY.iter_unpack(data), first):
                code, position, seconds, before = entry
                slot = code % self._slots
                why = ""
                if code < 0 or seconds < 0:
                    why = "its hash or its time is negative"
                elif before != slots[slot]:
                    why = f"it names entry {before} before it, not {slots[slot]}"
                elif position < last:
                    why = f"its position {position} is before that of the one before"
                elif number % step == 0:
                    why = self._why(code, position)
                slots[slot] = number
                last = position
                self.entries += 1
                if why:
                    yield start + number * size, f"entry {number}: {why}"

    def _why(self, code: int, position: int) -> str:
        """What is wrong with where an entry leads; empty if nothing is, or its record
        is not in the log any more."""
        for segment in self._reader.segments:
            if segment.start <= position < segment.end:
                break
        else:
            gone = position < self._reader.segments[0].start
            return "" if gone else f"the log has no position {position}"
        at = position - segment.start
        head = segment.file.pread(4, at)
        size = min(max(8, int.from_bytes(head, "big")), segment.end - position)
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
        wanted = array("i", slots)
        if SLOT.pack(1) != array("i", (1,)).tobytes():
            wanted.byteswap()
        if data == wanted.tobytes():
            return []
        there = array("i", data.ljust(len(slots) * 4, b"\0"))
        pairs = enumerate(zip(there, wanted, strict=True))
        return [slot for slot, (is_, should) in pairs if is_ != should][:MOST_TOLD]

# -*- test-case-name: tests.store.index.test_file -*-
"""One file of the index: from the hash of a key to the positions of its messages.

Layout::

    ==================  ========================================================
    part                content
    ==================  ========================================================
    header, 40 bytes    begin and end time i64, begin and end position i64,
                        slots in use i32, the next entry's number i32
    slots, 4 bytes      the number of the newest entry, 0 for none
    entries, 20 bytes   hash i32, position i64, seconds since the begin time
                        i32, the number of the slot's entry before it i32
    ==================  ========================================================

Entries are numbered from 1; the place of entry 0 is never used. Entries stand one after
the other and are written by one C{pwrite} for each step.

The slots change all over the place. So those of the file that is being filled are kept
in memory, 20 MB as a rule, and written when it is put on the disk: when it is full, and
at a clean stop. Their blocks are reserved before, so that this cannot fail on a full
disk. Until then the slots in the file are old ones; but after any other stop a file
that is not full is built again, as it is not on the disk for certain. They are not
mapped: a write through a mapping of a file that has become unwritable is a signal that
kills the process.

Thousands of keys come in one step. In pure Python its entries are made column by
column, by calls that work on whole arrays. Only the slot of each key is left to a
Python loop: its number is read and replaced as it stands, without regard to the order
of its bytes. The compiled codec makes one entry after the other.

C{docs/facts/store.md} 12.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import ge
from typing import Final, final

from rocketbroker.codec.build import COMPILED
from rocketbroker.codec.keys import enter
from rocketbroker.files.blocks import UNREADABLE
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.files.os_errors import located, reason
from rocketbroker.store.index.keys import Keys, seconds_between

#: The directory of the files in that of the store.
FOLDER: Final = "index"

HEADER: Final = struct.Struct(
    ">"
    "q"  # begin time
    "q"  # end time
    "q"  # begin position
    "q"  # end position
    "i"  # slots in use
    "i"  # number of the next entry
)
SLOT: Final = struct.Struct(">i")
INDEX_ENTRY: Final = struct.Struct(
    ">"
    "i"  # hash
    "q"  # position of the record
    "i"  # seconds since the begin time
    "i"  # number of the entry before it in the slot
)
#: So many entries of one slot are read: a second's work of a thread, which a query for
#: an old time would exceed with a key that millions of messages share.
MAX_FOLLOWED: Final = 1_000_000

#: Entries that are read at once: those before one in a slot may stand near it.
_BATCH_SIZE: Final = 200

#: Bytes of slots that are read at once, and slots that are written at once.
_PIECE: Final = 1 << 20

_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_COLUMNS: Final = INDEX_ENTRY.size // 4
_IS_LITTLE: Final = sys.byteorder == "little"
#: Where the halves of a number of 64 bits stand.
_LOW: Final = 0 if _IS_LITTLE else 1
assert array("i").itemsize == array("I").itemsize == 4
assert array("q").itemsize == 8


def file_size(slots: int, numbers: int) -> int:
    """The length of a file for so many slots and entry numbers."""
    return HEADER.size + slots * SLOT.size + numbers * INDEX_ENTRY.size


@final
class IndexFile:
    """A file of the index: slots of hashes, and entries.

    @ivar count: the number of the next entry.
    @ivar is_flushed: whether all of it is on the disk for certain.
    """

    def __init__(
        self, open_files: OpenFiles, path: str, slots: int, numbers: int
    ) -> None:
        """
        @param open_files: opens it.
        @param numbers: how many entry numbers there are, 0 included.
        """
        self._open_files = open_files
        self.path = path
        self._slots = slots
        self._numbers = numbers
        self._entries = HEADER.size + slots * SLOT.size
        #: The slots while it is filled, as numbers whose bytes are as they stand in the
        #: file; and whether the file has others.
        self._view: memoryview | None = None
        self._is_behind = False
        self.begin_ms = 0
        self.end_ms = 0
        self.begin_position = 0
        self.end_position = 0
        self.used_slots = 0
        self.count = 1
        self.is_flushed = False

    def load(self) -> str:
        """Read the header.

        @return: what is wrong with it, in words; empty if nothing is.
        """
        try:
            head = self._pread(HEADER.size, 0)
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return f"cannot be read: {reason(error)}"
        if len(head) < HEADER.size:
            return "is broken"
        (
            self.begin_ms,
            self.end_ms,
            self.begin_position,
            self.end_position,
            self.used_slots,
            count,
        ) = HEADER.unpack(head)
        self.count = max(count, 1)
        is_right = (
            0 <= count <= self._numbers
            and 0 <= self.used_slots <= self._slots
            and 0 <= self.begin_position <= self.end_position
        )
        return "" if is_right else "is broken"

    def _pread(self, size: int, at: int) -> bytes:
        """Bytes of the file.

        @raise ReadError: the disk refused; it holds the file's path.
        """
        file = self._open_files.get_to_read(self, self.path)
        try:
            return file.pread(size, at)
        except OSError as error:
            raise located(error, self.path, at) from error

    @property
    def _file(self) -> IFile:
        """The open file."""
        return self._open_files.get(self, self.path)

    @property
    def is_ready(self) -> bool:
        """Whether keys can be entered without preparation."""
        return self._view is not None

    @property
    def room(self) -> int:
        """How many more entries fit."""
        return self._numbers - self.count

    def add(self, keys: Keys) -> None:
        """Enter keys, for which there must be room; at least one.

        @raise OSError: the disk refused; nothing has changed.
        """
        codes = keys.codes
        assert 0 < len(codes) <= self.room
        view = self._slots_in_memory()
        first, slots = self.count, self._slots
        seconds = self._seconds(keys)
        if COMPILED:
            content, fresh = enter(
                [*codes],
                keys.positions.tolist(),
                seconds.tolist(),
                view,
                slots,
                first,
                _IS_LITTLE,
            )
        else:
            content, fresh = self._enter(view, keys, seconds)
        at = self._entries + first * INDEX_ENTRY.size
        try:
            self._file.pwrite(content, at)
        except OSError:
            before = array("I", content)[4::_COLUMNS]
            for code, number in zip(reversed(codes), reversed(before), strict=True):
                view[code % slots] = number
            raise
        if first <= 1:
            self.begin_ms = keys.times[0]
            self.begin_position = keys.positions[0]
        self.end_position = keys.positions[-1]
        self.end_ms = keys.times[-1]
        self.used_slots += fresh
        self._is_behind = True
        self.count += len(codes)
        self.is_flushed = False
        self.write_header()

    def _slots_in_memory(self) -> memoryview:
        """The slots.

        @raise OSError: there is no room for them in the file, or it cannot be read.
        """
        if self._view is None:
            self._file.allocate(0, self._entries)
            # Memory of its own; pages of it that are not touched cost nothing.
            slots = mmap.mmap(-1, self._slots * SLOT.size, flags=_PRIVATE)
            if self.count > 1:
                for at in range(0, len(slots), _PIECE):
                    size = min(_PIECE, len(slots) - at)
                    slots[at : at + size] = self._pread(size, HEADER.size + at)
            self._view = memoryview(slots).cast("I")
        return self._view

    def _write_slots(self) -> None:
        """I{Blocking.} Write the slots into the file, if it has others."""
        view = self._view
        if view is not None and self._is_behind:
            for at in range(0, len(view), _PIECE):
                piece = view[at : at + _PIECE].tobytes()
                self._file.pwrite(piece, HEADER.size + at * SLOT.size)
            self._is_behind = False

    def _enter(
        self, view: memoryview, keys: Keys, seconds: array[int]
    ) -> tuple[bytes, int]:
        """See L{rocketbroker.codec.keys.enter}; column by column."""
        before, fresh = self._take_slots(view, keys.codes)
        content = array("i", bytes(len(seconds) * INDEX_ENTRY.size))
        content[0::_COLUMNS] = big_endian(array("i", keys.codes))
        halves = array("i", big_endian(keys.positions[:]).tobytes())
        content[1::_COLUMNS] = halves[0::2]
        content[2::_COLUMNS] = halves[1::2]
        content[3::_COLUMNS] = big_endian(seconds)
        content[4::_COLUMNS] = array("i", before.tobytes())
        return content.tobytes(), fresh

    def _take_slots(
        self, view: memoryview, codes: Sequence[int]
    ) -> tuple[array[int], int]:
        """Enter the coming numbers into the slots.

        @return: the number in the slot before each, its bytes as they were, or 0 for
            one that cannot be right; how many of them are 0.
        """
        first = self.count
        slots = self._slots
        found: list[int] = []
        add = found.append
        numbers = raw_numbers(first, first + len(codes))
        for code, number in zip(codes, numbers, strict=True):
            slot = code % slots
            add(view[slot])
            view[slot] = number
        raw = array("I", found)
        before = big_endian(raw[:])
        # Keys of one step may share slots; else the file is broken.
        if any(map(ge, before, range(first, first + len(codes)))):
            for at, number in enumerate(before):
                if number >= first + at:
                    raw[at] = found[at] = 0
        return raw, found.count(0)

    def _seconds(self, keys: Keys) -> array[int]:
        """For each key the seconds from the begin time to its store time."""
        if self.count > 1:
            return keys.seconds(self.begin_ms)
        # The first is counted from the end of the file before, the rest from the first.
        seconds = keys.seconds(keys.times[0])
        seconds[0] = seconds_between(keys.times[0], self.begin_ms)
        return seconds

    def write_header(self) -> None:
        """Write the header."""
        header = HEADER.pack(
            self.begin_ms,
            self.end_ms,
            self.begin_position,
            self.end_position,
            self.used_slots,
            self.count,
        )
        self._file.pwrite(header, 0)

    def find(
        self, code: int, max_found: int, begin_ms: int, end_ms: int, found: list[int]
    ) -> None:
        """Find the positions of a hash in a span of time, the newest first.

        @param found: where they go, until there are C{max_found}.
        """
        for position, ms in self._follow(code):
            if len(found) >= max_found or ms < begin_ms:
                break
            if position >= 0 and ms <= end_ms and position not in found:
                found.append(position)

    def has(self, code: int, position: int) -> bool:
        """Whether a message, one of the last in the file, has an entry for a hash."""
        for stored, _ in self._follow(code):
            if 0 <= stored <= position:
                return stored == position
        return False

    def _follow(self, code: int) -> Iterator[tuple[int, int]]:
        """The entries in a hash's slot, from the newest to the oldest, each position
        and time; the position is -1 where the hash is another."""
        pread = self._pread
        at = code % self._slots
        view = self._view
        number: int
        if view is None:
            number = SLOT.unpack(pread(SLOT.size, HEADER.size + at * SLOT.size))[0]
        else:
            number = big_endian(array("i", view[at : at + 1].tobytes()))[0]
        size = INDEX_ENTRY.size
        piece = b""
        start = end = 0
        # An entry leads to an older one, so a chain without an end is broken.
        last = self.count
        for _ in range(MAX_FOLLOWED):
            if not 0 < number < last:
                return
            last = number
            if not start <= number < end:
                end = number + 1
                start = max(1, end - _BATCH_SIZE)
                piece = pread((end - start) * size, self._entries + start * size)
            stored, position, seconds, number = INDEX_ENTRY.unpack_from(
                piece, (number - start) * size
            )
            if seconds < 0:
                return
            yield (
                position if stored == code else -1,
                self.begin_ms + seconds * 1000,
            )

    def flush(self) -> None:
        """I{Blocking.} Put all on the disk."""
        self._write_slots()
        self._file.datasync()
        self.is_flushed = True
        if self.room <= 0:
            self._view = None

    def close(self) -> None:
        """Let file and slots go; running reads go on."""
        self._view = None
        self._open_files.drop(self)


def big_endian(numbers: array[int]) -> array[int]:
    """Swap the bytes of numbers, in place, on a little-endian machine."""
    if _IS_LITTLE:
        numbers.byteswap()
    return numbers


def columns(entries: bytes) -> tuple[array[int], array[int], array[int]]:
    """Hashes, positions, and the numbers of the entries before, of whole entries."""
    content = big_endian(array("i", entries))
    halves = array("i", bytes(8 * (len(content) // _COLUMNS)))
    halves[1 - _LOW :: 2] = content[1::_COLUMNS]
    halves[_LOW::2] = content[2::_COLUMNS]
    positions = array("q", halves.tobytes())
    return content[0::_COLUMNS], positions, content[4::_COLUMNS]


def raw_numbers(first: int, end: int) -> Iterator[int]:
    """Numbers as they are read, unsigned, from where they stand big-endian."""
    return chain.from_iterable(_raw_ranges(first, end))


def _raw_ranges(first: int, end: int) -> Iterator[range]:
    """The same, a range for each 256 numbers, which differ in one byte."""
    if not _IS_LITTLE:
        yield range(first, end)
        return
    while first < end:
        low = first & 255
        stop = min(256, low + end - first)
        rest = int.from_bytes((first - low).to_bytes(4, "little"), "big")
        yield range(rest + (low << 24), rest + (stop << 24), 1 << 24)
        first += stop - low


def next_path(files: IFiles, folder: str, ms: int, before: IndexFile | None) -> str:
    """The path of a file that is made now, named by local time as RocketMQ does.

    Where the newest name is ahead of the clock, as after a change of the time zone or
    when the clock was set back, the next number is taken: RocketMQ does not read a date
    there either, but the names are the order of the files.

    @param before: the newest one there is.
    """
    day = time.strftime("%Y%m%d%H%M%S", time.localtime(ms // 1000))
    number = int(f"{day}{ms % 1000:03d}")
    if before is not None:
        number = max(number, int(os.path.basename(before.path)) + 1)
    names = set(files.list(folder))
    while f"{number:017d}" in names:
        number += 1
    return os.path.join(folder, f"{number:017d}")


def create(
    open_files: OpenFiles,
    path: str,
    slots: int,
    numbers: int,
    before: IndexFile | None,
) -> IndexFile:
    """Make the file that follows another.

    @param open_files: opens it.
    @raise OSError: the disk refused; there is no such file then.
    """
    file = open_files.open(path, create=True)
    made = IndexFile(open_files, path, slots, numbers)
    open_files.put(made, file)
    try:
        file.truncate(file_size(slots, numbers))
        if before is not None and before.end_ms > 0:
            made.begin_ms = made.end_ms = before.end_ms
            made.begin_position = made.end_position = before.end_position
        made.write_header()
    except OSError:
        made.close()
        open_files.files.remove(path)
        raise
    return made

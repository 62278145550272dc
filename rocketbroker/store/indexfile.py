# -*- test-case-name: tests.store.test_index -*-
"""One file of the index: from the hash of a key to the positions of its messages.

    ==================  ========================================================
    part                content
    ==================  ========================================================
    header, 40 bytes    begin and end time i64, begin and end position i64,
                        slots in use i32, the next entry's number i32
    slots, 4 bytes      the number of the newest entry, 0 for none
    entries, 20 bytes   hash i32, position i64, seconds since the begin time
                        i32, the number of the slot's entry before it i32
    ==================  ========================================================

Entries are numbered from 1; the place of entry 0 is never used. The slots are mapped,
as they are written all over the place, once their blocks are reserved: touching a
mapped hole of a full disk would kill the process. Entries stand one after the other and
are written by C{pwrite}, many at once.

A step writes entries, then slots, then the header, and moves nothing if an entry cannot
be written. The store sheet, section 12.
"""

from __future__ import annotations

import mmap
import struct
from typing import Final, final

from rocketbroker.files.interfaces import IFile, IFiles

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
_MOST_SECONDS: Final = (1 << 31) - 1


def file_size(slots: int, numbers: int) -> int:
    """The length of a file for so many slots and entry numbers."""
    return HEADER.size + slots * SLOT.size + numbers * INDEX_ENTRY.size


@final
class IndexFile:
    """An index file.

    @ivar count: the number of the next entry.
    """

    def __init__(self, path: str, file: IFile, slots: int, numbers: int) -> None:
        """
        @param numbers: how many entry numbers there are, 0 included.
        """
        self.path = path
        self.file = file
        self._slots = slots
        self._numbers = numbers
        self._entries = HEADER.size + slots * SLOT.size
        self._map: mmap.mmap | None = None
        self.begin_ms = 0
        self.end_ms = 0
        self.begin_position = 0
        self.end_position = 0
        self.used_slots = 0
        self.count = 1

    def load(self) -> bool:
        """Read the header; whether it can be one."""
        head = self.file.pread(HEADER.size, 0)
        if len(head) < HEADER.size:
            return False
        (
            self.begin_ms,
            self.end_ms,
            self.begin_position,
            self.end_position,
            self.used_slots,
            count,
        ) = HEADER.unpack(head)
        self.count = max(count, 1)
        return (
            0 <= count <= self._numbers
            and 0 <= self.used_slots <= self._slots
            and 0 <= self.begin_position <= self.end_position
        )

    @property
    def room(self) -> int:
        """How many entries fit yet."""
        return self._numbers - self.count

    def add(self, keys: list[tuple[int, int, int]]) -> None:
        """Enter keys, for which there must be room.

        @param keys: hash, position and store time in ms of each.
        @raise OSError: the disk refused; nothing has changed.
        """
        view = self._map
        if view is None:
            self.file.allocate(0, self._entries)
            view = self._map = self.file.map(self._entries, True)
        count = first = self.count
        begin_ms = self.begin_ms
        slots = self._slots
        fresh = 0
        newest: dict[int, int] = {}
        entries = []
        for code, position, ms in keys:
            at = HEADER.size + code % slots * 4
            before = newest.get(at)
            if before is None:
                (before,) = SLOT.unpack_from(view, at)
                if not 0 < before <= count:
                    before = 0
                    fresh += 1
            seconds = (ms - begin_ms) // 1000 if begin_ms > 0 else 0
            seconds = min(max(seconds, 0), _MOST_SECONDS)
            entries.append(INDEX_ENTRY.pack(code, position, seconds, before))
            if count <= 1:
                begin_ms = ms
            newest[at] = count
            count += 1
        self.file.pwrite(b"".join(entries), self._entries + first * INDEX_ENTRY.size)
        for at, number in newest.items():
            SLOT.pack_into(view, at, number)
        if first <= 1:
            self.begin_ms = begin_ms
            self.begin_position = keys[0][1]
        _, self.end_position, self.end_ms = keys[-1]
        self.used_slots += fresh
        self.count = count
        self.write_header()

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
        self.file.pwrite(header, 0)

    def find(
        self, code: int, most: int, begin_ms: int, end_ms: int, found: list[int]
    ) -> None:
        """Look for the positions of a hash in a span of time, the newest first.

        @param found: where they go, until there are C{most}.
        """
        pread = self.file.pread
        slot = pread(SLOT.size, HEADER.size + code % self._slots * SLOT.size)
        number: int = SLOT.unpack(slot)[0]
        # An entry leads to an older one, so that what goes on for ever is broken.
        last = self.count
        while 0 < number < last and len(found) < most:
            last = number
            at = self._entries + number * INDEX_ENTRY.size
            entry = pread(INDEX_ENTRY.size, at)
            stored, position, seconds, number = INDEX_ENTRY.unpack(entry)
            if seconds < 0:
                break
            ms = self.begin_ms + seconds * 1000
            if stored == code and begin_ms <= ms <= end_ms and position not in found:
                found.append(position)
            if ms < begin_ms:
                break

    def close(self) -> None:
        """Close file and mapping."""
        if self._map is not None:
            self._map.close()
            self._map = None
        self.file.close()


def create(
    files: IFiles, path: str, slots: int, numbers: int, before: IndexFile | None
) -> IndexFile:
    """Make the file that follows another.

    @raise OSError: the disk refused; there is no such file then.
    """
    file = files.open(path, create=True)
    try:
        file.truncate(file_size(slots, numbers))
        made = IndexFile(path, file, slots, numbers)
        if before is not None and before.end_ms > 0:
            made.begin_ms = made.end_ms = before.end_ms
            made.begin_position = made.end_position = before.end_position
        made.write_header()
    except OSError:
        file.close()
        files.remove(path)
        raise
    return made

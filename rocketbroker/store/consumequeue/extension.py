# -*- test-case-name: tests.store.consumequeue.test_extension -*-
"""The extension of a consume queue: the bit maps of filters, beside its entries.

With C{enableConsumeQueueExt} the tag code of an entry is the address of a unit in files
beside the queue; the unit holds the tag code, and a bit map of the known filters that
match the message. An address is the byte where the unit begins, made negative, so far
below zero that no tag code can be it. A plug-in that knows the filters gives the bit
maps; without one units have none.

Extension files that exist are read whether the setting is on or not.

C{docs/facts/store.md} 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

from rocketbroker.files.blocks import UNREADABLE
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.queueunits import (
    EXTENSION_HEAD,
    FILE_ENDS,
    LAST_ADDRESS,
    MAX_EXTENSION,
    ExtensionUnit,
    decode_extension,
    encode_extension,
)
from rocketbroker.store.consumequeue.files import QueueFiles

FOLDER: Final = "consumequeue_ext"

#: So much of each file is left for the mark of its end.
RESERVED: Final = 4

#: How many entries are looked through at once for the last address.
ENTRY_BATCH_SIZE: Final = 4096

#: So many bytes of units are read at once by who reads those of a run of entries.
AHEAD_BYTES: Final = 4096

#: An address where no unit ever is.
NOWHERE: Final = LAST_ADDRESS

_ZERO: Final = 1 << 63

#: Gives the bit map of a message, from its topic and its properties string; empty if
#: there is none.
BitMaps: TypeAlias = Callable[[bytes, bytes], bytes]


def is_address(code: int) -> bool:
    """Whether the tag code field of an entry holds the address of a unit."""
    return code <= LAST_ADDRESS


@final
class Extension:
    """The extension units of one queue.

    @ivar files: the files that hold them.
    @ivar pending: those of the entries that the queue has pending, by their number
        among these.
    """

    __slots__ = ("_end", "files", "pending")

    def __init__(self, files: QueueFiles) -> None:
        self.files = files
        self.pending: dict[int, bytes] = {}
        self._end = 0

    def unit(self, address: int) -> ExtensionUnit | None:
        """The unit at an address; None if none is there."""
        position = address + _ZERO
        try:
            head = self.files.read(position, EXTENSION_HEAD)
            if not 0 <= position < self._end or len(head) < EXTENSION_HEAD:
                return None
            size = int.from_bytes(head[:2], "big", signed=True)
            content = self.files.read(position, max(size, EXTENSION_HEAD))
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return None
        return decode_extension(content)

    def following(self, address: int) -> bytes:
        """The unit at an address and some behind it, the last of which may be cut;
        nothing if they cannot be read."""
        position = address + _ZERO
        try:
            return self.files.read(position, AHEAD_BYTES)[
                : max(0, self._end - position)
            ]
        except OSError:
            return b""

    def tag_code(self, code: int) -> int | None:
        """The tag code of an entry.

        @return: None if it cannot be read; then the message has to go to all readers.
        """
        if code > LAST_ADDRESS:
            return code
        unit = self.unit(code)
        return unit.tag_code if unit is not None else None

    def matching(self, matches: Callable[[int], bool]) -> Callable[[int], bool]:
        """A filter on tag codes, made one on the tag code fields of entries."""

        def both(code: int) -> bool:
            if code > LAST_ADDRESS:
                return matches(code)
            found = self.tag_code(code)
            return found is None or matches(found)

        return both

    # Writing.

    def add(self, number: int, tag_code: int, store_ms: int, bit_map: bytes) -> None:
        """Note the unit of an entry that is collected; none if it were too long.

        @param number: how many entries the queue has pending before it.
        """
        most = min(MAX_EXTENSION, self.files.size - RESERVED)
        if EXTENSION_HEAD + len(bit_map) <= most:
            self.pending[number] = encode_extension(tag_code, store_ms, bit_map)

    def enter(self, entries: list[bytes]) -> list[bytes]:
        """Write the pending units.

        @param entries: those that they belong to.
        @return: the same with addresses in the place of tag codes, where there is a
            unit. An address without one, kept from before a stop, becomes L{NOWHERE}:
            the unit that is written there now is of another entry.
        @raise OSError: the disk refused; it can be tried again.
        """
        changed = []
        run: list[bytes] = []
        start = end = self._end
        for number, entry in enumerate(entries):
            position, size, code = ENTRY.unpack(entry)
            unit = self.pending.get(number)
            if unit is None:
                if code <= LAST_ADDRESS:
                    entry = ENTRY.pack(position, size, NOWHERE)
                changed.append(entry)
                continue
            left = self.files.size - end % self.files.size
            if len(unit) > left - RESERVED:
                self.files.write(start, b"".join([*run, FILE_ENDS]))
                run = []
                start = end = end + left
            changed.append(ENTRY.pack(position, size, end - _ZERO))
            run.append(unit)
            end += len(unit)
        if run:
            self.files.write(start, b"".join(run))
        self._end = end
        self.pending.clear()
        return changed

    # The range of units that counts.

    def bound(
        self, read: Callable[[int, int], bytes], low: int, high: int, cut: bool
    ) -> None:
        """End behind the last unit that an entry has the address of.

        @param read: reads entries, from an offset on, so many.
        @param low: the offset of the first entry.
        @param high: the offset behind the last.
        @param cut: remove the units behind the end.
        """
        files = self.files.all
        self._end = 0
        if not files:
            return
        last = _last_address(read, low, high)
        if last is not None:
            self._end = files[-1].start + self.files.size
            unit = self.unit(last)
            self._end = last + _ZERO + (unit.size if unit is not None else 0)
        if cut or last is None:
            self.files.cut(self._end)

    def begin_with(self, code: int) -> None:
        """Remove the files before the unit of the first entry that counts.

        @param code: the tag code of that entry.
        """
        if code <= LAST_ADDRESS:
            self.files.drop_before(code + _ZERO)

    def flush(self, least_pages: int) -> None:
        """I{Blocking.} Put the files on the disk; see L{QueueFiles.flush}."""
        self.files.flush(least_pages, self._end)

    def drop(self) -> None:
        """Remove all files."""
        self._end = 0
        self.files.drop(0)

    def forget(self) -> None:
        """See L{QueueFiles.forget}."""
        self._end = 0
        self.files.forget()


def _last_address(read: Callable[[int, int], bytes], low: int, high: int) -> int | None:
    """The last address in the entries of a queue; None if there is none."""
    while high > low:
        start = max(low, high - ENTRY_BATCH_SIZE)
        at = start
        last: int | None = None
        while at < high:
            data = read(at, high - at)
            if not data:
                break
            for _, _, code in ENTRY.iter_unpack(data[: len(data) // SIZE * SIZE]):
                if code < NOWHERE:
                    last = code
            at += len(data) // SIZE
        if last is not None:
            return last
        high = start
    return None


@final
class UnitRun:
    """Reads the units of a run of entries, which stand one behind the other."""

    __slots__ = ("_address", "_extension", "_units")

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._address = 0
        self._units = b""

    def unit(self, address: int) -> ExtensionUnit | None:
        """The unit at an address; None if none is there, or it cannot be read.

        @raise OSError: as of L{Extension.unit}.
        """
        for _ in range(2):
            at = address - self._address
            if 0 <= at <= len(self._units) - EXTENSION_HEAD:
                end = at + int.from_bytes(self._units[at : at + 2], "big", signed=True)
                if end <= len(self._units):
                    return decode_extension(self._units[at:end])
            self._address, self._units = address, self._extension.following(address)
        return self._extension.unit(address)

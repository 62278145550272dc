# -*- test-case-name: tests.store.consumequeue.test_extension -*-
"""What does not fit into the entries of a queue: the bit maps of filters.

With C{enableConsumeQueueExt} the tag code of an entry is the address of a unit in files
beside the queue, and the tag code stands there, with a bit map that says which of the
known filters want the message. An address is the byte where the unit begins, made
negative, so far below zero that no tag code can be it. The bit maps come from who knows
the filters; without one units have none.

What a directory has of this is read whether it is switched on or not.

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

#: An address where no unit ever is.
NOWHERE: Final = LAST_ADDRESS

_ZERO: Final = 1 << 63

#: Gives the bit map of a message, from its topic and its properties string; empty if
#: there is none.
BitMaps: TypeAlias = Callable[[bytes, bytes], bytes]


def is_address(code: int) -> bool:
    """Whether a tag code is none, but the address of a unit."""
    return code <= LAST_ADDRESS


@final
class Extension:
    """The units of one queue.

    @ivar files: where they stand.
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

    def tag_code(self, code: int) -> int | None:
        """The tag code that an entry means.

        @return: None if it cannot be read; then nobody knows what the message is, and
            everybody has to be given it.
        """
        if code > LAST_ADDRESS:
            return code
        unit = self.unit(code)
        return unit.tag_code if unit is not None else None

    def matching(self, matches: Callable[[int], bool]) -> Callable[[int], bool]:
        """A filter on tag codes as one on what stands in entries."""

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
            what is written there now is of another entry.
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

    # What stands in the files, and what of it counts.

    def bound(
        self, read: Callable[[int, int], bytes], low: int, high: int, cut: bool
    ) -> None:
        """End behind the last unit that an entry has the address of.

        @param read: gives entries, from an offset on, so many.
        @param low: the offset of the first entry.
        @param high: the offset behind the last.
        @param cut: remove what follows.
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

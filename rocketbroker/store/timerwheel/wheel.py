# -*- test-case-name: tests.store.timerwheel.test_timers -*-
"""The wheel: a slot for each time, C{timerwheel}.

A slot::

    ======  ==========================================
    offset  field
    ======  ==========================================
    0       time / precision, i64
    8       first position in the timer log, i64
    16      last position, i64
    24      number of messages, i32
    28      magic, i32: carried along
    ======  ==========================================

The file has 1,209,600 slots: of two weeks, with a precision of a second. A time has the
slot of its number modulo that; a slot with another time in it is empty. So nothing is
ever cleared.

RocketMQ has a copy of the whole file in memory. Here it has only the pages (4096 bytes,
128 slots) with times that are still to come: a broker without timers pays nothing, and
one with a timer in each second of three days some 8 MiB. A page that is not in memory
has no such time. A page that is made anew begins with zeros: what the file has in its
place are times that have passed.

C{docs/facts/transaction-timer-pop.md} B3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, final

SLOT: Final = struct.Struct(
    ">"
    "q"  # time / precision
    "q"  # first position
    "q"  # last position
    "i"  # number of messages
    "i"  # magic
)
SLOT_SIZE: Final = SLOT.size
assert SLOT_SIZE == 32

#: How many slots there are, whatever the precision is.
SLOTS: Final = 2 * 604_800
FILE_SIZE: Final = SLOTS * SLOT_SIZE

PAGE_SIZE: Final = 4096
PAGE_SLOTS: Final = PAGE_SIZE // SLOT_SIZE
assert SLOTS % PAGE_SLOTS == 0

_TIME: Final = struct.Struct(">q")

#: No number of messages is beyond these: a delete marker counts as -1.
_COUNTS: Final = (-(1 << 31), (1 << 31) - 1)


class Slot(NamedTuple):
    """A slot that is not empty.

    @ivar first: where its chain begins in the timer log.
    @ivar last: where it ends; -1: nowhere.
    @ivar messages: how many there are, less those that delete.
    @ivar magic: carried along.
    """

    first: int
    last: int
    messages: int
    magic: int


@final
class Wheel:
    """The slots from a time on.

    @ivar precision_ms: how much time a slot is.
    @ivar pages: those in memory, by their number in the file.
    @ivar dirty: the numbers of those that are not in the file.
    @ivar pending: the sum of the counts of slots from the read time on.
    """

    def __init__(self, precision_ms: int) -> None:
        self.precision_ms = precision_ms
        self.pages: dict[int, bytearray] = {}
        self.dirty: set[int] = set()
        self.pending = 0
        self._pruned = 0

    def load(self, data: Iterable[bytes], read_ms: int) -> None:
        """Take over pages that have times from C{read_ms} on.

        @param data: the file, in pages or multiples of them.
        """
        read = read_ms // self.precision_ms
        self._pruned = read - read % PAGE_SLOTS
        number = 0
        for part in data:
            zeros = bytes(PAGE_SIZE)
            for start in range(0, len(part), PAGE_SIZE):
                page = part[start : start + PAGE_SIZE]
                if page != zeros:
                    live = [
                        count
                        for at, (time, _, last, count, _) in enumerate(
                            SLOT.iter_unpack(page), number * PAGE_SLOTS
                        )
                        if time >= read and last >= 0 and time % SLOTS == at
                    ]
                    if live:
                        self.pages[number] = bytearray(page)
                        self.pending += sum(live)
                number += 1

    def get(self, ms: int) -> Slot | None:
        """The slot of a time; None if it is empty."""
        time = ms // self.precision_ms
        number, at = divmod(time % SLOTS, PAGE_SLOTS)
        page = self.pages.get(number)
        if page is None:
            return None
        found, *fields = SLOT.unpack_from(page, at * SLOT_SIZE)
        return Slot(*fields) if found == time else None

    def put(self, ms: int, slot: Slot) -> None:
        """Fill the slot of a time, which is the read time at the earliest."""
        time = ms // self.precision_ms
        number, at = divmod(time % SLOTS, PAGE_SLOTS)
        page = self.pages.get(number)
        if page is None:
            page = self.pages[number] = bytearray(PAGE_SIZE)
        found, _, last, count, _ = SLOT.unpack_from(page, at * SLOT_SIZE)
        if found == time and last >= 0:
            self.pending -= count
        count = min(max(slot.messages, _COUNTS[0]), _COUNTS[1])
        if slot.last >= 0:
            self.pending += count
        SLOT.pack_into(
            page, at * SLOT_SIZE, time, slot.first, slot.last, count, slot.magic
        )
        self.dirty.add(number)
        self._pruned = min(self._pruned, time - at) if self._pruned else time - at

    def clear(self, begin_ms: int, end_ms: int, passed: bool) -> None:
        """Empty the slots of a time that has passed and comes again.

        @param passed: whether they do not count as pending any more.
        """
        while (ms := self.next_used(begin_ms, end_ms)) < end_ms:
            slot = self.get(ms)
            if passed and slot is not None and slot.last >= 0:
                self.pending += slot.messages
            self.put(ms, Slot(-1, -1, 0, 0))
            begin_ms = ms + self.precision_ms

    def passed(self, slot: Slot) -> None:
        """The read time has moved behind a slot."""
        self.pending -= slot.messages

    def next_used(self, ms: int, end_ms: int) -> int:
        """The time of the first slot that is not empty, from C{ms} on, before
        C{end_ms}; C{end_ms} if there is none."""
        time, end = ms // self.precision_ms, end_ms // self.precision_ms
        pages = self.pages
        while time < end:
            number, at = divmod(time % SLOTS, PAGE_SLOTS)
            page = pages.get(number)
            if page is None:
                time += PAGE_SLOTS - at
                continue
            for number in range(at, min(PAGE_SLOTS, at + end - time)):
                if _TIME.unpack_from(page, number * SLOT_SIZE)[0] == time:
                    return time * self.precision_ms
                time += 1
        return end * self.precision_ms

    def used(self, read_ms: int) -> Iterator[tuple[int, Slot]]:
        """All slots from a time on that are not empty, with their times, in the order
        of the file."""
        pages = ((number, bytes(self.pages[number])) for number in sorted(self.pages))
        for time, slot in slots_of(pages, read_ms // self.precision_ms):
            yield time * self.precision_ms, slot

    def copied(self) -> list[tuple[int, bytes]]:
        """All pages as they are now, with their numbers."""
        return [(number, bytes(page)) for number, page in self.pages.items()]

    def counts(self, begin_ms: int, bounds_ms: Iterable[int]) -> list[int]:
        """How many messages are due between each bound and the one before it.

        @param begin_ms: where the first one begins.
        @param bounds_ms: the ends, each a longer time after C{begin_ms}.
        """
        found = []
        ms = begin_ms
        for bound in bounds_ms:
            end = begin_ms + bound
            total = 0
            while (ms := self.next_used(ms, end)) < end - end % self.precision_ms:
                slot = self.get(ms)
                total += 0 if slot is None or slot.last < 0 else slot.messages
                ms += self.precision_ms
            found.append(total)
        return found

    def take_dirty(self) -> list[tuple[int, bytes]]:
        """The pages that are to be written, with their numbers; they are not dirty any
        more."""
        taken = [(number, bytes(self.pages[number])) for number in sorted(self.dirty)]
        self.dirty.clear()
        return taken

    def not_written(self, numbers: Iterable[int]) -> None:
        """The file does not have these pages: they are dirty again."""
        self.dirty.update(number for number in numbers if number in self.pages)

    def prune(self, read_ms: int) -> None:
        """Forget the pages whose times have all passed and that are in the file."""
        read = read_ms // self.precision_ms
        time = max(self._pruned, read - SLOTS // 2)
        while time + PAGE_SLOTS <= read:
            number = time % SLOTS // PAGE_SLOTS
            if number in self.dirty:
                break
            self.pages.pop(number, None)
            time += PAGE_SLOTS
        self._pruned = time


def slots_of(
    pages: Iterable[tuple[int, bytes]], first: int
) -> Iterator[tuple[int, Slot]]:
    """The slots of some pages that are not empty, with their times by the precision.

    @param pages: with their numbers.
    @param first: the least time.
    """
    for number, page in pages:
        slots = SLOT.iter_unpack(page)
        for at, (time, *fields) in enumerate(slots, number * PAGE_SLOTS):
            if time >= first and fields[1] >= 0 and time % SLOTS == at:
                yield time, Slot(*fields)

# -*- test-case-name: tests.store.consumequeue.test_batch_queue -*-
"""The files of a batch queue: one unit for each batch, not for each message.

Topics whose attribute C{queue.type} is C{BatchCQ} have such queues, in a directory of
their own. A batch is one record in the log; its messages have consecutive offsets, and
the unit holds the first offset and the number of messages. So a unit is found by binary
search for its offset, not by counting.

Units are appended wherever the queue ends. This end, in bytes, is the fourth of its
shared positions; its other numbers are those of any queue.

C{docs/facts/store.md} 9.1.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, final

from rocketbroker.records.queueunits import BATCH_SIZE, BatchUnit, decode_batch
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.shared_positions import END, MAX, MIN, NEXT, SharedPositions

FOLDER: Final = "batchconsumequeue"


@final
class BatchUnits:
    """The units of one batch queue.

    @ivar files: the files that hold them.
    @ivar pending: those of the dispatch step that is running.
    @ivar pending_base: the offset of the first message of the first of them.
    @ivar pending_next: the offset behind the last one's last message.
    """

    __slots__ = (
        "_positions",
        "_slot",
        "files",
        "pending",
        "pending_base",
        "pending_next",
    )

    def __init__(
        self, positions: SharedPositions, slot: int, files: QueueFiles
    ) -> None:
        """
        @param slot: the first of the queue's shared positions.
        """
        self._positions = positions
        self._slot = slot
        self.files = files
        self.pending: list[bytes] = []
        self.pending_base = 0
        self.pending_next = 0

    @property
    def end(self) -> int:
        """The number of the unit that comes next, counted from byte 0."""
        return int(self._positions.view[self._slot + END]) // BATCH_SIZE

    @property
    def start(self) -> int:
        """The number of the first unit there is."""
        return self.files.all[0].start // BATCH_SIZE if self.files.all else 0

    def _set_end(self, number: int) -> None:
        self._positions.view[self._slot + END] = number * BATCH_SIZE

    # Reading.

    def unit(self, number: int) -> BatchUnit | None:
        """One unit; None where none stands."""
        data = self.files.read(number * BATCH_SIZE, BATCH_SIZE)
        unit = decode_batch(data) if len(data) == BATCH_SIZE else None
        return unit if unit is not None and unit.is_valid else None

    def units(self, number: int, max_units: int) -> list[BatchUnit]:
        """Units from one on, to the end of one file at the most."""
        max_units = min(max_units, self.end - number)
        data = self.files.read(number * BATCH_SIZE, max_units * BATCH_SIZE)
        ends = range(0, len(data) - BATCH_SIZE + 1, BATCH_SIZE)
        return [decode_batch(data, at) for at in ends]

    def find(self, offset: int) -> int:
        """The number of the unit that holds a message, or of the first behind it if
        none does."""

        def holds(number: int) -> bool:
            unit = self.unit(number)
            return unit is not None and unit.end > offset

        return bisect_left(range(self.end), True, self.start, key=holds)

    def position_of(self, offset: int) -> int:
        """The position in the log of the batch that holds a message; -1 for none."""
        number = self.find(offset)
        unit = self.unit(number) if number < self.end else None
        return unit.position if unit is not None and unit.base <= offset else -1

    def offset_by_time(self, ms: int, upper: bool) -> int:
        """The first message of the batch that belongs to a time.

        @param upper: the last batch stored then or earlier, instead of the first one
            stored then or later. Behind the last batch, both are the last one, as in
            RocketMQ. Before the first one, 0.
        """

        def is_later(number: int) -> bool:
            unit = self.unit(number)
            return unit is not None and unit.store_ms > (ms if upper else ms - 1)

        start, end = self.start, self.end
        number = bisect_left(range(end), True, start, key=is_later)
        if upper or number == end:
            number -= 1
        unit = self.unit(number) if number >= start else None
        return unit.base if unit is not None else 0

    # Writing.

    def enter(self) -> None:
        """Write the pending units and show them.

        Those of a topic that was deleted and made again take the place of the units
        that were there.

        @raise OSError: the disk refused; nothing is shown, and it can be tried again.
        """
        view, slot = self._positions.view, self._slot
        there = view[slot + MAX]
        number = self.end
        if self.pending_base < there:
            number = self.find(self.pending_base)
            self.files.cut(number * BATCH_SIZE)
            self._set_end(number)
        self.files.write(number * BATCH_SIZE, b"".join(self.pending))
        if view[slot + MIN] == there or self.pending_base < view[slot + MIN]:
            # There was no message.
            view[slot + MIN] = self.pending_base
        self._set_end(number + len(self.pending))
        is_followed = view[slot + NEXT] == there
        view[slot + MAX] = after = self.pending_next
        if is_followed or view[slot + NEXT] < after:
            view[slot + NEXT] = after

    # The range of units that counts.

    def last(self) -> BatchUnit | None:
        """The last unit."""
        return self.unit(self.end - 1) if self.end > self.start else None

    def bound(self, before: int, lowest: int, cut: bool) -> tuple[int, int]:
        """End with the last batch that starts before a position in the log.

        @param lowest: where the log begins.
        @param cut: remove the units behind the end.
        @return: the offsets of the first message whose record is there, and behind the
            last one.
        """

        def is_not_before(number: int) -> bool:
            # A single one that cannot be right is corrupt: others stand behind it.
            units = [self.unit(at) for at in (number, number + 1) if at < high]
            return all(unit is None or unit.position >= before for unit in units)

        files = self.files.all
        if not files:
            self._set_end(0)
            return 0, 0
        high = (files[-1].start + self.files.size) // BATCH_SIZE
        end = bisect_left(range(high), True, self.start, key=is_not_before)
        self._set_end(end)
        if cut:
            self.files.cut(end * BATCH_SIZE)
        last = self.last()
        if last is None:
            return 0, 0
        return self._first_offset(self.start, lowest), last.end

    def begins_before(self, lowest: int) -> bool:
        """Whether the first batch in the files is not in the log any more.

        @param lowest: where the log begins now.
        """
        unit = self.unit(self.start) if self.start < self.end else None
        return unit is not None and unit.position < lowest

    def begin_with(self, lowest: int) -> int:
        """Begin with the first message whose record is still in the log, and then
        remove the files that hold no batch that is.

        @param lowest: where the log begins now.
        @return: how many files were removed.
        """
        if self.last() is None:
            return 0
        number = self._first(self.start, lowest)
        first = self._first_offset(number, lowest)
        self._positions.view[self._slot + MIN] = first
        return self.files.drop_before(number * BATCH_SIZE)

    def _first(self, start: int, lowest: int) -> int:
        """The number of the first unit whose record is in the log."""

        def is_there(number: int) -> bool:
            unit = self.unit(number)
            return unit is not None and unit.position >= lowest

        return bisect_left(range(self.end), True, start, key=is_there)

    def _first_offset(self, start: int, lowest: int) -> int:
        """The offset of the first message whose record is there; the end if none is."""
        number = self._first(start, lowest)
        unit = self.unit(number) if number < self.end else None
        if unit is not None:
            return unit.base
        last = self.last()
        return last.end if last is not None else 0

    def drop(self) -> None:
        """Remove all files."""
        self._set_end(0)
        self.files.drop(0)

    def forget(self) -> None:
        """See L{QueueFiles.forget}."""
        self._set_end(0)
        self.files.forget()

# -*- test-case-name: tests.store.reading.test_pull -*-
"""The read of messages for a pull: those of one queue, from an offset on.

The entries come by one read and one unpack. Records that stand one behind the other in
the log become one piece, others one each: a view of the mapping where the answer goes
out in this turn, else a copy, so nothing holds the file for long. An entry is not
believed: one that points outside of the log is passed over, like one whose record was
deleted. Nor is a record that this process has not written itself, or that may come back
from the disk: these are read one by one and checked
(L{rocketbroker.store.reading.checked_read}).

RocketMQ never gives more than 32 messages or 256 KiB at once, and fewer of messages far
behind. A caller that requests more messages than that has chosen its own limits: then
only these count, and L{MAX_BYTES}.

C{docs/facts/store.md} 16.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Sequence
from typing import Final, final

from rocketbroker.codec import entries
from rocketbroker.codec.build import COMPILED
from rocketbroker.config.store import StoreOptions
from rocketbroker.records.entries import (
    ENTRY,
    MAX_EXTENT_ENTRIES,
    SIZE,
    extents_of,
)
from rocketbroker.records.tag_codes import TagCodes
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.reading.checked_read import CheckedRead
from rocketbroker.store.reading.property_filter import EntryFilter, FilteredRead
from rocketbroker.store.reads import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_FOUND_NULL,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
    Matches,
    MessageFilter,
    ReadResult,
)
from rocketbroker.store.shared_positions import (
    MAX,
    MIN,
    MIN_POSITION,
    PUBLISHED,
    Positions,
)

#: No answer may be larger (C{docs/facts/store.md} 16).
MAX_BYTES: Final = 128 << 20

#: A caller cannot request fewer bytes.
LEAST_BYTES: Final = 100

#: So many entries are unpacked at once; when a filter passes over more, it goes on.
ENTRY_BATCH_SIZE: Final = 800

#: So many extents are sent from where they are; beyond it they are joined at once.
FEW_EXTENTS: Final = 8

_FIRST: Final = struct.Struct(">q")


@final
class Reading:
    """The reading side of a store.

    @ivar scan_bytes: one read scans at least so many bytes of a queue's entries.
    @ivar max_files: and at most so many of its files, while nothing is found.
    """

    def __init__(
        self,
        segments: Segments,
        positions: Positions,
        options: StoreOptions,
        memory_bytes: int,
        corruption_log: CorruptionLog,
    ) -> None:
        """
        @param memory_bytes: the physical memory of the machine.
        @param corruption_log: notes the records that cannot be handed out.
        """
        self._corruption_log = corruption_log
        self._segments = segments
        self._positions = positions
        self._memory_bytes = memory_bytes
        self.configure(options)

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self._hot_bytes = (
            self._memory_bytes * options.access_message_in_memory_max_ratio // 100
        )
        self.scan_bytes = options.max_filter_message_size
        self.max_files = options.travel_cq_file_num_when_get_message
        self._hot_limits = (
            options.max_transfer_count_on_message_in_memory,
            options.max_transfer_bytes_on_message_in_memory,
        )
        self._cold_limits = (
            options.max_transfer_count_on_message_in_disk,
            options.max_transfer_bytes_on_message_in_disk,
        )
        self._large_limits = (
            options.rocketbroker_max_pull_messages,
            options.rocketbroker_max_pull_bytes,
        )

    def is_far(self, position: int) -> bool:
        """Whether the log at a position may no longer be in memory."""
        return bool(self._positions.view[PUBLISHED] - position > self._hot_bytes)

    def is_cold(self, queue: Queue, offset: int) -> bool:
        """See L{rocketbroker.store.interfaces.IStore.is_cold}."""
        view = self._positions.view
        if not self.is_far(view[MIN_POSITION]):
            return False
        at = max(offset, view[queue.slot + MIN])
        if offset >= view[queue.slot + MAX]:
            return False
        if queue.batch is not None:
            position: int = queue.batch.position_of(at)
            return position >= 0 and self.is_far(position)
        entry = queue.read(at, 1)
        if len(entry) < SIZE:
            return False
        position = _FIRST.unpack_from(entry)[0]
        return self.is_far(position)

    def read(
        self,
        queue: Queue,
        offset: int,
        max_messages: int,
        max_bytes: int,
        matches: Matches,
    ) -> ReadResult:
        """See L{rocketbroker.store.interfaces.IStore.read}."""
        view = self._positions.view
        first = view[queue.slot + MIN]
        end = view[queue.slot + MAX]
        if not first <= offset < end:
            return outside(offset, first, end)
        own, most, max_bytes = self.limits(queue, offset, max_messages, max_bytes)
        max_count = max(1, min(max_messages, most))
        blob = queue.read(offset, min(end - offset, max_count, ENTRY_BATCH_SIZE))
        codes = None if isinstance(matches, MessageFilter) else matches
        if codes is not None and queue.extension is not None:
            codes = queue.extension.matching(codes)
        if matches is None and own:
            plain = self._read_plain(blob, offset, max_bytes, first, end, False)
            if plain is not None:
                return plain
        scan_end = min(end, offset + max(-(-self.scan_bytes // SIZE), max_count))
        collector: Collector | CheckedRead | FilteredRead
        if own and not isinstance(matches, MessageFilter):
            bounds = view[MIN_POSITION], view[PUBLISHED]
            collector = Collector(self._segments, bounds, (max_count, max_bytes))
        else:
            # Records that this process has not written may be in a bad block; read
            # through the mapping, that is a signal that kills the process.
            collector = self.checked_read(queue, offset, max_count, max_bytes, not own)
            if isinstance(matches, MessageFilter):
                entry_filter = self.entry_filter(queue, not own, matches)
                collector = FilteredRead(entry_filter, collector)
        per_file = queue.files.size // SIZE
        at = offset
        files = 0
        while at < scan_end and not collector.is_full:
            count = len(blob) // SIZE
            if count == 0:
                if collector.count:
                    break
                first = view[queue.slot + MIN]
                if offset < first:
                    # The cleaner has removed the file meanwhile.
                    return outside(offset, first, end)
                return nothing(
                    OFFSET_FOUND_NULL, at - at % per_file + per_file, first, end
                )
            at += collector.collect(blob[: count * SIZE], count, codes)
            if at % per_file == 0:
                files += 1
                if files >= self.max_files or collector.count:
                    break
            if at < scan_end and not collector.is_full:
                blob = queue.read(at, min(scan_end - at, ENTRY_BATCH_SIZE))
        return collector.result(at, first, end)

    def limits(
        self, queue: Queue, offset: int, max_messages: int, max_bytes: int
    ) -> tuple[bool, int, int]:
        """Whether this process has written the messages there, and they are in memory;
        how many messages and bytes the broker hands out at once."""
        view = self._positions.view
        cold = view[PUBLISHED] - view[MIN_POSITION] > self._hot_bytes and self.is_cold(
            queue, offset
        )
        count_limit, bytes_limit = self._cold_limits if cold else self._hot_limits
        if max_messages > self._hot_limits[0] and self._large_limits[0]:
            count_limit, bytes_limit = self._large_limits
        max_bytes = min(max(max_bytes, LEAST_BYTES), bytes_limit, MAX_BYTES)
        return not cold and offset >= queue.trusted_from, count_limit, max_bytes

    def checked_read(
        self, queue: Queue, offset: int, max_count: int, max_bytes: int, cold: bool
    ) -> CheckedRead:
        """The collector of a read whose records have to be checked."""
        view = self._positions.view
        bounds = view[MIN_POSITION], view[PUBLISHED]
        limits = max_count, max_bytes
        return CheckedRead(
            self._segments, self._corruption_log, queue, offset, bounds, limits, cold
        )

    def entry_filter(
        self, queue: Queue, cold: bool, wanted: MessageFilter
    ) -> EntryFilter:
        """The filter of one read."""
        view = self._positions.view
        bounds = view[MIN_POSITION], view[PUBLISHED]
        return EntryFilter(self._segments, bounds, queue.extension, cold, wanted)

    def has_wanted(
        self, queue: Queue, offset: int, max_messages: int, wanted: MessageFilter
    ) -> tuple[bool, int]:
        """See L{rocketbroker.store.interfaces.IStore.has_wanted}."""
        entry_filter = self.entry_filter(queue, offset < queue.trusted_from, wanted)
        blob = queue.read(offset, min(max_messages, queue.max_offset - offset))
        count = len(blob) // SIZE
        taken = entry_filter.taken_of(blob[: count * SIZE], count)
        found = any(True for _ in taken)
        return found or entry_filter.is_spent, entry_filter.spent

    def read_warm(
        self, queue: Queue, offset: int, max_messages: int, max_bytes: int
    ) -> ReadResult | None:
        """See L{rocketbroker.store.interfaces.IStore.read_warm}."""
        view = self._positions.view
        slot = queue.slot
        first = view[slot + MIN]
        end = view[slot + MAX]
        count, size = self._hot_limits
        if not first <= offset < end or max_messages < 1:
            return None
        if max_messages > count:
            if self._large_limits[0]:
                return None
            max_messages = count
        if offset < queue.trusted_from:
            return None
        if view[PUBLISHED] - view[MIN_POSITION] > self._hot_bytes and self.is_cold(
            queue, offset
        ):
            return None
        if max_messages > end - offset:
            max_messages = end - offset
        blob = queue.files.read(offset * SIZE, max_messages * SIZE)
        if max_bytes > size:
            max_bytes = size
        return self._read_plain(blob, offset, max_bytes, first, end, True)

    def _read_plain(
        self,
        blob: bytes,
        offset: int,
        max_bytes: int,
        first: int,
        end: int,
        as_views: bool,
    ) -> ReadResult | None:
        """All messages at once, if they fit and are in one segment in memory.

        This holds for nearly all pulls, and halves their cost.

        @param blob: their entries.
        @param as_views: do not copy them.
        @return: None if they do not, or are not.
        """
        count, rest = divmod(len(blob), SIZE)
        if rest or not 0 < count <= MAX_EXTENT_ENTRIES:
            return None
        total, extents = entries.extents_of(blob) if COMPILED else extents_of(blob)
        if total > max_bytes:
            return None
        start, stop = extents[0], extents[1]
        segment = self._segments.find(start)
        if segment is None:
            return None
        low, limit = segment.start, self._positions.view[PUBLISHED]
        if limit > segment.end:
            limit = segment.end
        try:
            pages = segment.pages()
        except FileNotFoundError:
            # It was removed between being found and being opened.
            return None
        if not as_views or len(extents) > 2 or not start < stop <= limit:
            pieces = _pieces(extents, low, pages, limit, as_views)
            if not pieces:
                return None
        else:
            pieces = [pages[start - low : stop - low]]
        return ReadResult(FOUND, offset + count, first, end, pieces, count, total)


def _pieces(
    extents: list[int], low: int, pages: memoryview, limit: int, as_views: bool
) -> list[bytes | memoryview]:
    """Extents of one segment; nothing if any of them is not.

    @param extents: begin and end of each.
    @param low: where the segment begins.
    @param pages: its mapping.
    @param limit: they end here at the latest.
    @param as_views: give no copies if they are few.
    """
    views: list[bytes | memoryview] = []
    for at in range(0, len(extents), 2):
        start, stop = extents[at], extents[at + 1]
        if not low <= start < stop <= limit:
            return []
        views.append(pages[start - low : stop - low])
    if as_views and len(views) <= FEW_EXTENTS:
        return views
    return [b"".join(views)]


@final
class Collector:
    """The records in memory that one read has found so far.

    @ivar count: how many messages.
    @ivar is_full: whether no further message fits.
    """

    __slots__ = (
        "_lowest",
        "_max_bytes",
        "_max_messages",
        "_pieces",
        "_published",
        "_segments",
        "_size",
        "_status",
        "count",
        "is_full",
    )

    def __init__(
        self,
        segments: Segments,
        bounds: tuple[int, int],
        limits: tuple[int, int],
    ) -> None:
        """
        @param bounds: the oldest position of the log, and the published one.
        @param limits: the most messages and bytes.
        """
        self._segments = segments
        self._lowest, self._published = bounds
        self._max_messages, self._max_bytes = limits
        self._pieces: list[bytes] = []
        self._size = 0
        self._status = NO_MATCHED_MESSAGE
        self.count = 0
        self.is_full = False

    def collect(
        self, blob: bytes, entries: int, matches: Callable[[int], bool] | None
    ) -> int:
        """Take the records of these entries.

        @return: how many of them were passed.
        """
        max_messages, max_bytes = self._max_messages, self._max_bytes
        total, count = self._size, self.count
        pieces = self._pieces
        passed = entries
        numbers: Sequence[int] = range(entries)
        if isinstance(matches, TagCodes):
            picked = matches.pick(blob, max_messages - count, max_bytes - total)
            if picked is not None:
                numbers, blob, passed = picked
                matches = None
        # The extent that is being gathered, and the segment that it is in. Its mapping
        # stays, though the segment may be removed meanwhile: a piece is never shorter
        # than its entries say.
        start = end = low = high = 0
        view: mmap.mmap | None = None
        for number, (position, size, code) in zip(
            numbers, ENTRY.iter_unpack(blob), strict=True
        ):
            if count and (count >= max_messages or total + size > max_bytes):
                self.is_full = True
                passed = number
                break
            if matches is not None and not matches(code):
                continue
            stop = position + size
            if position != end or stop > high or size <= 0:
                if position < low or stop > high or size <= 0 or not count:
                    found = self._find(position, size)
                    if found is None:
                        if not count:
                            self._status = MESSAGE_WAS_REMOVING
                        continue
                    if view is not None:
                        pieces.append(view[start - low : end - low])
                    segment, view = found
                    low = segment.start
                    high = min(segment.end, self._published)
                elif view is not None:
                    pieces.append(view[start - low : end - low])
                start = position
            end = stop
            count += 1
            total += size
        if view is not None:
            pieces.append(view[start - low : end - low])
        self._size = total
        self.count = count
        self.is_full = self.is_full or count >= max_messages or total >= max_bytes
        return passed

    def _find(self, position: int, size: int) -> tuple[Segment, mmap.mmap] | None:
        """The segment of a record, and its mapping; None if it is not, or no more, in
        the log."""
        if position < self._lowest or size <= 0 or position + size > self._published:
            return None
        segment = self._segments.find(position)
        if segment is None or position + size > segment.end:
            return None
        try:
            view = segment.view()
        except FileNotFoundError:
            # It was removed between being found and being opened.
            return None
        if size > self._max_bytes:
            # The first one is taken whatever its size, so that is checked first.
            at = position - segment.start
            if int.from_bytes(view[at : at + 4], "big") != size:
                return None
        return segment, view

    def result(self, next_offset: int, first: int, end: int) -> ReadResult:
        """The result of the read."""
        return ReadResult(
            FOUND if self.count else self._status,
            next_offset,
            first,
            end,
            self._pieces,
            self.count,
            self._size,
        )


def outside(offset: int, first: int, end: int) -> ReadResult:
    """The result of a read at an offset that the queue does not have."""
    if end == 0:
        return nothing(NO_MESSAGE_IN_QUEUE, 0, first, end)
    if offset < first:
        return nothing(OFFSET_TOO_SMALL, first, first, end)
    if offset == end:
        return nothing(OFFSET_OVERFLOW_ONE, offset, first, end)
    return nothing(OFFSET_OVERFLOW_BADLY, end, first, end)


def nothing(status: str, next_offset: int, first: int, end: int) -> ReadResult:
    """A read that has found no message."""
    return ReadResult(status, next_offset, first, end, [], 0, 0)

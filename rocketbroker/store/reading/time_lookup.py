# -*- test-case-name: tests.store.reading.test_time_lookup -*-
"""The lookup of the queue offset of a time, and of single records.

Store times grow with the offset, so it is a binary search; each probe reads one entry
and one time stamp from the log. A record that is not in the log any more counts as too
early; in place of one that cannot be read, the next that can be read counts.

C{docs/facts/store.md} 10.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.record_head import RecordHead
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.reading.checked_read import reason_to_skip
from rocketbroker.store.shared_positions import MIN_POSITION, PUBLISHED, SharedPositions

#: The store time of a record that cannot be read, and one later than all others.
_UNREADABLE: Final = -2
_LATE: Final = 1 << 63

#: So many messages in a row that cannot be read are passed: some blocks of small ones.
_MAX_PASSED: Final = 256


@final
class TimeLookup:
    """The lookup of single records."""

    def __init__(
        self,
        segments: Segments,
        positions: SharedPositions,
        corruption_log: CorruptionLog,
    ) -> None:
        """
        @param corruption_log: notes the records that the disk cannot read.
        """
        self._corruption_log = corruption_log
        self._segments = segments
        self._positions = positions

    def record_at(self, position: int) -> bytes | None:
        """See L{rocketbroker.store.interfaces.IStore.record_at}."""
        data = self._bytes_at(position)
        try:
            parse(data, 0, position, True)
        except (Blank, Broken):
            return None
        return data

    def _bytes_at(self, position: int) -> bytes:
        view = self._positions.view
        published = view[PUBLISHED]
        if not view[MIN_POSITION] <= position <= published - 8:
            return b""
        size = 4
        try:
            head = self._segments.read(position, size, True)
            size = int.from_bytes(head, "big", signed=True)
            if size <= 0 or position + size > published:
                return b""
            return self._segments.read(position, size, True)
        except OSError as error:
            why = reason_to_skip(
                self._corruption_log, self._segments, position, size, error
            )
        self._corruption_log.note(
            position, f"The record at position {position} cannot be read: {why}."
        )
        return b""

    def _parse(self, data: bytes, position: int) -> RecordHead | None:
        try:
            return parse(data, 0, position, False)
        except (Blank, Broken):
            return None

    def store_time(self, queue: Queue, offset: int) -> int:
        """See L{rocketbroker.store.interfaces.IStore.store_time}."""
        return max(-1, self._time(queue, offset))

    def _time(self, queue: Queue, offset: int) -> int:
        """The same; L{_UNREADABLE} of one that is in the log, and cannot be read."""
        if not queue.min_offset <= offset < queue.max_offset:
            return -1
        if queue.batch is not None:
            position = queue.batch.position_of(offset)
        else:
            entry = queue.read(offset, 1)
            position = ENTRY.unpack(entry)[0] if len(entry) == SIZE else -1
        if position < self._positions.view[MIN_POSITION]:
            return -1
        found = self._parse(self._bytes_at(position), position)
        return _UNREADABLE if found is None else found.store_ms

    def _time_from(self, queue: Queue, offset: int, end: int) -> tuple[int, int]:
        """The store time of the first message from an offset on that can be read, and
        its offset. If there is none, none is too early: a reader that gets some
        messages again loses nothing."""
        for at in range(offset, min(end, offset + _MAX_PASSED)):
            time = self._time(queue, at)
            if time != _UNREADABLE:
                return time, at
        return _LATE, offset

    def offset_by_time(self, queue: Queue, ms: int, upper: bool) -> int:
        """See L{rocketbroker.store.interfaces.IStore.offset_by_time}."""
        first = low = queue.min_offset
        end = high = queue.max_offset
        if queue.batch is not None:
            return min(max(first, queue.batch.offset_by_time(ms, upper)), end)
        is_some_bad = False
        while low < high:
            middle = (low + high) // 2
            time, at = self._time_from(queue, middle, high)
            is_some_bad = is_some_bad or at > middle or time == _LATE
            if time < ms or (upper and time == ms):
                low = at + 1
            else:
                high = middle
        if upper:
            return max(first, low - 1)
        if is_some_bad:
            _, low = self._time_from(queue, low, end)
        return min(low, end)

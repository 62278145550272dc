# -*- test-case-name: tests.store.test_timesearch -*-
"""Which queue offset belongs to a time.

Store times grow with the offset, so it is a binary search; each probe reads one entry
and one time stamp from the log. A record that is not in the log any more counts as too
early.

The store sheet, section 10.
"""

from __future__ import annotations

from typing import final

from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.store.consumequeue import Queue
from rocketbroker.store.scanning import Blank, Broken, Found, parse
from rocketbroker.store.segments import Segments
from rocketbroker.store.words import COMMITTED, MIN_POSITION, Words


@final
class TimeSearch:
    """Looks single records up."""

    def __init__(self, segments: Segments, words: Words) -> None:
        self._segments = segments
        self._words = words

    def record_at(self, position: int) -> bytes | None:
        """See L{rocketbroker.store.interfaces.IStore.record_at}."""
        data = self._bytes_at(position)
        try:
            parse(data, 0, position, True)
        except (Blank, Broken):
            return None
        return data

    def _bytes_at(self, position: int) -> bytes:
        view = self._words.view
        committed = view[COMMITTED]
        if not view[MIN_POSITION] <= position <= committed - 8:
            return b""
        head = self._segments.read(position, 4, True)
        size = int.from_bytes(head, "big", signed=True)
        if size <= 0 or position + size > committed:
            return b""
        return self._segments.read(position, size, True)

    def _parse(self, data: bytes, position: int) -> Found | None:
        try:
            return parse(data, 0, position, False)
        except (Blank, Broken):
            return None

    def store_time(self, queue: Queue, offset: int) -> int:
        """See L{rocketbroker.store.interfaces.IStore.store_time}."""
        if not queue.min_offset <= offset < queue.max_offset:
            return -1
        if queue.batch is not None:
            position = queue.batch.position_of(offset)
        else:
            entry = queue.read(offset, 1)
            position = ENTRY.unpack(entry)[0] if len(entry) == SIZE else -1
        found = self._parse(self._bytes_at(position), position)
        return -1 if found is None else found[6]

    def offset_by_time(self, queue: Queue, ms: int, upper: bool) -> int:
        """See L{rocketbroker.store.interfaces.IStore.offset_by_time}."""
        first = low = queue.min_offset
        end = high = queue.max_offset
        if queue.batch is not None:
            return min(max(first, queue.batch.offset_by_time(ms, upper)), end)
        while low < high:
            middle = (low + high) // 2
            time = self.store_time(queue, middle)
            if time < ms or (upper and time == ms):
                low = middle + 1
            else:
                high = middle
        if upper:
            return max(first, low - 1)
        return min(low, end)

# -*- test-case-name: tests.store.test_log_tail -*-
"""The tail of the log: reads each record once, behind the dispatch, for followers.

It ends at the dispatched or the flushed position, whichever is less: each record it
returns stands in its queue, and no crash takes it back. It reads the log by itself, so
that append and dispatch need not know of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import final

from zope.interface import classImplements

from rocketbroker.records.record_head import RecordHead
from rocketbroker.store.commitlog.resync import Resync
from rocketbroker.store.commitlog.scanner import Scan, tag_code_of
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.dispatched_record import DispatchedRecord, ILogTail
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    FLUSHED,
    MIN_POSITION,
    SharedPositions,
)


@final
class LogTail:
    """See L{ILogTail}."""

    def __init__(
        self, segments: Segments, positions: SharedPositions, position: int
    ) -> None:
        self.position = position
        self.lost_bytes = 0
        self._segments = segments
        self._positions = positions
        self._scan: Scan | None = None
        self._walk: Iterator[RecordHead] = iter(())

    def take(self, max_records: int) -> list[DispatchedRecord]:
        """See L{ILogTail.take}."""
        view = self._positions.view
        end = min(view[DISPATCHED], view[FLUSHED])
        lowest = view[MIN_POSITION]
        if self.position < lowest:
            self._skip(lowest)
        scan = self._scan
        if scan is None:
            if self.position >= end:
                return []
            scan = self._scan = Scan(self._segments, self.position, end, False)
            self._walk = iter(scan)
        found = [dispatched(each) for each in islice(self._walk, max_records)]
        self.position = scan.position
        if len(found) < max_records:
            self._scan = None
            if scan.broken:
                lowest = view[MIN_POSITION]
                if self.position < lowest:
                    # It was removed just now.
                    self._skip(lowest)
                    return found
                # The dispatch has gone on behind it, too, and reported it.
                behind = Resync(self._segments)
                position = behind.next_or_end(self.position)
                self._skip(end if position < 0 else min(position, end))
        return found

    def _skip(self, position: int) -> None:
        """Go on at a position; the bytes before it cannot be read."""
        self.lost_bytes += position - self.position
        self.position = position
        self._scan = None


def dispatched(found: RecordHead) -> DispatchedRecord:
    """A record as followers see it."""
    position, size, topic, queue_id, offset, sys_flag, store_ms, properties = found
    return DispatchedRecord(
        position,
        size,
        topic.decode("utf-8", "replace"),
        queue_id,
        offset,
        sys_flag,
        tag_code_of(properties),
        store_ms,
        properties,
    )


classImplements(LogTail, ILogTail)

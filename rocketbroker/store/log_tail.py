# -*- test-case-name: tests.store.test_log_tail -*-
"""A walk behind the dispatch, for those who want to see each record once.

It ends where the dispatch and the disk have come to, whichever is less far: what is
shown stands in its queue, and no crash takes it back. It reads the log again by itself,
so that nobody who appends or dispatches knows of it.
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

    def take(self, most: int) -> list[DispatchedRecord]:
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
        found = [dispatched(each) for each in islice(self._walk, most)]
        self.position = scan.position
        if len(found) < most:
            self._scan = None
            if scan.broken:
                lowest = view[MIN_POSITION]
                if self.position < lowest:
                    # It was removed just now.
                    self._skip(lowest)
                    return found
                # The dispatch has gone on behind it, and has said so.
                behind = Resync(self._segments)
                position = behind.next_or_end(self.position)
                self._skip(end if position < 0 else min(position, end))
        return found

    def _skip(self, position: int) -> None:
        """Go on there; what lies between cannot be had."""
        self.lost_bytes += position - self.position
        self.position = position
        self._scan = None


def dispatched(found: RecordHead) -> DispatchedRecord:
    """What a follower sees of a record that was read."""
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

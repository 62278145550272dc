# -*- test-case-name: tests.store.commitlog.test_resync -*-
"""A search for the next whole record behind a place where no record can be read.

Behind a torn tail no whole record follows. Behind corrupt bytes, or a block that the
disk has lost, whole records follow that were acknowledged like any other: these must
not be discarded. So the log behind such a place is searched for a record whose position
field is the position where it stands, and whose lengths and CRC of the body are all
right: no accident makes one. A filler counts, too, if its size is the rest of the
segment, and if the broken record's size leads to it.

Two kinds of whole records must not count. One is a copy inside a body: so the size
field of the broken record is tried first, and counts if it leads to a whole record. The
other is a record of an earlier life: RocketMQ does not erase the tail that it discards,
and a log that has grown up to it again ends right before old records. Their positions,
lengths, CRCs, even their queue offsets may fit; but their store time is before that of
the record in front of them, by as long as a broker takes to start. (If it is by less, a
clock was corrected.)

But a clock may also be set back further, at just the place that is corrupt. So times
are checked only where there can be old records: not in a log that rocketbroker wrote to
last, as it puts zeros behind the end (L{rocketbroker.store.store_lock} knows who wrote
last), and not before the published position of a running process.

C{docs/facts/store.md} 3 and 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, final

from rocketbroker.records.record_head import LEAST_SIZE, MAGIC_BLANK, offset_of
from rocketbroker.store.commitlog.encoder import FILLER, FILLER_BYTES
from rocketbroker.store.commitlog.scanner import whole_record
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments

#: So many bytes of a segment are searched. The largest record of the default settings
#: is 4 MiB; a spot that a disk has lost is smaller than that, or the disk is lost.
LOOK_AHEAD: Final = 16 << 20

#: So much of it is read at once.
PIECE: Final = 1 << 20

#: A clock that goes back no further, in ms, was corrected; no RocketMQ broker starts as
#: fast.
CORRECTED_MS: Final = 500

#: The magic number is so far behind the start of a record, and the position.
MAGIC_AT: Final = offset_of("magic")
POSITION_AT: Final = offset_of("position")

_MAGIC: Final = re.compile(rb"\xda\xa3\x20[\xa7\xab]")


@final
class Resync:
    """The search for whole records behind a place where no record can be read."""

    def __init__(self, segments: Segments, since_ms: int = 0) -> None:
        """
        @param since_ms: the store time of the last record before it; 0 where no old
            ones can be.
        """
        self._segments = segments
        self._since_ms = since_ms

    def next_whole(self, position: int, far: bool = False) -> int:
        """I{Blocking.} Where the log goes on behind a position; -1 if it does not.

        @param far: whether to search all segments that follow, and not only one.
        """
        segment = self._segments.find(position)
        if segment is None:
            return -1
        at = position - segment.start
        size = int.from_bytes(self._segments.around_bad(segment, 4, at), "big")
        if size >= LEAST_SIZE and self._is_whole(position + size):
            return position + size
        found = self._search(segment, position + 1)
        following = self._segments.find(segment.end)
        while found < 0 and following is not None:
            if self._is_whole(following.start):
                # Also a filler, in the place of a segment that is missing.
                return following.start
            found = self._search(following, following.start)
            following = self._segments.find(following.end) if far else None
        return found

    def next_or_end(self, position: int) -> int:
        """I{Blocking.} The same, or the segment's end where nothing whole follows."""
        found = self.next_whole(position)
        segment = self._segments.find(position)
        return segment.end if found < 0 and segment is not None else found

    def _search(self, segment: Segment, start: int) -> int:
        for position in self._candidates(segment, start):
            if self._is_whole(position):
                return position
        return -1

    def _candidates(self, segment: Segment, start: int) -> Iterator[int]:
        """Positions where a magic number and the position field fit a record."""
        end = min(segment.end, start + LOOK_AHEAD)
        for begin in range(start, end, PIECE):
            size = min(PIECE + POSITION_AT + 8, segment.end - begin)
            at = begin - segment.start
            data = self._segments.around_bad(segment, size, at)
            for match in _MAGIC.finditer(data, MAGIC_AT):
                head = match.start() - MAGIC_AT
                stated = data[head + POSITION_AT : head + POSITION_AT + 8]
                if int.from_bytes(stated, "big") == begin + head:
                    yield begin + head

    def _is_whole(self, position: int) -> bool:
        segment = self._segments.find(position)
        if segment is None or segment.end - position < FILLER_BYTES:
            return False
        at = position - segment.start
        left = segment.end - position
        head = self._segments.around_bad(segment, POSITION_AT + 8, at)
        size, magic = FILLER.unpack_from(head)
        if magic == MAGIC_BLANK:
            return bool(size == left)
        if int.from_bytes(head[POSITION_AT:], "big") != position:
            return False
        found = whole_record(self._segments, position, size)
        return found is not None and found.store_ms >= self._since_ms - CORRECTED_MS

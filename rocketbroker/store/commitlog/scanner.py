# -*- test-case-name: tests.store.commitlog.test_scanner -*-
"""The scanner: reads the log from one record to the next, and checks each.

Recovery checks all: magic, CRC of the body, the sum of the lengths, and that the
record's position field is the position where it stands; the CRC of the whole record
only with C{forceVerifyPropCRC}. Look-ups of single records check the same; the dispatch
leaves out the CRC, as RocketMQ does.

C{docs/facts/store.md} 3 and 15.6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, final
from zlib import crc32

from rocketbroker.records.entries import SIZE as ENTRY_BYTES
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.record import is_crc_property_right
from rocketbroker.records.record_head import (
    LEAST_SIZE,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RecordHead,
    head_structs,
)
from rocketbroker.records.sysflags import HOST_MASK
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments

#: How much is read at once; a record larger than this is read by itself.
PIECE: Final = 1 << 20

#: The highest queue offset: behind it an entry's place does not fit 63 bits.
MAX_OFFSET: Final = (1 << 63) // ENTRY_BYTES - 1

#: Which CRCs of a record are checked: none, that of the body, or that of the whole
#: record, too, if it has one.
NO_CRC: Final = 0
BODY_CRC: Final = 1
RECORD_CRC: Final = 2

#: Why a scan ends where nothing has been written yet.
NOTHING: Final = "nothing was written"

#: The fields of a record's head that the scanner needs, by the host bits of its flag.
_HEADS: Final = head_structs(
    (
        "size",
        "magic",
        "body_crc",
        "queue_id",
        "queue_offset",
        "position",
        "sys_flag",
        "store_ms",
        "body_size",
    )
)
_HEAD_V4: Final = _HEADS[0]
_HEAD_BYTES: Final = _HEAD_V4.size
_INT: Final = struct.Struct(">i")

#: Makes a L{RecordHead} of a tuple, in a fifth of the time that calling it takes.
_head_of: Final = tuple.__new__

#: The codes of tags as they stand in properties; at most so many are kept.
codes: Final[dict[bytes, int]] = {}
MAX_CODES: Final = 4096


def tag_code_of(properties: bytes) -> int:
    """The hash of TAGS in a properties string; of two, the last counts."""
    at = properties.rfind(b"TAGS\x01")
    while at > 0 and properties[at - 1] != 2:
        at = properties.rfind(b"TAGS\x01", 0, at)
    if at < 0:
        return 0
    tags = properties[at + 5 :].partition(b"\x02")[0]
    code = codes.get(tags)
    return code if code is not None else code_of(tags)


def code_of(tags: bytes) -> int:
    """The hash of tags, which is kept in C{codes}."""
    if len(codes) >= MAX_CODES:
        codes.clear()
    code = codes[tags] = tag_code(tags.decode("utf-8", "replace"))
    return code


class Broken(Exception):
    """No record stands there; the text says why."""


class Blank(Exception):
    """The rest of the segment is a filler."""


def parse(data: bytes, at: int, position: int, check_crc: int) -> RecordHead:
    """The record at C{data[at:]}, which is in the log at C{position}.

    @param check_crc: L{NO_CRC}, L{BODY_CRC} or L{RECORD_CRC}.
    @raise Blank: it is a filler.
    @raise Broken: it is not whole, or no record.
    """
    left = len(data) - at
    if left < LEAST_SIZE:
        raise _why_short(data, at)
    fields = _HEAD_V4.unpack_from(data, at)
    size, magic, crc, queue_id, queue_offset, stated, sys_flag, store_ms, length = (
        fields
    )
    body = at + _HEAD_BYTES
    if sys_flag & HOST_MASK:
        head = _HEADS[sys_flag & HOST_MASK]
        if head.size > left:
            raise _why_short(data, at)
        size, magic, crc, queue_id, queue_offset, stated, sys_flag, store_ms, length = (
            head.unpack_from(data, at)
        )
        body = at + head.size
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        raise _why_short(data, at)
    if size < LEAST_SIZE or size > left:
        raise Broken(f"its size is {size}")
    if stated != position:
        raise Broken(f"its position field is {stated}")
    if not 0 <= queue_offset <= MAX_OFFSET:
        raise Broken(f"its queue offset is {queue_offset}")
    end = at + size
    topic = body + length if length > 0 else body
    if topic + 3 > end:
        raise Broken(f"its body is {length} bytes")
    if check_crc and length > 0 and crc32(data[body:topic]) & 0x7FFFFFFF != crc:
        raise Broken("the CRC of its body is another")
    if magic == MAGIC_V1:
        topic_end = topic + 1 + data[topic]
        topic += 1
    else:
        topic_end = topic + 2 + (data[topic] << 8) + data[topic + 1]
        topic += 2
    properties = topic_end + 2
    if properties > end:
        raise Broken("its topic is longer than the record")
    if properties + (data[topic_end] << 8) + data[topic_end + 1] != end:
        raise Broken("its lengths do not add up")
    if check_crc == RECORD_CRC and not is_crc_property_right(data, at, end):
        raise Broken("its own CRC is another")
    return _head_of(
        RecordHead,
        (
            position,
            size,
            data[topic:topic_end],
            queue_id,
            queue_offset,
            sys_flag,
            store_ms,
            data[properties:end],
        ),
    )


def _why_short(data: bytes, at: int) -> Exception:
    """Why no record begins there."""
    if len(data) - at < 8:
        return Broken("the file ends")
    size = _INT.unpack_from(data, at)[0]
    magic = _INT.unpack_from(data, at + 4)[0]
    if magic == MAGIC_BLANK:
        return Blank()
    if magic in (MAGIC_V1, MAGIC_V2):
        return Broken(f"its size is {size}")
    return Broken(NOTHING if size == magic == 0 else "no magic number")


def checked(
    data: bytes, at: int, position: int, size: int, check_crc: bool
) -> tuple[bytes, RecordHead]:
    """The record of an entry, as bytes and as fields.

    @raise Broken: it is none, or of another size.
    """
    try:
        found = parse(data, at, position, check_crc)
    except Blank:
        raise Broken("the segment ends there") from None
    if found.size != size:
        raise Broken(f"it has {found.size} bytes, {size} in its entry")
    return data[at : at + size], found


def whole_record(segments: Segments, position: int, size: int) -> RecordHead | None:
    """I{Blocking.} The record that stands at a position, if it is whole.

    @param size: so many bytes it may have at most.
    @raise OSError: the disk is bad.
    """
    segment = segments.find(position)
    if segment is None or not LEAST_SIZE <= size <= segment.end - position:
        return None
    data, refused = segments.before_bad(segment, size, position - segment.start)
    if refused:
        return None
    try:
        return parse(data, 0, position, True)
    except (Blank, Broken):
        return None


@final
class Scan:
    """A scan of the log, from record to record.

    @ivar position: where the scan is: behind the last good record.
    @ivar broken: why it ended there; empty if it came to its end.
    @ivar is_refused: whether that is because the disk cannot read the bytes behind.
    """

    def __init__(
        self,
        segments: Segments,
        start: int,
        end: int,
        check_crc: int,
        take: Callable[[bytes, int, int], int] | None = None,
    ) -> None:
        """
        @param end: nothing is read from there on.
        @param take: called with bytes of the log, an index into them, and the log
            position of the first; it may take whole records itself, and returns the
            index behind the last that it took.
        """
        self._segments = segments
        self._end = end
        self._check_crc = check_crc
        self._take = take
        self.position = start
        self.broken = ""
        self.is_refused = False

    def __iter__(self) -> Iterator[RecordHead]:
        """The records, until the end or the first that is broken."""
        while self.position < self._end and not self.broken:
            segment = self._segments.find(self.position)
            if segment is None:
                self.broken = "there is no file"
                return
            yield from self._segment(segment)

    def _segment(self, segment: Segment) -> Iterator[RecordHead]:
        end = min(self._end, segment.end)
        wanted = PIECE
        while self.position < end:
            start = self.position
            size = min(wanted, end - start)
            at = start - segment.start
            data, refused = self._segments.before_bad(segment, size, at)
            wanted = PIECE
            try:
                yield from self._piece(data, start, start + len(data) < end)
            except Blank:
                self.position = segment.end
                return
            except Broken as error:
                self.broken = str(error)
                return
            if refused:
                self.broken = refused
                self.is_refused = True
                return
            if self.position == start:
                # Not even one fits: read that one alone, if its size can be right.
                wanted = max(LEAST_SIZE, _INT.unpack_from(data)[0])
                if wanted <= size or wanted > end - start:
                    self.broken = f"its size is {wanted}"
                    return

    def _piece(self, data: bytes, start: int, more: bool) -> Iterator[RecordHead]:
        """The records of one piece, but for one that only the next holds whole."""
        at = 0
        size = len(data)
        check_crc = self._check_crc
        take = self._take
        while at < size:
            if take is not None:
                at = take(data, at, start)
                self.position = start + at
            try:
                found = parse(data, at, start + at, check_crc)
            except Broken as error:
                if more and _is_cut(data, at) and str(error) != NOTHING:
                    return
                raise
            at += found.size
            self.position = start + at
            yield found


def _is_cut(data: bytes, at: int) -> bool:
    """Whether the record there may only be longer than the bytes that were read."""
    left = len(data) - at
    return left < LEAST_SIZE or _INT.unpack_from(data, at)[0] > left

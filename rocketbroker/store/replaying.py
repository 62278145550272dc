# -*- test-case-name: tests.store.test_replaying -*-
"""Many records at once from the log into their queues, after a stop that was not clean.

A start may have to read millions of records. One at a time, through
L{rocketbroker.store.scanning.parse} and the dispatcher, costs twice as much as here,
where one loop takes all that are I{ordinary}: of version 1, with hosts of 4 bytes, no
part of a transaction and no inner batch, neither delayed nor for a batch queue, whole
and with the right CRC, next in their queue, and followed by another magic number. The
loop decides nothing else. It ends at the first record that is not ordinary, whatever
that means, and the exact way looks at it.
"""

from __future__ import annotations

import struct
from typing import Final, final
from zlib import crc32

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.sysflags import HOST_MASK, INNER_BATCH, TRANSACTION_MASK
from rocketbroker.store.consumequeue import MAGIC_V1, Queue
from rocketbroker.store.delays import SCHEDULE_TOPIC

_HEAD: Final = struct.Struct(
    ">"
    "i"  # total size
    "i"  # magic
    "i"  # CRC of the body
    "i"  # queue id
    "4x"  # flag
    "q"  # queue offset
    "q"  # physical offset
    "i"  # system flag
    "8x"  # born time stamp
    "8x"  # born host
    "q"  # store time stamp
    "8x"  # store host
    "4x"  # reconsume times
    "8x"  # prepared transaction offset
    "i"  # length of the body
)
_HEAD_BYTES: Final = _HEAD.size

#: The bytes of a record that are in none of its three parts, nor in the head.
_LENGTHS: Final = 3

_UNUSUAL: Final = TRANSACTION_MASK | HOST_MASK | INNER_BATCH


@final
class Lane:
    """A queue while its records are collected.

    @ivar expected: the queue offset of the next one.
    @ivar floor: records before this position are entered already, or of a topic that
        was deleted.
    """

    __slots__ = ("entries", "expected", "floor", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.entries = queue.pending
        self.expected = queue.max_offset
        if self.entries:
            self.expected = queue.pending_offset + len(self.entries)
        self.floor = max(queue.from_position, queue.max_position)

    def close(self) -> None:
        """Say in the queue where what was collected ends."""
        if self.entries:
            position, size, _ = ENTRY.unpack(self.entries[-1])
            self.queue.pending_end = position + size


def replay(
    data: bytes,
    at: int,
    start: int,
    check_crc: bool,
    known: dict[tuple[bytes, int], Queue],
    codes: dict[bytes, int],
    touched: list[Queue],
) -> tuple[int, int, int]:
    """Collect the entries of the ordinary records from C{data[at:]} on.

    The tag codes of C{pending_codes} are left out: nobody waits for what arrives.

    @param start: the position of C{data} in the log.
    @param known: queues by topic and number; a record of another is not ordinary.
    @param codes: the codes of tags; likewise.
    @param touched: where queues are noted that had nothing pending.
    @return: behind the last one taken, how many they were, and its store time.
    """
    lanes: dict[tuple[bytes, int], Lane] = {}
    unpack, pack, crc_of = _HEAD.unpack_from, ENTRY.pack, crc32
    find, find_last = data.find, data.rfind
    last = len(data) - _HEAD_BYTES
    count = taken_ms = 0
    if at > last:
        return at, 0, 0
    size, magic, crc, number, offset, said, flags, ms, length = unpack(data, at)
    while magic == MAGIC_V1 and said == start + at and not flags & _UNUSUAL:
        body = at + _HEAD_BYTES
        topic = body + length
        end = at + size
        if length < 0 or end > last or topic + _LENGTHS > end or topic < body:
            break
        if check_crc and length and crc_of(data[body:topic]) & 0x7FFFFFFF != crc:
            break
        first = topic + 1 + data[topic]
        if first + 2 > end or first + 2 + (data[first] << 8) + data[first + 1] != end:
            break
        tags = find_last(b"TAGS\x01", first + 2, end)
        code: int | None = 0
        if tags >= 0:
            if tags != first + 2 and data[tags - 1] != 2:
                break
            tags_end = find(b"\x02", tags, end)
            code = codes.get(data[tags + 5 : tags_end if tags_end >= 0 else end])
        key = data[topic + 1 : first], number
        lane = lanes.get(key)
        if lane is None:
            queue = known.get(key)
            if queue is None or queue.batch or queue.topic_bytes == SCHEDULE_TOPIC:
                break
            lane = lanes[key] = Lane(queue)
        if code is None or offset != lane.expected or said < lane.floor:
            break
        following = unpack(data, end)
        if following[1] != MAGIC_V1:
            break
        entries = lane.entries
        if not entries:
            touched.append(lane.queue)
            lane.queue.pending_offset = offset
        entries.append(pack(said, size, code))
        lane.expected = offset + 1
        count += 1
        taken_ms = ms
        at = end
        size, magic, crc, number, offset, said, flags, ms, length = following
    for lane in lanes.values():
        lane.close()
    return at, count, taken_ms

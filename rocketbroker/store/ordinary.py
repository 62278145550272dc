# -*- test-case-name: tests.store.test_replaying -*-
"""Many records of the log at once.

A start after a crash, and a check of a whole store, may have to read millions of
records. One at a time, through L{rocketbroker.store.scanning.parse}, costs more than
twice as much as here, where one loop takes all that are I{ordinary}: of version 1, with
hosts of 4 bytes, neither half messages nor inner batches, whole and with the right
CRC, next in their queue, and followed by another magic number. The loop decides nothing
else. It ends at the first record that is not ordinary, whatever that means, and the
exact way looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final
from zlib import crc32

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.record import (
    CRC_BEGINS,
    CRC_PROPERTY_SIZE,
    is_crc_property_right,
)
from rocketbroker.records.sysflags import HOST_MASK, INNER_BATCH, TRANSACTION_PREPARED
from rocketbroker.store.consumequeue import MAGIC_V1
from rocketbroker.store.scanning import HEAD_V4, code_of, codes

_HEAD_BYTES: Final = HEAD_V4.size

#: The bytes of a record that are in none of its three parts, nor in the head.
_LENGTHS: Final = 3

#: Half messages and those that were rolled back, but not committed ones.
_UNUSUAL: Final = TRANSACTION_PREPARED | HOST_MASK | INNER_BATCH


@final
class Lane:
    """A queue while its records are collected.

    @ivar entries: the entries of what was collected, which may have begun before.
    @ivar append: adds one more.
    @ivar expected: the queue offset of the next record.
    """

    __slots__ = ("append", "entries", "expected")

    def __init__(self, entries: list[bytes], expected: int) -> None:
        self.entries = entries
        self.append = entries.append
        self.expected = expected


def collect(
    data: bytes,
    at: int,
    start: int,
    check_crc: bool,
    lane_of: Callable[[tuple[bytes, int], int], Lane | None],
    check_own_crc: bool = False,
) -> tuple[int, int, int]:
    """Collect the entries of the ordinary records from C{data[at:]} on.

    @param start: the position of C{data} in the log.
    @param lane_of: gives the lane of a topic and queue number, asked once for each,
        with the position of a record; None if that is not ordinary.
    @param check_own_crc: nor is a record with a wrong one in its properties.
    @return: behind the last one taken, how many they were, and its store time.
    """
    lanes: dict[tuple[bytes, int], Lane] = {}
    unpack, pack, crc_of = HEAD_V4.unpack_from, ENTRY.pack, crc32
    find, find_last, recall, remembered = data.find, data.rfind, lanes.get, codes.get
    count = taken_ms = 0
    if at > (last := len(data) - _HEAD_BYTES):
        return at, 0, 0
    size, magic, crc, number, offset, said, flags, ms, length = unpack(data, at)
    while said == start + at and not flags & _UNUSUAL and magic == MAGIC_V1:
        body = at + _HEAD_BYTES
        topic = body + length
        end = at + size
        if not body <= topic <= end - _LENGTHS or end > last:
            break
        if check_crc and crc_of(data[body:topic]) & 0x7FFFFFFF != crc and length:
            break
        first = topic + 1 + data[topic]
        if first + 2 > end or first + 2 + (data[first] << 8) + data[first + 1] != end:
            break
        if (
            check_own_crc
            and data[end - CRC_PROPERTY_SIZE] == CRC_BEGINS
            and not is_crc_property_right(data, at, end)
        ):
            break
        tags = find_last(b"TAGS\x01", first + 2, end)
        code: int | None = 0
        if tags >= 0:
            if data[tags - 1] != 2 and tags != first + 2:
                break
            tags_end = find(b"\x02", tags, end)
            text = data[tags + 5 : tags_end if tags_end >= 0 else end]
            code = remembered(text)
            if code is None:
                code = code_of(text)
        key = data[topic + 1 : first], number
        lane = recall(key)
        if lane is None:
            lane = lane_of(key, said)
            if lane is None:
                break
            lanes[key] = lane
        if offset != lane.expected:
            break
        following = unpack(data, end)
        if following[1] != MAGIC_V1:
            break
        lane.append(pack(said, size, code))
        lane.expected = offset + 1
        count += 1
        taken_ms = ms
        at = end
        size, magic, crc, number, offset, said, flags, ms, length = following
    return at, count, taken_ms

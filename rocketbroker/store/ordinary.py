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

import struct
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
from rocketbroker.store.scanning import tag_code_of

#: What decides whether a record is ordinary, of its head as L{records.record} has it.
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
    "44x"  # times, hosts, reconsume times, prepared transaction offset
    "i"  # length of the body
)
_HEAD_BYTES: Final = _HEAD.size
_STORE_TIME: Final = struct.Struct(">56xq")

#: The lengths of a topic and of properties: one byte and two.
_LENGTHS: Final = 3

_TAGS: Final = b"TAGS\x01"

#: Half messages and those that were rolled back, but not committed ones.
_UNUSUAL: Final = TRANSACTION_PREPARED | HOST_MASK | INNER_BATCH


@final
class Lane:
    """A queue while its records are collected.

    @ivar entries: the entries of what was collected, which may have begun before.
    @ivar append: adds one more.
    @ivar first: the queue offset of the first record.
    @ivar expected: that of the next.
    """

    __slots__ = ("append", "entries", "expected", "first")

    def __init__(self, entries: list[bytes], expected: int) -> None:
        self.entries = entries
        self.append = entries.append
        self.first = self.expected = expected


def collect(
    data: bytes,
    at: int,
    start: int,
    check_crc: bool,
    lane_of: Callable[[tuple[bytes, int], int], Lane | None],
    check_own_crc: bool = False,
) -> tuple[int, int, int]:
    """Collect the entries of the ordinary records from C{data[at:]} on.

    What stands between the body and the properties, and the end of these from the tags
    on, is the same in most records of a queue: both are looked up as they are, and only
    taken apart the first time.

    @param start: the position of C{data} in the log.
    @param lane_of: gives the lane of a topic and queue number, asked once for each,
        with the position of a record; None if that is not ordinary.
    @param check_own_crc: nor is a record with a wrong one in its properties.
    @return: behind the last one taken, how many they were, and its store time.
    """
    lanes: dict[tuple[bytes, int], Lane] = {}
    # By what stands before the properties, with the length that it says they have, and
    # queue number: a lane, and that length.
    known: dict[bytes, dict[int, tuple[Lane, int]]] = {}
    # Tag codes by the ends of records, of which the latest was so long.
    endings: dict[bytes, int] = {}
    ending = 0
    unpack, pack, crc_of, remembered = _HEAD.unpack_from, ENTRY.pack, crc32, endings.get
    latest = at
    if at > (last := len(data) - _HEAD_BYTES):
        return at, 0, 0
    size, magic, crc, number, offset, said, flags, length = unpack(data, at)
    while said == start + at and not flags & _UNUSUAL and magic == MAGIC_V1:
        body = at + _HEAD_BYTES
        topic = body + length
        end = at + size
        if not body <= topic < end <= last:
            break
        if check_crc and crc_of(data[body:topic]) & 0x7FFFFFFF != crc and length:
            break
        first = topic + data[topic] + _LENGTHS
        mark = data[topic:first]
        try:
            lane, left = known[mark][number]
        except KeyError:
            key = mark[1:-2], number
            place = _place(lanes.get(key) or lane_of(key, said), mark)
            if place is None:
                break
            lane, left = known.setdefault(mark, {})[number] = place
            lanes[key] = lane
        if first + left != end or offset != lane.expected:
            break
        code = remembered(data[end - ending : end]) if ending < left else None
        if code is None:
            if check_own_crc and not is_crc_property_right(data, at, end):
                break
            code, ending = _ending(data, first, end, endings)
            if code is None:
                break
        following = unpack(data, end)
        if following[1] != MAGIC_V1:
            break
        lane.append(pack(said, size, code))
        lane.expected = offset + 1
        latest = at
        at = end
        size, magic, crc, number, offset, said, flags, length = following
    count = sum(lane.expected - lane.first for lane in lanes.values())
    return at, count, _STORE_TIME.unpack_from(data, latest)[0] if count else 0


def _place(lane: Lane | None, mark: bytes) -> tuple[Lane, int] | None:
    """A lane with the length that properties have behind this; None without a lane."""
    return None if lane is None else (lane, int.from_bytes(mark[-2:], "big"))


def _ending(
    data: bytes, first: int, end: int, endings: dict[bytes, int]
) -> tuple[int | None, int]:
    """The tag code of the properties C{data[first:end]}.

    @param endings: the codes of ends from the separator before the tags on. Only those
        are added that are no CRC, nor hold one: it would be another for each record.
    @return: the code, None if it takes a closer look; and the length of such an end.
    """
    tags = data.rfind(_TAGS, first, end)
    if tags < 0:
        return 0, 0
    if data[tags - 1] != 2 and tags != first:
        return None, 0
    ending = data[tags - 1 : end]
    code = endings.get(ending)
    if code is None:
        code = tag_code_of(data[tags:end])
        if tags != first and data[end - CRC_PROPERTY_SIZE] != CRC_BEGINS:
            endings[ending] = code
    return code, len(ending)

# -*- test-case-name: tests.store.dispatch.test_replaying -*-
"""The fast path of reading the log: many ordinary records in one loop.

A start after a crash, and a check of a whole store, may have to read millions of
records. One at a time, through L{rocketbroker.store.commitlog.scanner.parse}, costs
more than twice as much as here, where one loop takes all that are I{ordinary}: of
version 1, with hosts of 4 bytes, neither half messages nor inner batches, whole and
with the right CRC, next in their queue, and followed by another magic number. The loop
decides nothing else. It ends at the first record that is not ordinary, and the scanner
goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final
from zlib import crc32

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.record import (
    CRC_BEGINS,
    CRC_PROPERTY_SIZE,
    is_crc_property_right,
)
from rocketbroker.records.record_head import MAGIC_V1, head_struct
from rocketbroker.records.sysflags import HOST_MASK, INNER_BATCH, TRANSACTION_PREPARED
from rocketbroker.store.commitlog.scanner import tag_code_of

#: The fields that decide whether a record is ordinary.
_HEAD: Final = head_struct(
    0,
    (
        "size",
        "magic",
        "body_crc",
        "queue_id",
        "queue_offset",
        "position",
        "sys_flag",
        "body_size",
    ),
)
_HEAD_BYTES: Final = _HEAD.size
_STORE_TIME: Final = head_struct(0, ("store_ms",))

#: The lengths of a topic and of properties: one byte and two.
_LENGTHS: Final = 3

_OWN_CRC: Final = CRC_PROPERTY_SIZE
_TAGS: Final = b"TAGS\x01"

#: Half messages and those that were rolled back, but not committed ones.
_UNUSUAL: Final = TRANSACTION_PREPARED | HOST_MASK | INNER_BATCH


@final
class QueueRun:
    """A queue while its records are collected.

    @ivar entries: the collected entries, which may have begun before.
    @ivar append: adds one more.
    @ivar first: the queue offset of the first record.
    @ivar expected: that of the next.
    """

    __slots__ = ("append", "entries", "expected", "first")

    def __init__(self, entries: list[bytes], expected: int) -> None:
        self.entries = entries
        self.append = entries.append
        self.first = self.expected = expected


#: Gives the run of a topic and queue number, with the position of a record.
RunOf: TypeAlias = Callable[[tuple[bytes, int], int], QueueRun | None]


@final
class _Runs:
    """All runs of one call.

    @ivar places: by the bytes before the properties, length included, and by queue
        id: the run, and that length.
    """

    def __init__(self, run_of: RunOf) -> None:
        self.places: dict[bytes, dict[int, tuple[QueueRun, int]]] = {}
        self._runs: dict[tuple[bytes, int], QueueRun] = {}
        self._run_of = run_of

    def place(
        self, mark: bytes, number: int, stated: int
    ) -> tuple[QueueRun, int] | None:
        """The value in C{places} for a record; None if it is not ordinary."""
        key = mark[1:-2], number
        run = self._runs.get(key) or self._run_of(key, stated)
        if run is None:
            return None
        self._runs[key] = run
        place = run, int.from_bytes(mark[-2:], "big")
        self.places.setdefault(mark, {})[number] = place
        return place

    def count(self) -> int:
        """How many records were collected."""
        return sum(run.expected - run.first for run in self._runs.values())


@final
class _Codes:
    """The codes of tags, by the separator before them, their name, and themselves with
    the separator behind.

    @ivar last: of tags that are the last property, where the separator may be missing.
    @ivar inner: of others.
    """

    def __init__(self) -> None:
        self.last: dict[bytes, int] = {}
        self.inner: dict[bytes, int] = {}

    def find(self, data: bytes, first: int, end: int) -> tuple[int | None, int, bool]:
        """The tags of the properties C{data[first:end]}.

        @return: their code, None if the scanner must decide; the length of the key in
            C{last} or C{inner}; and whether it is in C{last}.
        """
        tags = data.rfind(_TAGS, first, end)
        if tags < 0:
            return 0, 0, True
        if tags == first:
            return tag_code_of(data[tags:end]), 0, True
        if data[tags - 1] != 2:
            return None, 0, True
        behind = data.find(b"\x02", tags, end) + 1 or end
        known = self.last if behind == end else self.inner
        piece = data[tags - 1 : behind]
        code = known.get(piece)
        if code is None:
            code = known[piece] = tag_code_of(piece[1:])
        return code, len(piece), behind == end


def collect(
    data: bytes,
    at: int,
    start: int,
    check_crc: bool,
    run_of: RunOf,
    check_own_crc: bool = False,
) -> tuple[int, int, int]:
    """Collect the entries of the ordinary records from C{data[at:]} on.

    The bytes between the body and the properties are the same in most records of a
    queue, and so are the tags of many, whether they are the last property or not: both
    are looked up as they are, and only taken apart the first time.

    @param start: the position of C{data} in the log.
    @param run_of: called once for each queue; None if its records are not ordinary.
    @param check_own_crc: whether a wrong CRC in the properties makes a record not
        ordinary.
    @return: behind the last one taken, how many they were, and its store time.
    """
    runs, codes = _Runs(run_of), _Codes()
    span, is_last, remembered, places = 0, True, codes.last.get, runs.places
    unpack, pack, crc_of, find = _HEAD.unpack_from, ENTRY.pack, crc32, data.rfind
    latest = at
    if at > (last := len(data) - _HEAD_BYTES):
        return at, 0, 0
    size, magic, crc, number, offset, stated, flags, length = unpack(data, at)
    while stated == start + at and not flags & _UNUSUAL and magic == MAGIC_V1:
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
            run, left = places[mark][number]
        except KeyError:
            place = runs.place(mark, number, stated)
            if place is None:
                break
            run, left = place
        if first + left != end or offset != run.expected:
            break
        code = None
        if is_last:
            if span <= left:
                code = remembered(data[end - span : end])
        elif data[end - _OWN_CRC] != CRC_BEGINS:
            tags = find(_TAGS, first, end) - 1
            code = remembered(data[tags : tags + span])
        if code is None:
            if check_own_crc and not is_crc_property_right(data, at, end):
                break
            code, span, is_last = codes.find(data, first, end)
            if code is None:
                break
            remembered = codes.last.get if is_last else codes.inner.get
        following = unpack(data, end)
        if following[1] != MAGIC_V1:
            break
        run.append(pack(stated, size, code))
        run.expected = offset + 1
        latest = at
        at = end
        size, magic, crc, number, offset, stated, flags, length = following
    taken_ms = 0 if latest == at else _STORE_TIME.unpack_from(data, latest)[0]
    return at, runs.count(), taken_ms

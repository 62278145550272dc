# -*- test-case-name: tests.store.commitlog.test_received -*-
"""Records of a master as a slave receives them: looked at once, before they are stored.

One loop checks each record and makes what the dispatch and the index need of it, so
that neither reads it again: its entry and its properties. A master writes the messages
of a turn queue by queue; so records come in I{runs} of one queue, and what all records
of a run share is decided and kept once for the run. A record costs a microsecond so,
where three passes with a value for each record took three.

C{docs/facts/store.md} 3 and 4.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, final

from rocketbroker.codec.build import COMPILED
from rocketbroker.codec.received import ReceivedRun, tail_of, take_ordinary
from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.record_head import (
    LEAST_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    RecordHead,
    head_struct,
    offset_of,
)
from rocketbroker.records.sysflags import HOST_MASK, INNER_BATCH
from rocketbroker.store.commitlog.batch_records import place_of
from rocketbroker.store.commitlog.encoder import FILLER, FILLER_BYTES
from rocketbroker.store.commitlog.scanner import (
    MAX_OFFSET,
    NO_CRC,
    Blank,
    Broken,
    parse,
    tag_code_of,
)

#: The fields of an ordinary record's head that are needed, up to the body's length.
_HEAD: Final = head_struct(
    0,
    (
        "size",
        "magic",
        "queue_id",
        "queue_offset",
        "position",
        "sys_flag",
        "store_ms",
        "body_size",
    ),
)
_HEAD_BYTES: Final = _HEAD.size
_POSITION: Final = struct.Struct(">q")
_POSITION_AT: Final = offset_of("position")

#: No queue has this id: it does not fit its field.
_NO_QUEUE: Final = 1 << 32


def heads_of(run: ReceivedRun) -> Iterator[RecordHead]:
    """The records of a run one by one."""
    ends = (*run.positions[1:], run.end)
    offset = run.queue_offset
    for start, end, found in zip(run.positions, ends, run.properties, strict=True):
        yield RecordHead(
            start,
            end - start,
            run.topic,
            run.queue_id,
            offset,
            run.sys_flag,
            run.store_ms,
            found,
        )
        offset += 1


@final
class ReceivedRecords:
    """The whole records that some bytes of a log begin with.

    @ivar runs: the records.
    @ivar count: how many they are.
    @ivar size: how many bytes they take, a filler behind them included.
    @ivar filler: the bytes of that filler.
    """

    __slots__ = ("count", "filler", "runs", "size")

    def __init__(self) -> None:
        self.runs: list[ReceivedRun] = []
        self.count = 0
        self.size = 0
        self.filler = 0

    def messages(self) -> int:
        """How many messages the records hold: an inner batch has several."""
        messages = self.count
        for run in self.runs:
            if run.sys_flag & INNER_BATCH:
                places = [place for place in map(place_of, heads_of(run)) if place]
                messages += sum(count - 1 for _, count in places)
        return messages


def whole_records(data: bytes, position: int, segment_end: int) -> ReceivedRecords:
    """The whole records that C{data} begins with.

    @param position: where the first byte belongs.
    @param segment_end: where its segment ends; nothing behind is looked at.
    @raise StoreError: the first of them is none, and not one that is cut off.
    """
    data = data[: segment_end - position]
    received = ReceivedRecords()
    while received.size < len(data):
        if COMPILED:
            _take_natively(data, position, received)
        else:
            _take_ordinary(data, position, received)
        at = received.size
        if at == len(data):
            break
        # What is unusual is looked at again, by the rules that all readers have.
        try:
            _take(parse(data, at, position + at, NO_CRC), received)
        except Blank:
            left = segment_end - position - at
            stated = FILLER.unpack_from(data, at)[0]
            if stated != left:
                _refuse(position + at, f"it is a filler of {stated} bytes", at)
            elif len(data) - at >= left:
                received.filler = left
                received.size += left
            break
        except Broken as error:
            _check_cut(data[at:], position + at, segment_end, str(error), at)
            break
    return received


def _take_natively(data: bytes, position: int, received: ReceivedRecords) -> None:
    """Do what L{_take_ordinary} does."""
    runs = received.runs
    known = len(runs)
    most = MAX_OFFSET - len(data)
    at = take_ordinary(data, received.size, position, most, runs, tag_code_of)
    received.size = at
    received.count += sum([len(run.positions) for run in runs[known:]])


def _take_ordinary(data: bytes, position: int, received: ReceivedRecords) -> None:
    """Take the records that come next in C{data} up to the first that is not ordinary:
    of version 1, with hosts of 4 bytes."""
    unpack, pack, runs = _HEAD.unpack_from, ENTRY.pack, received.runs
    at, end = received.size, len(data)
    last = end - LEAST_SIZE
    count = 0
    run_id, expected, run_ms, run_flags = _NO_QUEUE, 0, 0, 0
    field = tail = b""
    field_size = code = 0
    while at <= last:
        size, magic, number, offset, stated, flags, ms, length = unpack(data, at)
        behind = at + size
        topic = at + _HEAD_BYTES + length
        if magic != MAGIC_V1 or stated != position + at or length < 0:
            break
        name_end = topic + field_size
        if (
            number != run_id
            or offset != expected
            or ms != run_ms
            or flags != run_flags
            or data[topic:name_end] != field
        ):
            if flags & HOST_MASK or not 0 <= offset < MAX_OFFSET - end or topic >= end:
                break
            name_end = topic + 1 + data[topic]
            field = data[topic:name_end]
            field_size = len(field)
            run = ReceivedRun(field[1:], number, offset, flags, ms)
            runs.append(run)
            add, add_entry = run.properties.append, run.entries.append
            add_code, add_position = run.codes.append, run.positions.append
            run_id, expected, run_ms, run_flags = number, offset, ms, flags
        start = name_end + 2
        if (
            not start <= behind <= end
            or start + (data[name_end] << 8) + data[name_end + 1] != behind
        ):
            break
        found = data[start:behind]
        if not tail or not found.endswith(tail):
            tail, code = tail_of(found), tag_code_of(found)
        add(found)
        add_entry(pack(stated, size, code))
        add_code(code)
        add_position(stated)
        expected += 1
        run.end = position + behind
        count += 1
        at = behind
    if runs and not runs[-1].positions:
        runs.pop()
    received.count += count
    received.size = at


def _take(head: RecordHead, received: ReceivedRecords) -> None:
    """Take one record that is not ordinary."""
    position, size, topic, queue_id, offset, flags, ms, found = head
    code = tag_code_of(found)
    run = ReceivedRun(topic, queue_id, offset, flags, ms)
    run.properties.append(found)
    run.entries.append(ENTRY.pack(position, size, code))
    run.codes.append(code)
    run.positions.append(position)
    run.end = position + size
    received.runs.append(run)
    received.count += 1
    received.size += size


def _check_cut(
    data: bytes, position: int, segment_end: int, why: str, taken: int
) -> None:
    """Whether bytes that are no record may be the first ones of a record."""
    if len(data) < FILLER_BYTES:
        return
    size, magic = FILLER.unpack_from(data)
    if magic not in (MAGIC_V1, MAGIC_V2):
        _refuse(position, why, taken)
    elif not LEAST_SIZE <= size <= segment_end - position:
        _refuse(position, f"its size is {size}", taken)
    elif size <= len(data):
        _refuse(position, why, taken)
    elif len(data) >= _POSITION_AT + _POSITION.size:
        stated = _POSITION.unpack_from(data, _POSITION_AT)[0]
        if stated != position:
            _refuse(position, f"its position field is {stated}", taken)


def _refuse(position: int, why: str, taken: int) -> None:
    """Refuse what stands at a position, unless there are records before it: then these
    come first.

    @raise StoreError: there are none.
    """
    if not taken:
        raise StoreError(
            f"The master sends no record at position {position}: {why}. Both sides "
            "need the same mappedFileSizeCommitLog, and a slave's log has to be one "
            "that the master's has grown from."
        )

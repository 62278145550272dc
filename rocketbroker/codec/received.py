# -*- test-case-name: tests.codec.test_received -*-
"""Records of a master, cut and looked at by its slave: compiled.

L{rocketbroker.store.commitlog.received} has the rules, the same way in ordinary code,
and what is said of bytes that are no record.

C{docs/facts/store.md} 3 and 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.codec.mypyc_types import (
    BytesWriter,
    i32,
    i64,
    mypyc_attr,
    read_i32_be,
    read_i64_be,
    write_i32_be,
    write_i64_be,
)

_MAGIC: Final = -626843481
_LEAST: Final = 91
_HOSTS: Final = 0x30
_TAGS: Final = b"TAGS\x01"
_END: Final = 2

# Where the fields of a record are.
_MAGIC_AT: Final = 4
_QUEUE_ID_AT: Final = 12
_QUEUE_OFFSET_AT: Final = 20
_POSITION_AT: Final = 28
_SYS_FLAG_AT: Final = 36
_STORE_MS_AT: Final = 56
_BODY_SIZE_AT: Final = 84
_BODY_AT: Final = 88


@final
@mypyc_attr(acyclic=True)
class ReceivedRun:
    """Records of one queue that follow one another, there and in the log.

    No garbage collection looks at it.

    @ivar topic: their topic.
    @ivar queue_id: the number of their queue.
    @ivar queue_offset: the offset of the first in it.
    @ivar sys_flag: see L{rocketbroker.records.sysflags}; the same of all.
    @ivar store_ms: when they were stored; the same of all.
    @ivar end: where the last one ends.
    @ivar positions: where each begins.
    @ivar properties: the properties string of each.
    @ivar codes: the tag code of each.
    @ivar entries: the entry of each in its queue.
    """

    def __init__(
        self,
        topic: bytes,
        queue_id: i64,
        queue_offset: i64,
        sys_flag: i64,
        store_ms: i64,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.sys_flag = sys_flag
        self.store_ms = store_ms
        self.end: i64 = 0
        self.positions: list[int] = []
        self.properties: list[bytes] = []
        self.codes: list[int] = []
        self.entries: list[bytes] = []


def take_ordinary(
    data: bytes,
    at: i64,
    position: i64,
    most_offset: i64,
    runs: list[ReceivedRun],
    tag_code_of: Callable[[bytes], int],
) -> int:
    """Take the records that come next up to the first that is not ordinary: of version
    1, with hosts of 4 bytes.

    @param at: where in C{data} the first begins.
    @param position: where C{data} begins in the log.
    @param most_offset: no record with that offset in its queue is ordinary, or behind.
    @param runs: gets them.
    @return: the place behind the last.
    """
    end: i64 = len(data)
    run: ReceivedRun | None = None
    expected: i64 = 0
    field = tail = packed = b""
    code = 0
    writer = BytesWriter()
    while at + _LEAST <= end:
        size = i64(read_i32_be(data, at))
        queue_id = i64(read_i32_be(data, at + _QUEUE_ID_AT))
        offset = read_i64_be(data, at + _QUEUE_OFFSET_AT)
        flags = i64(read_i32_be(data, at + _SYS_FLAG_AT))
        store_ms = read_i64_be(data, at + _STORE_MS_AT)
        length = i64(read_i32_be(data, at + _BODY_SIZE_AT))
        behind = at + size
        topic = at + _BODY_AT + length
        if (
            read_i32_be(data, at + _MAGIC_AT) != _MAGIC
            or read_i64_be(data, at + _POSITION_AT) != position + at
            or length < 0
            or topic >= end
        ):
            break
        name_end = topic + 1 + i64(data[topic])
        start = name_end + 2
        if (
            not start <= behind <= end
            or start + (i64(data[name_end]) << 8) + i64(data[name_end + 1]) != behind
        ):
            break
        if (
            run is None
            or queue_id != run.queue_id
            or offset != expected
            or store_ms != run.store_ms
            or flags != run.sys_flag
            or not _stands(data, topic, name_end, field)
        ):
            if flags & _HOSTS or not 0 <= offset < most_offset:
                break
            field = data[topic:name_end]
            run = ReceivedRun(field[1:], queue_id, offset, flags, store_ms)
            runs.append(run)
            expected = offset
        found = data[start:behind]
        if not tail or not found.endswith(tail):
            tail, code = tail_of(found), tag_code_of(found)
            writer.truncate(0)
            write_i64_be(writer, code)
            packed = writer.getvalue()
        _add(run, position + at, size, found, code, packed, writer)
        expected += 1
        at = behind
    return at


def _add(
    run: ReceivedRun,
    position: i64,
    size: i64,
    properties: bytes,
    code: int,
    packed: bytes,
    writer: BytesWriter,
) -> None:
    """Add a record to a run.

    @param packed: the tag code as its entry has it.
    @param writer: for the entry.
    """
    writer.truncate(0)
    write_i64_be(writer, position)
    write_i32_be(writer, i32(size))
    writer.write(packed)
    run.properties.append(properties)
    run.entries.append(writer.getvalue())
    run.codes.append(code)
    run.positions.append(position)
    run.end = position + size


def _stands(data: bytes, start: i64, end: i64, wanted: bytes) -> bool:
    """Whether certain bytes stand there."""
    size: i64 = len(wanted)
    if end - start != size:
        return False
    at: i64 = 0
    while at < size:
        if data[start + at] != wanted[at]:
            return False
        at += 1
    return True


def tail_of(properties: bytes) -> bytes:
    """The end of a properties string that decides on its tag code: other properties
    with that end have the same. Empty if there is none."""
    at = properties.rfind(_TAGS) - 1
    return properties[at:] if at >= 0 and properties[at] == _END else b""

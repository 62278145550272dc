# -*- test-case-name: tests.codec.test_append -*-
"""Drafts as native objects: their places, records and answers: compiled.

An attribute of any other object costs more here than in the interpreter, so those of
queues and counters are read once for a run of messages that share them.

C{docs/facts/store.md} 3 to 5; C{docs/facts/remoting.md} 5.
"""

from __future__ import annotations

from typing import Any, Final, final
from zlib import crc32

from rocketbroker.codec.mypyc_types import (
    BytesWriter,
    i32,
    i64,
    mypyc_attr,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)

_NOT_PUT: Final = -1
_TRANSACTION: Final = 12
_MAX_PROPERTIES: Final = 32767
_LEAST_I32: Final = -0x80000000
_MOST_I32: Final = 0x7FFFFFFF
_MINUS: Final = 0x2D
_ZERO: Final = 0x30


@final
@mypyc_attr(acyclic=True)
class Draft:
    """A message on its way into the log: L{rocketbroker.store.interfaces.Draft}.

    No garbage collection looks at it.
    """

    def __init__(
        self,
        queue: Any,
        body: bytes,
        properties: bytes,
        flag: i64,
        sys_flag: i64,
        born_ms: i64,
        born_host: bytes,
        reconsume_times: i64,
        tag_code: i64,
        context: Any,
        parts: Any = None,
        prepared_offset: i64 = 0,
        wait: bool = True,
        status: i64 = _NOT_PUT,
        queue_offset: i64 = 0,
        position: i64 = 0,
        positions: Any = (),
        end: i64 = 0,
    ) -> None:
        self.queue = queue
        self.body = body
        self.properties = properties
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_ms = born_ms
        self.born_host = born_host
        self.reconsume_times = reconsume_times
        self.tag_code = tag_code
        self.context = context
        self.parts = parts
        self.prepared_offset = prepared_offset
        self.wait = wait
        self.status = status
        self.queue_offset = queue_offset
        self.position = position
        self.positions = positions
        self.end = end


@final
@mypyc_attr(acyclic=True)
class Head:
    """What the records of one queue and append have in common.

    @ivar topic: with its length before it.
    """

    def __init__(
        self, magic: i64, queue_id: i64, topic: bytes, store_ms: i64, store_host: bytes
    ) -> None:
        # As signed words.
        self.magic = magic if magic <= _MOST_I32 else magic - (1 << 32)
        self.queue_id = queue_id
        self.topic = topic
        self.store_ms = store_ms
        self.store_host = store_host


def reserve(
    drafts: list[Any],
    placed: list[Any],
    view: Any,
    next_word: int,
    position: i64,
    limit: i64,
    max_body: i64,
    max_record: i64,
) -> i64:
    """Give the first drafts, as far as they are ordinary, place and queue offset.

    @param placed: gets them.
    @param view: the shared positions.
    @param next_word: where each queue keeps its next offset, behind its slot.
    @param position: the place of the first.
    @param limit: no record may end behind it.
    @return: the place behind the last.
    """
    queue: Any = drafts  # None of theirs.
    overhead: i64 = 0
    offset: i64 = 0
    at = -1
    for each in drafts:
        draft: Draft = each
        if draft.parts is not None or draft.sys_flag & _TRANSACTION:
            break
        if draft.queue is not queue:
            if at >= 0:
                view[at] = offset
                at = -1
            queue = draft.queue
            if not queue.usable:
                break
            overhead = queue.record_bytes
            at = queue.slot + next_word
            offset = view[at]
        body: i64 = len(draft.body)
        properties: i64 = len(draft.properties)
        size = overhead + body + properties
        if (
            len(draft.born_host) != 8
            or properties > _MAX_PROPERTIES
            or body > max_body
            or size > max_record
            or position + size > limit
        ):
            break
        draft.position = position
        position += size
        draft.end = position
        draft.status = 0
        draft.queue_offset = offset
        offset += 1
        placed.append(draft)
    if at >= 0:
        view[at] = offset
    return position


def encode(drafts: list[Any], store_ms: i64, store_host: bytes) -> bytes | None:
    """The records of drafts that have their places, of batches too.

    @return: None if one is not ordinary, or has a number that does not fit its field.
    """
    writer = BytesWriter()
    queue: Any = drafts  # None of theirs.
    head = Head(0, 0, b"", store_ms, store_host)
    if len(store_host) != 8:
        return None
    for each in drafts:
        draft: Draft = each
        if len(draft.born_host) != 8:
            return None
        if (
            not _LEAST_I32 <= draft.sys_flag <= _MOST_I32
            or not _LEAST_I32 <= draft.reconsume_times <= _MOST_I32
        ):
            return None
        if draft.queue is not queue:
            queue = draft.queue
            topic: bytes = queue.topic_field
            head = Head(queue.magic, queue.queue_id, topic, store_ms, store_host)
        if draft.parts is None:
            start, offset = draft.position, draft.queue_offset
            size = draft.end - start
            prepared = draft.prepared_offset
            if not _write_record(
                writer,
                head,
                draft,
                start,
                size,
                offset,
                draft.flag,
                draft.body,
                draft.properties,
                prepared,
            ):
                return None
        elif not _write_parts(writer, head, draft):
            return None
    return writer.getvalue()


def _write_parts(writer: BytesWriter, head: Head, draft: Draft) -> bool:
    """Write the records of an outer batch; whether it is one, and fits."""
    if type(draft.parts) is not list:
        return False
    parts: list[tuple[int, bytes, bytes, int]] = draft.parts
    positions: list[int] = [*draft.positions, draft.end]
    offset = draft.queue_offset
    for number, (flag, body, properties, _) in enumerate(parts):
        start: i64 = positions[number]
        size: i64 = positions[number + 1] - start
        place = offset + number
        if not _write_record(
            writer, head, draft, start, size, place, flag, body, properties, 0
        ):
            return False
    return True


def _write_record(
    writer: BytesWriter,
    head: Head,
    draft: Draft,
    position: i64,
    size: i64,
    queue_offset: i64,
    flag: i64,
    body: bytes,
    properties: bytes,
    prepared: i64,
) -> bool:
    """Write one record: L{rocketbroker.records.record}; whether its numbers fit."""
    if not _LEAST_I32 <= flag <= _MOST_I32 or len(properties) > _MAX_PROPERTIES:
        return False
    crc: i64 = crc32(body)
    write_i32_be(writer, i32(size))
    write_i32_be(writer, i32(head.magic))
    write_i32_be(writer, i32(crc & 0x7FFFFFFF))
    write_i32_be(writer, i32(head.queue_id))
    write_i32_be(writer, i32(flag))
    write_i64_be(writer, queue_offset)
    write_i64_be(writer, position)
    write_i32_be(writer, i32(draft.sys_flag))
    write_i64_be(writer, draft.born_ms)
    writer.write(draft.born_host)
    write_i64_be(writer, head.store_ms)
    writer.write(head.store_host)
    write_i32_be(writer, i32(draft.reconsume_times))
    write_i64_be(writer, prepared)
    write_i32_be(writer, i32(len(body)))
    writer.write(body)
    writer.write(head.topic)
    write_i16_be(writer, len(properties))
    writer.write(properties)
    return True


def enter(drafts: list[Any], touched: list[Any]) -> None:
    """Make the queue entries of drafts that were appended: position, size, tag code.

    @param touched: gets the queues that had none pending.
    """
    writer = BytesWriter()
    queue: Any = drafts  # None of theirs.
    pending: list[bytes] = []
    codes: list[int] = []
    first: i64 = 0
    end: i64 = -1
    for each in drafts:
        draft: Draft = each
        kind = draft.sys_flag & _TRANSACTION
        if draft.queue is not queue:
            if end >= 0:
                queue.pending_end = end
            queue = draft.queue
            pending = queue.pending
            codes = queue.pending_codes
            first = queue.from_position
            end = -1
        if (kind != 0 and kind != 8) or draft.position < first:
            continue
        if not pending:
            touched.append(queue)
            queue.pending_offset = draft.queue_offset
        end = draft.end
        if draft.parts is None:
            size = end - draft.position
            pending.append(_entry(writer, draft.position, size, draft.tag_code))
            codes.append(int(draft.tag_code))
            continue
        positions: list[int] = [*draft.positions, end]
        parts: list[tuple[int, bytes, bytes, int]] = draft.parts
        for number, part in enumerate(parts):
            start: i64 = positions[number]
            code = part[3]
            pending.append(_entry(writer, start, positions[number + 1] - start, code))
            codes.append(code)
    if end >= 0:
        queue.pending_end = end


def _entry(writer: BytesWriter, position: i64, size: i64, code: i64) -> bytes:
    """One entry of a consume queue."""
    writer.truncate(0)
    write_i64_be(writer, position)
    write_i32_be(writer, i32(size))
    write_i64_be(writer, code)
    return writer.getvalue()


def columns(
    drafts: list[Any],
) -> tuple[list[bytes], list[int], list[str]] | None:
    """Properties and positions of drafts that were appended, and the topics of each run
    of one queue.

    @return: None if there are batches, or messages that were rolled back.
    """
    properties: list[bytes] = []
    positions: list[int] = []
    topics: list[str] = []
    queue: Any = drafts  # None of theirs.
    for each in drafts:
        draft: Draft = each
        if draft.parts is not None or draft.sys_flag & 8:
            return None
        if draft.queue is not queue:
            queue = draft.queue
            topics.append(queue.topic)
        properties.append(draft.properties)
        positions.append(int(draft.position))
    return properties, positions, topics


#: Two digits of each number below 100, and of each byte.
_PAIRS: Final = [b"%02d" % number for number in range(100)]
_HEX: Final = [b"%02X" % number for number in range(256)]
_QUEUE_OFFSET: Final = b'","queueOffset":"'
_TRANSACTION_ID: Final = b'","transactionId":"'
_OPAQUE: Final = b'"},"flag":1,"language":"JAVA","opaque":'


def answer(drafts: list[Any], first: i64, small: i64, last: bytes) -> i64:
    """Answer drafts that were stored, as far as their context is a tuple: connection
    (None: oneway), opaque, id, counters of the queue.

    @param first: the first of them.
    @param small: the size up to which messages are counted together.
    @param last: what all answers end with.
    @return: the number of the first that was not answered.
    """
    writer = BytesWriter()
    to: Any = None
    frames: i64 = 0
    counters: Any = None
    start = b""
    messages: i64 = 0
    total: i64 = 0
    number = first
    count: i64 = len(drafts)
    fixed: i64 = len(_QUEUE_OFFSET) + len(_TRANSACTION_ID) + len(_OPAQUE) + 16
    fixed += len(last)
    try:
        while number < count:
            draft: Draft = drafts[number]
            context = draft.context
            if type(context) is not tuple or draft.status != 0:
                break
            connection, opaque, key, sends = context
            if sends is not counters:
                if counters is not None:
                    counters.count_small(messages, total)
                messages = total = 0
                counters = sends
                start = sends.start
            size: i64 = draft.end - draft.position
            number += 1
            if size <= small:
                messages += 1
                total += size
            else:
                sends.count(1, size)
            if connection is None:
                continue
            if connection is not to:
                if to is not None:
                    to.send_now(writer.getvalue(), frames)
                    writer.truncate(0)
                frames = 0
                to = connection
            _write_answer(writer, fixed, start, draft, key, opaque, last)
            frames += 1
    finally:
        # Also if one could not be answered: the others were.
        if counters is not None:
            counters.count_small(messages, total)
        if to is not None:
            to.send_now(writer.getvalue(), frames)
    return number


def _write_answer(
    writer: BytesWriter,
    fixed: i64,
    start: bytes,
    draft: Draft,
    key: bytes,
    opaque: i64,
    last: bytes,
) -> None:
    """Write one answer: L{rocketbroker.wire.hot.SEND_ANSWER}."""
    size = fixed + len(start) + len(key)
    size += digits_of(draft.queue_offset) + digits_of(opaque)
    write_i32_be(writer, i32(size + 4))
    write_i32_be(writer, i32(size))
    writer.write(start)
    shift: i64 = 56
    while shift >= 0:
        writer.write(_HEX[(draft.position >> shift) & 0xFF])
        shift -= 8
    writer.write(_QUEUE_OFFSET)
    write_digits(writer, draft.queue_offset)
    writer.write(_TRANSACTION_ID)
    writer.write(key)
    writer.write(_OPAQUE)
    write_digits(writer, opaque)
    writer.write(last)


def digits_of(number: i64) -> i64:
    """How many characters a number has, of at most 18 digits."""
    digits: i64 = 1
    if number < 0:
        number = -number
        digits = 2
    power: i64 = 10
    while number >= power:
        power *= 10
        digits += 1
    return digits


def write_digits(writer: BytesWriter, number: i64) -> None:
    """Write a number of at most 18 digits."""
    if number < 0:
        writer.append(_MINUS)
        number = -number
    if number >= 100:
        write_digits(writer, number // 100)
        writer.write(_PAIRS[number % 100])
    elif number >= 10:
        writer.write(_PAIRS[number])
    else:
        writer.append(_ZERO + number)

# -*- test-case-name: tests.codec.test_drafts -*-
"""Drafts as native objects: their places, records and answers: compiled.

An attribute of any other object costs more here than in the interpreter, so those of
queues and counters are read once for a run of messages that share them.

C{docs/facts/store.md} 3 to 5; C{docs/facts/remoting.md} 5.
"""

from __future__ import annotations

from typing import Any, Final, final
from zlib import crc32

from rocketbroker.codec.words import (
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
    """The records of drafts that have their places.

    @return: None if one is not ordinary, or has a number that does not fit its field.
    """
    writer = BytesWriter()
    queue: Any = drafts  # None of theirs.
    magic: i32 = 0
    queue_id: i32 = 0
    topic = b""
    if len(store_host) != 8:
        return None
    for each in drafts:
        draft: Draft = each
        if draft.parts is not None or len(draft.born_host) != 8:
            return None
        if (
            not _LEAST_I32 <= draft.flag <= _MOST_I32
            or not _LEAST_I32 <= draft.sys_flag <= _MOST_I32
            or not _LEAST_I32 <= draft.reconsume_times <= _MOST_I32
            or len(draft.properties) > _MAX_PROPERTIES
        ):
            return None
        if draft.queue is not queue:
            queue = draft.queue
            number: int = queue.magic
            magic = i32(number if number <= _MOST_I32 else number - (1 << 32))
            queue_id = queue.queue_id
            topic = queue.topic_field
        body = draft.body
        crc: i64 = crc32(body)
        write_i32_be(writer, i32(draft.end - draft.position))
        write_i32_be(writer, magic)
        write_i32_be(writer, i32(crc & 0x7FFFFFFF))
        write_i32_be(writer, queue_id)
        write_i32_be(writer, i32(draft.flag))
        write_i64_be(writer, draft.queue_offset)
        write_i64_be(writer, draft.position)
        write_i32_be(writer, i32(draft.sys_flag))
        write_i64_be(writer, draft.born_ms)
        writer.write(draft.born_host)
        write_i64_be(writer, store_ms)
        writer.write(store_host)
        write_i32_be(writer, i32(draft.reconsume_times))
        write_i64_be(writer, draft.prepared_offset)
        write_i32_be(writer, i32(len(body)))
        writer.write(body)
        writer.write(topic)
        write_i16_be(writer, len(draft.properties))
        writer.write(draft.properties)
    return writer.getvalue()


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
                    to.send(writer.getvalue(), frames)
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
            to.send(writer.getvalue(), frames)
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

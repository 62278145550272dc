# -*- test-case-name: tests.store.commitlog.test_batch_records -*-
"""Drafts of several messages, and drafts whose properties hold queue offsets.

An outer batch becomes a record for each of its messages. The record of an inner batch
carries the offset of its first message, C{INNER_BASE}, so that the queue can be built
from the log alone. The record of a message that stands in LMQs (light message queues)
besides its own carries its offsets there. They are known only when the record gets its
place, under the append lock.

A batch queue takes single messages, too, and outer batches: each message of those is a
unit of one, whose offset is that of its record.

C{docs/facts/store.md} 4.4 to 4.6.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.records import names, properties
from rocketbroker.records.queueunits import MAX_MESSAGES
from rocketbroker.records.record_head import RecordHead
from rocketbroker.records.sysflags import (
    INNER_BATCH,
    TRANSACTION_MASK,
    TRANSACTION_PREPARED,
)
from rocketbroker.store.commitlog.encoder import HOST_V4, HOST_V6, MAX_PROPERTIES
from rocketbroker.store.commitlog.record_crc import split_crc_room
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import (
    MESSAGE_ILLEGAL,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    Draft,
    Placed,
)
from rocketbroker.store.shared_positions import NEXT

_NUMBER = properties.INNER_NUM.encode()
_BASE = properties.INNER_BASE.encode()
_LMQ_NAMES = properties.INNER_MULTI_DISPATCH.encode()
_LMQ_OFFSETS = properties.INNER_MULTI_QUEUE_OFFSET.encode()

#: In the properties of every message that stands in LMQs.
LMQ_MARK: Final = _LMQ_NAMES + b"\x01"
LMQ_PREFIX: Final = names.LMQ_PREFIX.encode()

#: Messages of these topics stand in no LMQs.
EXEMPT_PREFIXES: Final = (names.RETRY_PREFIX.encode(), names.SYSTEM_PREFIX.encode())


def measure(
    draft: Draft, queue: Queue, most: tuple[int, int, int]
) -> tuple[int, int, int]:
    """How much room a draft takes that has parts, or is for a batch queue; its
    properties are completed.

    @param most: of bytes: of a body, of a record, of the records of a batch.
    @return: L{PUT_OK} or why it cannot be stored, the bytes of its records, and how
        many offsets it takes.
    """
    max_body, max_record, max_together = most
    each = queue.record_bytes
    if len(draft.born_host) != HOST_V4:
        each += HOST_V6 - HOST_V4
    parts = draft.parts
    if parts is None:
        size = each + len(draft.body) + len(draft.properties)
        if len(draft.properties) > MAX_PROPERTIES:
            return PROPERTIES_SIZE_EXCEEDED, 0, 0
        if len(draft.body) > max_body or size > max_record or not takes(queue, draft):
            return MESSAGE_ILLEGAL, 0, 0
        return PUT_OK, size, 1
    if type(parts) is Placed:
        status = complete(draft, parts, queue)
        sizes = [each + len(draft.body) + len(draft.properties)]
        if len(draft.body) > max_body or sizes[0] > max_record:
            status = MESSAGE_ILLEGAL
        return status, sizes[0], parts.count
    sizes = [each + len(body) + len(found) for _, body, found, _ in parts]
    longest = max(sizes, default=0)
    if longest > min(each + MAX_PROPERTIES, each + max_body, max_record):
        # Perhaps one is too long.
        for _, body, found, _ in parts:
            if len(found) > MAX_PROPERTIES:
                return PROPERTIES_SIZE_EXCEEDED, 0, 0
            if len(body) > max_body or each + len(body) + len(found) > max_record:
                return MESSAGE_ILLEGAL, 0, 0
    if not 0 < sum(sizes) <= max_together or draft.sys_flag & TRANSACTION_MASK:
        return MESSAGE_ILLEGAL, 0, 0
    if not takes(queue, draft):
        return MESSAGE_ILLEGAL, 0, 0
    draft.positions = sizes
    return PUT_OK, sum(sizes), len(sizes)


def takes(queue: Queue, draft: Draft) -> bool:
    """Whether a queue takes a draft that is no inner batch: one that is for ordinary
    messages, or a batch queue, where it, or each of its parts, is a unit of one."""
    if queue.batch is not None and draft.sys_flag & INNER_BATCH:
        return False
    return queue.storable


def complete(draft: Draft, placed: Placed, queue: Queue) -> int:
    """Give a draft the properties that contain the next offset of its queue.

    @return: L{PUT_OK}, or why it cannot be stored.
    """
    if placed.lmqs:
        if placed.count != 1 or draft.sys_flag & (INNER_BATCH | TRANSACTION_PREPARED):
            return MESSAGE_ILLEGAL
        offsets = b",".join([b"%d" % lmq.next_offset for lmq in placed.lmqs])
        place = b"%b\x01%b\x02" % (_LMQ_OFFSETS, offsets)
    else:
        if queue.batch is None or not draft.sys_flag & INNER_BATCH:
            return MESSAGE_ILLEGAL
        if not 0 < placed.count <= MAX_MESSAGES or draft.sys_flag & TRANSACTION_MASK:
            return MESSAGE_ILLEGAL
        place = b"%b\x01%d\x02" % (_BASE, queue.next_offset)
    if not queue.storable:
        return MESSAGE_ILLEGAL
    found, room = split_crc_room(placed.properties)
    draft.properties = properties.joined(found, place) + room
    if len(draft.properties) > MAX_PROPERTIES:
        return PROPERTIES_SIZE_EXCEEDED
    return PUT_OK


def advance(placed: Placed) -> None:
    """Take the next offset of each LMQ: the message has its place."""
    placed.offsets = []
    for lmq in placed.lmqs:
        assert type(lmq) is Queue
        view = lmq.positions.view
        offset = view[lmq.slot + NEXT]
        placed.offsets.append(offset)
        view[lmq.slot + NEXT] = offset + 1


def retreat(placed: Placed) -> None:
    """Release the offsets that L{advance} took."""
    for lmq, offset in zip(placed.lmqs, placed.offsets, strict=True):
        assert type(lmq) is Queue
        lmq.positions.view[lmq.slot + NEXT] = offset


def lmqs_of(topic: bytes, found: bytes) -> list[tuple[bytes, int]]:
    """The LMQs that a message stands in, with its offset in each.

    @param topic: that of its record.
    @param found: its properties.
    @return: nothing if the properties do not name queues and offsets exactly.
    """
    if topic.startswith(EXEMPT_PREFIXES) or topic == names.SCHEDULE_TOPIC_BYTES:
        return []
    queues = properties.find(found, _LMQ_NAMES)
    offsets = properties.find(found, _LMQ_OFFSETS)
    if queues is None or offsets is None:
        return []
    each, numbers = queues.split(b","), offsets.split(b",")
    if len(each) != len(numbers):
        return []
    return [
        (name, int(number))
        for name, number in zip(each, numbers, strict=True)
        if name.startswith(LMQ_PREFIX) and number.isdigit() and len(number) < 19
    ]


def place_of(found: RecordHead) -> tuple[int, int] | None:
    """The place of a record in a batch queue: its first offset and its number of
    messages, one for all but inner batches; None if its properties do not have it."""
    return (
        batch_of(found.properties)
        if found.sys_flag & INNER_BATCH
        else (found.queue_offset, 1)
    )


def batch_of(found: bytes) -> tuple[int, int] | None:
    """The offset of the first message and the number of messages of an inner batch.

    @param found: the properties of its record.
    @return: None if they do not have both.
    """
    base = _number(found, _BASE, 1 << 62)
    count = _number(found, _NUMBER, MAX_MESSAGES)
    if base is None or count is None or count == 0:
        return None
    return base, count


def _number(found: bytes, name: bytes, most: int) -> int | None:
    """A property that is a number from 0 to C{most}."""
    value = properties.find(found, name)
    if value is None or not value.isdigit() or len(value) > 19:
        return None
    number = int(value)
    return number if number <= most else None

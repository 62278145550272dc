# -*- test-case-name: tests.broker.schedule.test_delay_recovery -*-
"""The offset of a delay level after a crash.

Messages that were delivered since delayOffset.json was written would be delivered
again: those of some seconds. But their copies are in the log, and can be recognised:
the same properties, with the producer's id, body and time of birth, in the real queue,
stored when the message was due or a little later. So the start looks for the copies of
the messages that the file says are not delivered.

Messages are delivered in order, except those of the step under way: if one of a step
could not be stored, later ones may have been. So a binary search finds the last copy,
and then each of the messages before it is looked for, as many as a step may have. A
copy that is not found is delivered a second time: a busy queue may have too many
messages between the time when one was due and its copy, or the clock was set.

After a clean stop one look for the first due message shows that there is none.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.broker.messages.delay_messages import destination
from rocketbroker.broker.schedule.delay_level import (
    LAST_EXTENSION_ADDRESS,
    DelayLevel,
    waiting_at,
)
from rocketbroker.errors import BrokerError
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.properties import UNIQUE_KEY, find
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.reads import FOUND

#: How many messages are looked at for one copy: those that come to a busy queue in a
#: tenth of a second.
MAX_SCANNED: Final = 2048

#: So many bytes are asked for at once; the store gives no more messages than a pull
#: gets.
_BYTES: Final = 1 << 20


def resumed_offset(store: IStore, level: DelayLevel, step: int, now_ms: int) -> int:
    """I{Blocking.} The first message of a level that has not been delivered.

    @param level: as the file says.
    @param step: how many messages may have been under way.
    @param now_ms: the time of day; what is due later has not been delivered.
    @raise OSError: the disk cannot be read.
    """
    first = level.offset
    end = level.queue.max_offset
    if first >= end or not _is_delivered(store, level, first, now_ms):
        return first
    good, stride = first, 1
    while good + stride < end and _is_delivered(store, level, good + stride, now_ms):
        good += stride
        stride *= 2
    bad = min(good + stride, end)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _is_delivered(store, level, middle, now_ms):
            good = middle
        else:
            bad = middle
    for offset in range(max(first, good - step), good):
        if not _is_delivered(store, level, offset, now_ms):
            return offset
    return good + 1


def _is_delivered(store: IStore, level: DelayLevel, offset: int, now_ms: int) -> bool:
    """Whether the copy of a message is found."""
    for position, size, due_ms in store.entries(level.queue, offset, 1):
        if due_ms > now_ms:
            return False
        message = waiting_at(store, level.queue, position, size)
        if message is None or find(message.property_bytes, UNIQUE_KEY.encode()) is None:
            return False
        if due_ms <= LAST_EXTENSION_ADDRESS:
            due_ms = message.store_ms + level.delay_ms
        return _has_copy(store, message, due_ms)
    return False


def _has_copy(store: IStore, message: StoredMessage, due_ms: int) -> bool:
    """Whether a message stands where it belongs, from a time on."""
    place = destination(message)
    assert place is not None
    try:
        queue = store.queue(*place)
    except BrokerError:
        # No room, or too many LMQs: then the copy is not there either.
        return False
    offset = store.offset_by_time(queue, due_ms, False)
    last = offset + MAX_SCANNED
    while offset < last:
        result = store.read(queue, offset, last - offset, _BYTES, None)
        if result.status != FOUND or result.next_offset <= offset:
            return False
        data = b"".join(result.records)
        # Most of the time it is not there, and bytes are searched fast.
        if message.property_bytes in data:
            try:
                if any(_is_copy(message, other) for other in decode_all(data)):
                    return True
            except Malformed:
                return False
        offset = result.next_offset
    return False


def _is_copy(message: StoredMessage, other: StoredMessage) -> bool:
    # One that is in LMQs has its offsets there behind its own properties.
    return (
        other.property_bytes.startswith(message.property_bytes)
        and other.born_ms == message.born_ms
        and other.body == message.body
    )

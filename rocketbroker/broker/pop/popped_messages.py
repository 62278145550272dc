# -*- test-case-name: tests.broker.pop.test_pop -*-
"""The messages of a pop: what a read has found, and how it is handed out.

Messages of a retry topic are handed out as messages of the topic that was asked for,
with the property POP_CK, from which the consumer knows where to acknowledge them,
unless their properties have no room for it; all others as they are stored.

C{docs/facts/transaction-timer-pop.md} C3, C6, C16.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rocketbroker.records.properties import MAX_BYTES as MAX_PROPERTIES
from rocketbroker.records.properties import POP_CHECK_POINT, encode
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.records.record import decode_all
from rocketbroker.records.record import encode as encode_record
from rocketbroker.records.record_head import offset_of
from rocketbroker.store.reads import ReadResult

_SIZE: Final = Struct(">i")

_QUEUE_OFFSET: Final = Struct(">q")
_QUEUE_OFFSET_AT: Final = offset_of("queue_offset")


def queue_offsets(result: ReadResult, offset: int) -> list[int]:
    """The queue offsets of what was read.

    @param offset: where the read began.
    """
    if result.next_offset - offset == result.count:
        return list(range(offset, result.next_offset))
    found = []
    for piece in result.copied():
        at = 0
        while at < len(piece):
            found.append(_QUEUE_OFFSET.unpack_from(piece, at + _QUEUE_OFFSET_AT)[0])
            at += _SIZE.unpack_from(piece, at)[0]
    return found


def as_of(topic: str, records: list[bytes], handle: ReceiptHandle) -> list[bytes]:
    """Messages of a retry topic as those of the topic itself.

    @param handle: that of their check point; the offset is set here.
    """
    name = topic.encode()
    found = []
    data, at = b"".join(records), 0
    for message in decode_all(data):
        at += message.size
        handle.offset = message.queue_offset
        properties = dict(message.properties)
        properties.setdefault(POP_CHECK_POINT, handle.text())
        encoded = encode(properties)
        if len(encoded) > MAX_PROPERTIES:
            # The consumer finds its handle by the topic then.
            found.append(data[at - message.size : at])
            continue
        found.append(
            encode_record(
                name,
                message.body,
                encoded,
                message.queue_id,
                message.queue_offset,
                message.position,
                message.born_ms,
                message.born_host,
                message.store_ms,
                message.store_host,
                message.flag,
                message.sys_flag,
                message.reconsume_times,
                message.prepared_offset,
            )
        )
    return found

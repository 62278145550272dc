# -*- test-case-name: tests.store.commitlog.test_encoder -*-
"""The encoder of records for the append: bytes of many drafts in one go.

L{rocketbroker.records.record} encodes one record from a value, and is used everywhere
else. Here some hundred records are made at once: one precompiled pack of all
fields up to the body's length for each, and one join for all. A function call and a
value object for each record would cost as much again.

The fields of the head: L{rocketbroker.records.record_head}.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final
from zlib import crc32

from rocketbroker.records.record_head import head_structs
from rocketbroker.records.sysflags import BORN_HOST_V6, STORE_HOST_V6
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import Draft, Placed

#: The last bytes of a segment, which hold at least the head of a filler.
FILLER: Final = struct.Struct(
    ">"
    "i"  # all bytes that are left in the segment
    "i"  # the blank magic
)
FILLER_BYTES: Final = 8
assert FILLER.size == FILLER_BYTES

#: The pieces of a record: head, body, topic, length of properties, properties.
PIECES: Final = 5

#: The length of a host: address and port.
HOST_V4: Final = 8
HOST_V6: Final = 20

MAX_PROPERTIES: Final = 32767

#: The length field of properties, for the lengths that occur all the time.
_LENGTHS: Final = [size.to_bytes(2, "big") for size in range(1024)]


#: The fields up to the body, by whether the born host and the store host are IPv6.
_HEADS: Final = {flags: head.pack for flags, head in head_structs().items()}


def encode(drafts: Sequence[Draft], store_ms: int, store_host: bytes) -> list[bytes]:
    """The records of drafts that have been given their places, in pieces.

    @raise struct.error: a number does not fit its field.
    """
    pieces: list[bytes] = []
    add = pieces.extend
    crc = crc32
    lengths = _LENGTHS
    host_flag = flag_v4 = STORE_HOST_V6 if len(store_host) == HOST_V6 else 0
    flag_v6 = flag_v4 | BORN_HOST_V6
    pack = pack_v4 = _HEADS[flag_v4]
    pack_v6 = _HEADS[flag_v6]
    for draft in drafts:
        queue = draft.queue
        assert type(queue) is Queue
        born_host = draft.born_host
        if len(born_host) == 8:
            pack = pack_v4
            host_flag = flag_v4
        else:
            pack = pack_v6
            host_flag = flag_v6
        if draft.parts is not None and type(draft.parts) is not Placed:
            _add_parts(add, pack, draft, store_ms, store_host, host_flag)
            continue
        body = draft.body
        properties = draft.properties
        size = len(properties)
        position = draft.position
        add(
            (
                pack(
                    draft.end - position,
                    queue.magic,
                    crc(body) & 0x7FFFFFFF,
                    queue.queue_id,
                    draft.flag,
                    draft.queue_offset,
                    position,
                    draft.sys_flag | host_flag,
                    draft.born_ms,
                    born_host,
                    store_ms,
                    store_host,
                    draft.reconsume_times,
                    draft.prepared_offset,
                    len(body),
                ),
                body,
                queue.topic_field,
                lengths[size] if size < 1024 else size.to_bytes(2, "big"),
                properties,
            )
        )
    return pieces


def _add_parts(
    add: Callable[[tuple[bytes, ...]], None],
    pack: Callable[..., bytes],
    draft: Draft,
    store_ms: int,
    store_host: bytes,
    host_flag: int,
) -> None:
    """The records of an outer batch."""
    queue = draft.queue
    assert type(queue) is Queue
    assert draft.parts is not None and type(draft.parts) is not Placed
    # Tens of thousands of messages may be one batch: all that is the same for each of
    # them is looked up once.
    crc, lengths = crc32, _LENGTHS
    magic, queue_id, topic = queue.magic, queue.queue_id, queue.topic_field
    sys_flag, born_ms, born_host = (
        draft.sys_flag | host_flag,
        draft.born_ms,
        draft.born_host,
    )
    reconsume_times = draft.reconsume_times
    ends = (*draft.positions[1:], draft.end)
    for (flag, body, properties, _), position, end, offset in zip(
        draft.parts, draft.positions, ends, count(draft.queue_offset), strict=False
    ):
        size = len(properties)
        add(
            (
                pack(
                    end - position,
                    magic,
                    crc(body) & 0x7FFFFFFF,
                    queue_id,
                    flag,
                    offset,
                    position,
                    sys_flag,
                    born_ms,
                    born_host,
                    store_ms,
                    store_host,
                    reconsume_times,
                    0,
                    len(body),
                ),
                body,
                topic,
                lengths[size] if size < 1024 else size.to_bytes(2, "big"),
                properties,
            )
        )

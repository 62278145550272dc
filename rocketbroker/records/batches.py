# -*- test-case-name: tests.records.test_batches -*-
"""Several messages in one.

An I{outer batch} is the body of one send request, which the broker takes apart into
records of their own. An I{inner batch} is stored as one record, and the consumer takes
it apart. Both have the same form, part after part::

    ==========================  ========  ==============================
    field                       width     remark
    ==========================  ========  ==============================
    total size of the part      i32
    magic                       i32       0; not looked at
    CRC of the body             i32       0; not looked at
    flag                        i32
    length of the body, body    i32 + n
    length of the properties,
    properties                  i16 + n
    ==========================  ========  ==============================

C{docs/facts/store.md} 4.4 and 4.5; C{docs/facts/client.md} 9 and 10.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from rocketbroker.records import compression, properties, sysflags
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage, body_crc, decode_all

_HEAD: Final = struct.Struct(
    ">"
    "i"  # total size
    "i"  # magic
    "i"  # CRC
    "i"  # flag
    "i"  # length of the body
)
_I16: Final = struct.Struct(">h")

#: A part without body and properties.
LEAST_SIZE: Final = _HEAD.size + _I16.size


class BatchPart(NamedTuple):
    """One message of a batch.

    @ivar flag: the producer's.
    @ivar body: the body.
    @ivar properties: the properties string.
    """

    flag: int
    body: bytes
    properties: bytes


def encode_part(flag: int, body: bytes, properties: bytes) -> bytes:
    """One part."""
    size = LEAST_SIZE + len(body) + len(properties)
    head = _HEAD.pack(size, 0, 0, flag, len(body))
    return b"".join((head, body, _I16.pack(len(properties)), properties))


def encode(parts: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """The body of a batch, from C{(flag, body, properties)} of each message."""
    return b"".join([encode_part(*part) for part in parts])


def decode(data: bytes) -> list[BatchPart]:
    """The messages of a batch.

    @raise Malformed: a part is not whole, or there are none at all.
    """
    parts = []
    at = 0
    limit = len(data)
    while at < limit:
        if limit - at < LEAST_SIZE:
            raise Malformed(f"{limit - at} bytes at the end of a batch are no message")
        size, _, _, flag, body_size = _HEAD.unpack_from(data, at)
        end = at + size
        if size < LEAST_SIZE or end > limit:
            raise Malformed(f"a message that claims {size} of {limit - at} bytes")
        body_at = at + _HEAD.size
        body_end = body_at + body_size
        if body_size < 0 or body_end + 2 > end:
            raise Malformed(f"a body of {body_size} bytes in a message of {size}")
        properties_size = _I16.unpack_from(data, body_end)[0]
        if properties_size < 0 or body_end + 2 + properties_size != end:
            raise Malformed(f"the parts of a message of {size} bytes have another sum")
        parts.append(BatchPart(flag, data[body_at:body_end], data[body_end + 2 : end]))
        at = end
    if not parts:
        raise Malformed("a batch without a message")
    return parts


def is_inner_batch(message: StoredMessage) -> bool:
    """Whether a consumer has to take a message apart."""
    both = sysflags.NEED_UNWRAP | sysflags.INNER_BATCH
    return message.sys_flag & both == both


def unwrap(message: StoredMessage) -> list[StoredMessage]:
    """The messages of an inner batch; of any other message, itself.

    Flag, properties and body come from the part, the rest from the whole; offsets
    count up; the compression bit is cleared.

    @raise Malformed: the body is no batch, or cannot be decompressed.
    """
    if not is_inner_batch(message):
        return [message]
    wait = message.properties.get(properties.WAIT)
    shared = properties.encode({properties.WAIT: wait}) if wait else b""
    return [
        StoredMessage(
            message.topic,
            message.queue_id,
            message.queue_offset + number,
            message.position,
            message.size,
            part.body,
            body_crc(part.body),
            part.flag,
            message.sys_flag & ~sysflags.COMPRESSED,
            message.born_ms,
            message.born_host,
            message.store_ms,
            message.store_host,
            message.reconsume_times,
            message.prepared_offset,
            properties.joined(part.properties, shared),
        )
        for number, part in enumerate(decode(message.plain_body()))
    ]


def messages(
    data: bytes,
    decompress: bool = True,
    most: int = compression.MAX_PLAIN_BYTES,
) -> Iterator[StoredMessage]:
    """The messages of what was pulled: inner batches apart, bodies made large.

    @param decompress: otherwise bodies stay as they are stored.
    @param most: how large a body may become.
    @raise Malformed: something in there is no message.
    """
    for message in decode_all(data):
        if message.sys_flag & (sysflags.INNER_BATCH | sysflags.COMPRESSED):
            for part in unwrap(message):
                yield part.decompressed(most) if decompress else part
        else:
            yield message

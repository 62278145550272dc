# -*- test-case-name: tests.records.test_record -*-
"""One message as the commit log keeps it, and as a pull brings it.

The head (L{rocketbroker.records.record_head}) and what follows it::

    ==========================================  =============
    field                                       width
    ==========================================  =============
    body                                        n
    length of the topic, topic                  i8 or i16 + n
    length of the properties, properties        i16 + n
    ==========================================  =============

The topic's length has 8 bits in version 1 and 16 in version 2; the magic tells which.

C{docs/facts/store.md} 3 and 15.6.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, final
from zlib import crc32

from rocketbroker.records import compression, hosts, ids, sysflags
from rocketbroker.records import properties as names
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record_head import (
    LEAST_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    MAX_V1_TOPIC_BYTES,
    head_structs,
)

#: All before the body, by the host bits of the system flag.
_HEADS: Final = head_structs()
_HEAD_V4: Final = _HEADS[0]

I16: Final = struct.Struct(">h")
I32: Final = struct.Struct(">i")
SIZE_AND_MAGIC: Final = struct.Struct(">ii")

#: The property with the CRC of the whole record: name, 0x01, ten digits, 0x02.
CRC_PROPERTY_SIZE: Final = 20
CRC_BEGINS: Final = names.CRC32.encode("ascii")[0]
_CRC_PREFIX: Final = names.CRC32.encode("ascii") + b"\x01"


def body_crc(body: bytes) -> int:
    """The CRC of a body: 31 bits of the usual one."""
    return crc32(body) & 0x7FFFFFFF


def record_size(
    body: int, topic: int, properties: int, born_host: int = 8, store_host: int = 8
) -> int:
    """How long a record becomes, from the lengths of its parts."""
    extra = 1 if topic > MAX_V1_TOPIC_BYTES else 0
    hosts_beyond_v4 = born_host + store_host - 2 * hosts.V4_SIZE
    return LEAST_SIZE + body + topic + properties + extra + hosts_beyond_v4


def encode(
    topic: bytes,
    body: bytes,
    properties: bytes,
    queue_id: int,
    queue_offset: int,
    position: int,
    born_ms: int,
    born_host: bytes,
    store_ms: int,
    store_host: bytes,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_offset: int = 0,
    append_crc: bool = False,
) -> bytes:
    """One record.

    Lengths are those of the arguments; who calls has checked that they are allowed.

    @param born_host: 8 or 20 bytes; the two host bits of the system flag follow.
    @param store_host: the same.
    @param append_crc: add the property with the CRC of the record.
    """
    if append_crc:
        properties = _with_room_for_crc(properties)
    sys_flag = sysflags.with_hosts(sys_flag, born_host, store_host)
    topic_size = len(topic)
    if topic_size > MAX_V1_TOPIC_BYTES:
        magic = MAGIC_V2
        topic_length = I16.pack(topic_size)
    else:
        magic = MAGIC_V1
        topic_length = bytes((topic_size,))
    size = record_size(
        len(body), topic_size, len(properties), len(born_host), len(store_host)
    )
    head = _HEADS[sys_flag & sysflags.HOST_MASK].pack(
        size,
        magic,
        crc32(body) & 0x7FFFFFFF,
        queue_id,
        flag,
        queue_offset,
        position,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        prepared_offset,
        len(body),
    )
    record = b"".join(
        (
            head,
            body,
            topic_length,
            topic,
            I16.pack(len(properties)),
            properties,
        )
    )
    return record[:-CRC_PROPERTY_SIZE] + own_crc(record) if append_crc else record


def _with_room_for_crc(properties: bytes) -> bytes:
    return names.joined(properties, b"\x00" * CRC_PROPERTY_SIZE)


def crc_property(crc: int) -> bytes:
    """The 20 bytes of the property: the digits come least significant first."""
    return _CRC_PREFIX + str(crc)[::-1].ljust(10, "0").encode("ascii") + b"\x02"


def own_crc(record: bytes) -> bytes:
    """The property with the CRC of a record, which has room for it at its end."""
    return crc_property(crc32(record[:-CRC_PROPERTY_SIZE]) & 0x7FFFFFFF)


def is_crc_property_right(data: bytes, at: int, end: int) -> bool:
    """Whether a record has no CRC of its own in its properties, or the right one.

    @param at: where in C{data} it begins.
    @param end: where it ends.
    """
    content = end - CRC_PROPERTY_SIZE
    if not data.startswith(_CRC_PREFIX, content):
        return True
    return data[content:end] == own_crc(data[at:end])


@final
class StoredMessage:
    """A message as it is stored.

    @ivar topic: the name.
    @ivar queue_id: the number of the queue.
    @ivar queue_offset: its place in the queue.
    @ivar position: its physical offset.
    @ivar size: the length of its record.
    @ivar body: as stored, perhaps compressed.
    @ivar body_crc: of that.
    @ivar flag: the producer's.
    @ivar sys_flag: see L{rocketbroker.records.sysflags}.
    @ivar born_ms: when it was made.
    @ivar born_host: where, as 8 or 20 bytes.
    @ivar store_ms: when it was stored.
    @ivar store_host: where, as 8 or 20 bytes.
    @ivar reconsume_times: how often a consumer has sent it back.
    @ivar prepared_offset: the physical offset of its half message.
    @ivar property_bytes: the properties as stored.
    """

    __slots__ = (
        "_properties",
        "body",
        "body_crc",
        "born_host",
        "born_ms",
        "flag",
        "position",
        "prepared_offset",
        "property_bytes",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "size",
        "store_host",
        "store_ms",
        "sys_flag",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        position: int,
        size: int,
        body: bytes,
        body_crc: int,
        flag: int,
        sys_flag: int,
        born_ms: int,
        born_host: bytes,
        store_ms: int,
        store_host: bytes,
        reconsume_times: int,
        prepared_offset: int,
        property_bytes: bytes,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.position = position
        self.size = size
        self.body = body
        self.body_crc = body_crc
        self.flag = flag
        self.sys_flag = sys_flag
        self.born_ms = born_ms
        self.born_host = born_host
        self.store_ms = store_ms
        self.store_host = store_host
        self.reconsume_times = reconsume_times
        self.prepared_offset = prepared_offset
        self.property_bytes = property_bytes
        self._properties: dict[str, str] | None = None

    def _fields(self) -> tuple[Any, ...]:
        return (
            self.topic,
            self.queue_id,
            self.queue_offset,
            self.position,
            self.size,
            self.body,
            self.body_crc,
            self.flag,
            self.sys_flag,
            self.born_ms,
            self.born_host,
            self.store_ms,
            self.store_host,
            self.reconsume_times,
            self.prepared_offset,
            self.property_bytes,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return StoredMessage, self._fields()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredMessage):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.position, self.queue_offset, self.topic))

    def __repr__(self) -> str:
        return (
            f"<message {self.topic} {self.queue_id}@{self.queue_offset} "
            f"position={self.position} body={len(self.body)} bytes>"
        )

    @property
    def properties(self) -> dict[str, str]:
        """Names and values; decoded once."""
        found = self._properties
        if found is None:
            found = self._properties = names.decode(self.property_bytes)
        return found

    @property
    def tags(self) -> str | None:
        """The tag, None if it has none."""
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys under which it can be found."""
        return [key for key in self.properties.get(names.KEYS, "").split(" ") if key]

    @property
    def unique_key(self) -> str | None:
        """The id that its producer gave it."""
        return self.properties.get(names.UNIQUE_KEY)

    @property
    def offset_id(self) -> str:
        """The id that says where it is stored."""
        return ids.offset_id(self.store_host, self.position)

    @property
    def message_id(self) -> str:
        """The id that users see: the producer's, else the offset id."""
        return self.unique_key or self.offset_id

    def plain_body(self, most: int = compression.MAX_PLAIN_BYTES) -> bytes:
        """The body as the producer's user gave it.

        @param most: how large it may become.
        @raise Malformed: it cannot be decompressed, or becomes too large.
        """
        if not self.sys_flag & sysflags.COMPRESSED:
            return self.body
        kind = sysflags.compression_kind(self.sys_flag)
        return compression.decompress(self.body, kind, most)

    def decompressed(self, most: int = compression.MAX_PLAIN_BYTES) -> StoredMessage:
        """The message with its body made large, and the bit that says so cleared.

        The CRC stays that of the stored body; raises as L{plain_body}.
        """
        if not self.sys_flag & sysflags.COMPRESSED:
            return self
        plain = self.plain_body(most)
        fields = list(self._fields())
        fields[5] = plain
        fields[8] = self.sys_flag & ~sysflags.COMPRESSED
        return StoredMessage(*fields)


def decode(data: bytes, start: int = 0) -> StoredMessage:
    """The record that starts at C{start}; its CRC is not compared.

    @raise Malformed: there is none, or it is not whole.
    """
    limit = len(data)
    if limit - start < LEAST_SIZE:
        raise Malformed(f"a record of {max(limit - start, 0)} bytes")
    (
        size,
        magic,
        crc,
        queue_id,
        flag,
        queue_offset,
        position,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        prepared_offset,
        body_size,
    ) = _HEAD_V4.unpack_from(data, start)
    end = start + size
    if not LEAST_SIZE <= size <= limit - start:
        raise Malformed(f"a record that claims {size} of {limit - start} bytes")
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise Malformed(f"a record with magic {magic & 0xFFFFFFFF:08x}")
    at = start + _HEAD_V4.size
    if sys_flag & sysflags.HOST_MASK:
        fields, at = _behind_born_time(data, start, end, sys_flag)
        born_host, store_ms, store_host, reconsume_times, prepared_offset = fields[:5]
        body_size = fields[5]
    body_end = at + max(body_size, 0)
    topic_at = body_end + (2 if magic == MAGIC_V2 else 1)
    if topic_at + 2 > end:
        raise Malformed(f"a body of {body_size} bytes in a record of {size}")
    if magic == MAGIC_V2:
        topic_size = I16.unpack_from(data, body_end)[0]
    else:
        topic_size = data[body_end]
    topic_end = topic_at + topic_size
    if not 0 <= topic_size <= (32767 if magic == MAGIC_V2 else 127):
        raise Malformed(f"a topic of {topic_size} bytes")
    if topic_end + 2 > end:
        raise Malformed(f"a topic of {topic_size} bytes in a record of {size}")
    properties_size = max(I16.unpack_from(data, topic_end)[0], 0)
    if topic_end + 2 + properties_size != end:
        raise Malformed(f"the parts of a record of {size} bytes have another sum")
    return StoredMessage(
        data[topic_at:topic_end].decode("utf-8", "replace"),
        queue_id,
        queue_offset,
        position,
        size,
        data[at:body_end],
        crc,
        flag,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        prepared_offset,
        data[topic_end + 2 : end],
    )


def _behind_born_time(
    data: bytes, start: int, end: int, sys_flag: int
) -> tuple[tuple[Any, ...], int]:
    """The fields of a head with IPv6 hosts behind the born time, and where it ends."""
    head = _HEADS[sys_flag & sysflags.HOST_MASK]
    at = start + head.size
    if at > end:
        raise Malformed(f"a record of {end - start} bytes with IPv6 hosts")
    return head.unpack_from(data, start)[9:], at


def decode_all(data: bytes) -> Iterator[StoredMessage]:
    """The records of a pull's answer, in order.

    @raise Malformed: one of them is not whole; those before it have been given.
    """
    start = 0
    limit = len(data)
    while start < limit:
        message = decode(data, start)
        start += message.size
        yield message

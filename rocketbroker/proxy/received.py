# -*- test-case-name: tests.proxy.test_received -*-
"""Stored messages as clients of the proxy get them, and their receipt handles.

A handle is the text of L{rocketbroker.records.receipt_handle} with one part more: where
the message is in the commit log, which a dead letter needs.
C{docs/facts/proxy.md} 7.3, 7.6 and 7.7.
"""

from __future__ import annotations

import hashlib
from typing import Final, final

from google.protobuf.timestamp_pb2 import Timestamp

from rocketbroker.client.pop import real_topic
from rocketbroker.proxy.messages_pb2 import (
    Code,
    Digest,
    DigestType,
    Encoding,
    Message,
    MessageType,
    Resource,
    SystemProperties,
)
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.records import hosts, properties, sysflags
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.records.record import StoredMessage

#: The parts of a handle before the place in the commit log.
_PARTS: Final = 8


@final
class Handle:
    """A receipt handle, and the place of its message in the commit log.

    @ivar receipt: the handle as brokers know it.
    @ivar position: -1 if it is not told.
    """

    def __init__(self, receipt: ReceiptHandle, position: int) -> None:
        self.receipt = receipt
        self.position = position

    def text(self) -> str:
        """The handle as clients have it."""
        return f"{self.receipt.text()} {self.position}"

    @classmethod
    def parse(cls, text: str) -> Handle:
        """Read one.

        @raise Refusal: it is none.
        """
        parts = text.split(" ")
        try:
            if len(parts) < _PARTS:
                raise Malformed(f"it has {len(parts)} parts")
            position = int(parts[_PARTS]) if len(parts) > _PARTS else -1
            return cls(ReceiptHandle.parse(text), position)
        except (Malformed, ValueError) as problem:
            words = f"this is no receipt handle: {problem}"
            raise Refusal(Code.INTERNAL_SERVER_ERROR, words) from None

    @property
    def visible_at(self) -> int:
        """From when on, in ms, the message is given to others."""
        return self.receipt.pop_ms + self.receipt.invisible_ms

    def topic(self, topic: str, group: str) -> str:
        """The topic that has the message: a retry topic for a retried one."""
        return real_topic(topic, group, self.receipt)


def stamp(milliseconds: int) -> Timestamp:
    """A time since 1970."""
    seconds, rest = divmod(milliseconds, 1000)
    return Timestamp(seconds=seconds, nanos=rest * 1_000_000)


def resource_of(name: str) -> Resource:
    """A topic or group; what is before its first C{%} is its namespace."""
    namespace, mark, rest = name.partition("%")
    if mark and namespace:
        return Resource(resource_namespace=namespace, name=rest)
    return Resource(name=name)


def _kind(stored: dict[str, str]) -> MessageType:
    if stored.get(properties.TRANSACTION_PREPARED) == "true":
        return MessageType.TRANSACTION
    delays = (properties.DELAY, properties.TIMER_DELIVER_MS, properties.TIMER_DELAY_SEC)
    if any(name in stored for name in delays):
        return MessageType.DELAY
    if properties.SHARDING_KEY in stored:
        return MessageType.FIFO
    return MessageType.NORMAL


def message_of(
    stored: StoredMessage, topic: str, attempts: int, handle: str | None, now_ms: int
) -> Message:
    """A message as a client gets it.

    @param stored: with the body as it is stored.
    @param topic: as asked for: a retry topic is not shown.
    @param attempts: how often it was given out before.
    @param handle: None: the client cannot acknowledge it.
    """
    kept = stored.properties
    digest = hashlib.md5(stored.body, usedforsecurity=False).hexdigest().upper()
    packed = stored.sys_flag & sysflags.COMPRESSED
    system = SystemProperties(
        keys=stored.keys,
        message_id=stored.message_id,
        body_digest=Digest(type=DigestType.MD5, checksum=digest),
        body_encoding=Encoding.GZIP if packed else Encoding.IDENTITY,
        message_type=_kind(kept),
        born_timestamp=stamp(stored.born_ms),
        born_host=kept.get(properties.BORN_HOST) or hosts.decode(stored.born_host)[0],
        store_timestamp=stamp(stored.store_ms),
        store_host=hosts.text(stored.store_host),
        queue_id=stored.queue_id,
        queue_offset=stored.queue_offset,
        delivery_attempt=attempts + 1,
    )
    if stored.tags:
        system.tag = stored.tags
    if handle is not None:
        system.receipt_handle = handle
    if properties.SHARDING_KEY in kept:
        system.message_group = kept[properties.SHARDING_KEY]
    if properties.TRACE_CONTEXT in kept:
        system.trace_context = kept[properties.TRACE_CONTEXT]
    deliver = _delivery(kept, now_ms)
    if deliver is not None:
        system.delivery_timestamp.CopyFrom(stamp(deliver))
    origin = kept.get(properties.DLQ_ORIGIN_TOPIC)
    origin_id = kept.get(properties.DLQ_ORIGIN_MESSAGE_ID)
    if origin and origin_id:
        system.dead_letter_queue.topic = origin
        system.dead_letter_queue.message_id = origin_id
    users = {k: v for k, v in kept.items() if k not in properties.RESERVED}
    return Message(
        topic=resource_of(topic),
        user_properties=users,
        system_properties=system,
        body=stored.body,
    )


def _delivery(kept: dict[str, str], now_ms: int) -> int | None:
    seconds = kept.get(properties.TIMER_DELAY_SEC, "")
    if seconds.isdecimal():
        return now_ms + int(seconds) * 1000
    deliver = kept.get(properties.TIMER_DELIVER_MS, "")
    return int(deliver) if deliver.isdecimal() else None

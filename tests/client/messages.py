"""Stored messages for tests."""

from __future__ import annotations

from rocketbroker.records import hosts, properties
from rocketbroker.records.record import StoredMessage, decode, encode

HOST = hosts.encode("10.0.0.9", 10911)


def stored_record(offset: int, text: dict[str, str] | None = None) -> bytes:
    """A record of topic T at some offset of its queue."""
    encoded = properties.encode(text or {})
    return encode(b"T", b"x", encoded, 0, offset, offset, 1, HOST, 2, HOST)


def stored_message(offset: int, size: int = 1) -> StoredMessage:
    """A message of topic T at some offset of its queue."""
    body = b"x" * size
    return decode(encode(b"T", body, b"", 0, offset, offset, 1, HOST, 2, HOST))

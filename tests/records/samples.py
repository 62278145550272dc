"""Records that several tests read, and a judge of records that is not the store's."""

from __future__ import annotations

from typing import Any

from rocketbroker.records import hosts, record
from rocketbroker.records.malformed import Malformed

BORN = hosts.encode("10.0.0.1", 50000)
STORE = hosts.encode("10.0.0.2", 10911)
BORN_V6 = hosts.encode("fe80::1", 50000)
STORE_V6 = hosts.encode("fe80::2", 10911)

#: The example of C{docs/facts/store.md} 3.2.
VECTOR = bytes.fromhex(
    "00000065 daa320a7 58932aac 00000003 00000000 0000000000000007 0000000000001000"
    "00000000 0000018bcfe56800 0a000001 0000c350 0000018bcfe56801 0a000002 00002a9f"
    "00000000 0000000000000000 00000002 6869 01 54 0007 54414753016102"
)


def example(**changes: Any) -> bytes:
    """The same, or one that differs from it."""
    fields: dict[str, Any] = {
        "topic": b"T",
        "body": b"hi",
        "properties": b"TAGS\1a\2",
        "queue_id": 3,
        "queue_offset": 7,
        "position": 4096,
        "born_ms": 1700000000000,
        "born_host": BORN,
        "store_ms": 1700000000001,
        "store_host": STORE,
    }
    return record.encode(**(fields | changes))


#: One of each shape.
SHAPES = {
    "v1": VECTOR,
    "long topic": example(topic=b"%RETRY%" + b"g" * 130),
    "born v6": example(born_host=BORN_V6),
    "store v6": example(store_host=STORE_V6),
    "both v6": example(born_host=BORN_V6, store_host=STORE_V6),
    "empty": example(body=b"", properties=b""),
    "crc": example(append_crc=True),
}


def sound_size(data: bytes, at: int = 0, with_own_crc: bool = False) -> int:
    """The size of the record at C{at}; 0 if there is none or its CRC is wrong.

    @param with_own_crc: compare the CRC of the whole record, which it must have,
        instead of that of its body.
    """
    try:
        message = record.decode(data, at)
    except Malformed:
        return 0
    whole = data[at : at + message.size]
    if with_own_crc:
        is_sound = whole.endswith(record.own_crc(whole))
    else:
        is_sound = record.body_crc(message.body) == message.body_crc
    return message.size if is_sound else 0

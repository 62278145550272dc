"""Stored records for the tests of this package."""

from __future__ import annotations

from rocketbroker.records import properties, record

V4 = bytes((10, 0, 0, 1, 0, 0, 0xC3, 0x50))
OTHER_V4 = bytes((10, 0, 0, 2, 0, 0, 0x2A, 0x9F))
V6 = bytes(15) + b"\x01" + bytes((0, 0, 0x2A, 0x9F))

#: Half past midnight, UTC, of a day in November.
START_MS = 1_700_000_000_000


def stored(
    number: int,
    body: bytes = b"hello",
    values: dict[str, str] | bytes | None = None,
    topic: str = "T",
    queue_id: int = 0,
    born_host: bytes = V4,
    store_host: bytes = OTHER_V4,
    sys_flag: int = 0,
    store_ms: int | None = None,
    position: int | None = None,
) -> bytes:
    """The record of the message with queue offset C{number}."""
    if not isinstance(values, bytes):
        values = properties.encode(values or {})
    return record.encode(
        topic=topic.encode("utf-8"),
        body=body,
        properties=values,
        queue_id=queue_id,
        queue_offset=number,
        position=number * 1000 if position is None else position,
        born_ms=START_MS + number,
        born_host=born_host,
        store_ms=START_MS + number + 1 if store_ms is None else store_ms,
        store_host=store_host,
        flag=number % 7,
        sys_flag=sys_flag,
        reconsume_times=number % 3,
        prepared_offset=number * 2,
    )

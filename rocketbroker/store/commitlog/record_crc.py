# -*- test-case-name: tests.store.commitlog.test_record_crc -*-
"""Records with a CRC of their own, for C{enabledAppendPropCRC}.

The CRC of the body does not cover head and properties. With this setting the last
property of each record is a CRC of all that stands before it. It can be made only when
the record has its place: so the properties first get room for it, which counts where
their length is limited, and it is filled in when the record is encoded.

The log chooses these functions when it is made. Without the setting none of them is
called for a message.

C{docs/facts/store.md} 3.6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rocketbroker.records.properties import CRC32, joined
from rocketbroker.records.record import CRC_PROPERTY_SIZE, crc_property, own_crc
from rocketbroker.store.commitlog.encoder import PIECES, encode
from rocketbroker.store.interfaces import Draft, Placed

_NAME: Final = CRC32.encode() + b"\x01"
_ANY: Final = re.compile(rb"(?:^|(?<=\x02))" + re.escape(_NAME) + rb"[^\x02]*\x02?")

#: Stands in the place of a CRC until the rest of the record is known.
CRC_ROOM: Final = crc_property(0)
assert len(CRC_ROOM) == CRC_PROPERTY_SIZE


def with_crc_room(properties: bytes) -> bytes:
    """Properties that end with room for a CRC, and have no other."""
    if _NAME in properties:
        properties = _ANY.sub(b"", properties)
    return joined(properties, CRC_ROOM)


def make_room_for_crc(drafts: Sequence[Draft]) -> None:
    """Let the properties of each record end with room for its CRC; another that they
    came with is dropped. Done twice, it is the same."""
    for draft in drafts:
        parts = draft.parts
        if parts is None:
            draft.properties = with_crc_room(draft.properties)
        elif type(parts) is Placed:
            parts.properties = with_crc_room(parts.properties)
        else:
            draft.parts = [
                (flag, body, with_crc_room(found), code)
                for flag, body, found, code in parts
            ]


def split_crc_room(properties: bytes) -> tuple[bytes, bytes]:
    """Properties, and the room for a CRC if they end with it: further properties are
    added in between."""
    if properties.endswith(CRC_ROOM):
        return properties[:-CRC_PROPERTY_SIZE], CRC_ROOM
    return properties, b""


def encode_with_crc(
    drafts: Sequence[Draft], store_ms: int, store_host: bytes
) -> list[bytes]:
    """The records of drafts that have room for a CRC, each with its own.

    @raise struct.error: a number does not fit its field.
    """
    pieces = iter(encode(drafts, store_ms, store_host))
    records = map(b"".join, zip(*[pieces] * PIECES, strict=True))
    return [record[:-CRC_PROPERTY_SIZE] + own_crc(record) for record in records]

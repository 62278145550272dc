# -*- test-case-name: tests.records.test_entries -*-
"""The entry of a consume queue: where a message is, how long, and its tag code.

    ======  =====================  =====
    offset  field                  width
    ======  =====================  =====
    0       physical offset        i64
    8       size of the record     i32
    12      tag code               i64
    ======  =====================  =====

C{docs/facts/store.md} 7.
"""

from __future__ import annotations

import struct
from typing import Final

from rocketbroker.records.malformed import Malformed

ENTRY: Final = struct.Struct(
    ">"
    "q"  # physical offset
    "i"  # size of the record
    "q"  # tag code
)

SIZE: Final = 20
assert ENTRY.size == SIZE

#: The size field of the entries written before the first one of a queue that does not
#: begin at 0; nothing is stored there.
FILLED_SIZE: Final = 0x7FFFFFFF

#: What such an entry looks like.
FILLED: Final = ENTRY.pack(0, FILLED_SIZE, 0)


def encode(position: int, size: int, tag_code: int) -> bytes:
    """One entry."""
    return ENTRY.pack(position, size, tag_code)


def decode(data: bytes) -> list[tuple[int, int, int]]:
    """All entries in C{data} as C{(physical offset, size, tag code)}.

    @raise Malformed: it is not a whole number of entries.
    """
    if len(data) % SIZE:
        raise Malformed(f"{len(data)} bytes are not a whole number of queue entries")
    return list(ENTRY.iter_unpack(data))

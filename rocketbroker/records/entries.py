# -*- test-case-name: tests.records.test_entries -*-
"""The entry of a consume queue: where a message is, how long, and its tag code.

Layout::

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
from itertools import compress
from operator import add, ne
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

#: Of so many entries the extents are found at once: twice what a pull gets.
MAX_EXTENT_ENTRIES: Final = 64

_position_at: Final = struct.Struct(">q").unpack_from

# Of so many entries the sizes, and positions.
_SIZES: Final = [
    struct.Struct(">" + "8xi8x" * count).unpack
    for count in range(MAX_EXTENT_ENTRIES + 1)
]
_POSITIONS: Final = [
    struct.Struct(">" + "q12x" * count).unpack
    for count in range(MAX_EXTENT_ENTRIES + 1)
]


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


def extents_of(data: bytes) -> tuple[int, list[int]]:
    """The extents of the log that the records of some entries are, in order.

    Records that were sent together stand together in the log. The compiled form is
    L{rocketbroker.codec.entries.extents_of}.

    @param data: whole entries, L{MAX_EXTENT_ENTRIES} at most.
    @return: the bytes of all records; of each extent begin and end, one behind the
        other, to be checked.
    """
    count = len(data) // SIZE
    sizes = _SIZES[count](data)
    total = sum(sizes)
    (start,) = _position_at(data)
    (last,) = _position_at(data, len(data) - SIZE)
    stop = last + sizes[-1]
    if stop - start == total:
        # One extent, unless entries are wrong in a way that adds up; and then too it is
        # a part of the log that begins and ends as the entries say.
        return total, [start, stop]
    positions = _POSITIONS[count](data)
    following = positions[1:]
    ends = [*map(add, positions, sizes)]
    extents = [start]
    for at in compress(range(count), map(ne, following, ends)):
        extents += (ends[at], following[at])
    extents.append(stop)
    return total, extents

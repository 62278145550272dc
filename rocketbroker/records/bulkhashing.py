# -*- test-case-name: tests.records.test_bulkhashing -*-
"""The hashes of many keys at once, for the index.

Keys of one length, one below the other, are columns of characters; a column is a slice
with a stride. Keys that a client makes one after the other share most columns, and one
that is the same in all rows adds the same number to all hashes. Those that differ are
put into a large integer, 64 bits for each row, and the sum C{31 * h + unit} is taken in
all rows by one operation: first of neighbouring characters, then of pairs, then of
fours. A row of 8 such characters costs 40 ns, where a hash by itself costs 400.

C{docs/facts/store.md} 12.2; L{rocketbroker.records.hashing} for one key.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

#: How many rows are hashed at once: their columns stay in the cache of a processor.
MAX_ROWS: Final = 4096

_LANE: Final = 8
_UNITS: Final = int.from_bytes(b"\xff\0\xff\0\xff\0\xff\0" * MAX_ROWS, "little")
_PAIRS: Final = int.from_bytes(b"\xff\xff\0\0\xff\xff\0\0" * MAX_ROWS, "little")
_FOURS: Final = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * MAX_ROWS, "little")
_ONES: Final = int.from_bytes(b"\1\0\0\0\0\0\0\0" * MAX_ROWS, "little")
_MASK: Final = 0xFFFFFFFF
_EIGHTH: Final = pow(31, _LANE, 1 << 32)


def index_hashes(columns: Sequence[bytes], prefixes: Sequence[int]) -> tuple[int, ...]:
    """The hashes under which the index files keys, as
    L{rocketbroker.records.hashing.index_hash} has them.

    @param columns: the first character of all keys, the second of all, and so on; ASCII
        only.
    @param prefixes: for each key the hash, unsigned, of what stands before it; at most
        L{MAX_ROWS}.
    """
    count = len(prefixes)
    ones = _ONES & ((1 << 64 * count) - 1)
    same = 0
    total = 0
    weight = 1
    for end in range(len(columns), 0, -_LANE):
        lanes: bytearray | None = None
        power = weight
        at = _LANE
        for column in reversed(columns[max(0, end - _LANE) : end]):
            at -= 1
            first = column[:1]
            if column == first * count:
                same += first[0] * power
            else:
                if lanes is None:
                    lanes = bytearray(_LANE * count)
                lanes[at::_LANE] = column
            power = power * 31 & _MASK
        if lanes is not None:
            total += ((_sums(lanes) & _FOURS) * weight) & _FOURS
        weight = weight * _EIGHTH & _MASK
    power = pow(31, len(columns), 1 << 32)
    if prefixes.count(prefixes[0]) == count:
        same += prefixes[0] * power
    else:
        lanes64 = struct.pack(f"<{count}Q", *prefixes)
        total += int.from_bytes(lanes64, "little") * power & _FOURS
    total = (total + (same & _MASK) * ones) & _FOURS
    # Without the sign; the one number that has no counterpart becomes 0.
    signs = (total >> 31) & ones
    total = ((total ^ signs * _MASK) + signs) & (ones * 0x7FFFFFFF)
    return struct.unpack(f"<{count}q", total.to_bytes(_LANE * count, "little"))


def _sums(lanes: bytearray) -> int:
    """Of each row of 8 characters the sum, which has 43 bits."""
    units = int.from_bytes(lanes, "little")
    pairs = (units & _UNITS) * 31 + ((units >> 8) & _UNITS)
    fours = (pairs & _PAIRS) * 31**2 + ((pairs >> 16) & _PAIRS)
    return (fours & _FOURS) * 31**4 + ((fours >> 32) & _FOURS)

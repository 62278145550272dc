# -*- test-case-name: tests.codec.test_entries -*-
"""Positions in the log of the records of a queue's entries: compiled.

L{rocketbroker.records.entries} has the layout of an entry.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.codec.mypyc_types import i64, read_i32_be, read_i64_be

_SIZE: Final = 20
_LENGTH_AT: Final = 8


def extents_of(entries: bytes) -> tuple[int, list[int]]:
    """The extents of the log that the records of some entries are, in order.

    @param entries: whole ones.
    @return: the bytes of all records; of each extent begin and end, one behind the
        other, to be checked.
    """
    found: list[int] = []
    total: i64 = 0
    start: i64 = -1
    stop: i64 = -1
    at: i64 = 0
    size: i64 = len(entries)
    while at < size:
        position = read_i64_be(entries, at)
        length = i64(read_i32_be(entries, at + _LENGTH_AT))
        if position != stop or not at:
            if at:
                found.append(start)
                found.append(stop)
            start = position
        stop = position + length
        total += length
        at += _SIZE
    found.append(start)
    found.append(stop)
    return total, found

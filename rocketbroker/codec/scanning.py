# -*- test-case-name: tests.codec.test_sends -*-
"""The ways over the bytes of a JSON header: compiled.

C{docs/facts/remoting.md} 2.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.codec.mypyc_types import i64, read_i32_be, read_i64_be

QUOTE: Final = 0x22
BACKSLASH: Final = 0x5C
ZERO: Final = 0x30
NINE: Final = 0x39


def skip_text(data: bytes, at: i64, end: i64) -> i64:
    """Skip the rest of a string of printable ASCII without an escape.

    @return: the place behind its quote; -1 if it is another.
    """
    while at < end:
        unit: i64 = data[at]
        at += 1
        if unit == QUOTE:
            return at
        if unit < 0x20 or unit > 0x7F or unit == BACKSLASH:
            return -1
    return -1


def are_plain(word: i64) -> bool:
    """Whether eight characters are ASCII and none of them a quote, a backslash or a
    control character."""
    # Larger constants would be objects.
    ones: i64 = 0x0101010101010101
    quotes = word ^ ones * QUOTE
    escapes = word ^ ones * BACKSLASH
    found = (quotes - ones) & ~quotes | (escapes - ones) & ~escapes
    return (found | word | (word - ones * 0x20)) & (ones << 7) == 0


def skip_value(data: bytes, at: i64, end: i64) -> i64:
    """Skip a string, as above, or a whole number.

    @return: the place behind it; -1 if it is another.
    """
    if at < end and data[at] == QUOTE:
        return skip_text(data, at + 1, end)
    start = at
    while at < end and ZERO <= data[at] <= NINE:
        at += 1
    if at == start or at - start > 9 or (data[start] == ZERO and at - start > 1):
        return -1
    return at


def skip_plain(data: bytes, at: i64, end: i64) -> i64:
    """The place of the next character that is not one of these."""
    while at + 8 <= end and are_plain(read_i64_be(data, at)):
        at += 8
    while at < end:
        unit: i64 = data[at]
        if unit < 0x20 or unit > 0x7F or unit in (QUOTE, BACKSLASH):
            break
        at += 1
    return at


def is_word(data: bytes, at: i64, first: i64, second: i64) -> bool:
    """Whether eight bytes are these two words; one constant would be an object."""
    return read_i32_be(data, at) == first and read_i32_be(data, at + 4) == second

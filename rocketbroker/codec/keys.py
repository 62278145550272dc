# -*- test-case-name: tests.codec.test_keys -*-
"""The hashes of messages' keys for the index, and its entries: compiled.

Java's C{String.hashCode} of topic, C{#} and key, character by character. Interpreted
that costs 3 us a key; L{rocketbroker.store.index.keys} has the way of pure Python.

C{docs/facts/store.md} 12.
"""

from __future__ import annotations

from typing import Any, Final

from rocketbroker.codec.mypyc_types import (
    BytesWriter,
    i32,
    i64,
    read_i32_be,
    write_i32_be,
    write_i64_be,
)
from rocketbroker.codec.scanning import is_word

_MARK: Final = 1
_END: Final = 2
_SPACE: Final = 0x20
_MASK: Final = 0xFFFFFFFF
_UNIQ: Final = 0x554E4951  # UNIQ, and _KEY
_KEY: Final = 0x5F4B4559
_KEYS: Final = 0x4B455953  # KEYS


def hashes_of(
    prefixes: list[int], properties: list[bytes], most: i64
) -> tuple[list[int], list[int]]:
    """The hashes of the keys of messages, of each the unique key's first.

    @param prefixes: the unsigned hash of each message's topic and C{#}.
    @param most: so many keys of one message are taken.
    @return: also how many each message has; -1 for one that is not ASCII, of which
        there are none.
    """
    codes: list[int] = []
    counts: list[int] = []
    for number, own in enumerate(properties):
        counts.append(add_hashes(codes, prefixes[number], own, most))
    return codes, counts


def add_hashes(codes: list[int], prefix: i64, own: bytes, most: i64) -> int:
    """Add the hashes of one message's keys; how many, or -1.

    Of two properties of one name the last counts.
    """
    size: i64 = len(own)
    name: i64 = 0
    unique: i64 = -1
    unique_end: i64 = 0
    keys: i64 = -1
    keys_end: i64 = 0
    at: i64 = 0
    is_unique = is_keys = False
    while at <= size:
        unit: i64 = _END
        if at < size:
            unit = own[at]
        if unit == _END:
            if is_unique:
                unique_end = at
            elif is_keys:
                keys_end = at
            is_unique = is_keys = False
            name = at + 1
        elif unit == _MARK:
            # Only the first mark of a property ends its name.
            if at - name == 4 and read_i32_be(own, name) == _KEYS:
                is_keys = True
                keys = at + 1
            elif at - name == 8 and is_word(own, name, _UNIQ, _KEY):
                is_unique = True
                unique = at + 1
        at += 1
    first: i64 = len(codes)
    has_unique = 0 <= unique < unique_end
    if has_unique and not add_hash(codes, prefix, own, unique, unique_end):
        return -1
    if keys >= 0:
        at = start = keys
        while at <= keys_end and most > 0:
            if at == keys_end or own[at] == _SPACE:
                if at > start:
                    if not add_hash(codes, prefix, own, start, at):
                        del codes[first:]
                        return -1
                    most -= 1
                start = at + 1
            at += 1
    return len(codes) - first


def add_hash(codes: list[int], prefix: i64, text: bytes, at: i64, end: i64) -> bool:
    """Add the hash of a key without its sign, as the index has it; whether the key is
    ASCII.

    @param prefix: the unsigned hash of what stands before it.
    """
    code = prefix
    while at < end:
        unit: i64 = text[at]
        if unit > 0x7F:
            return False
        code = (code * 31 + unit) & _MASK
        at += 1
    # The one number that has no counterpart becomes 0.
    if code > 0x7FFFFFFF:
        code = -code & 0x7FFFFFFF
    codes.append(code)
    return True


def enter(
    codes: list[int],
    positions: list[int],
    seconds: list[int],
    view: Any,
    slots: i64,
    first: i64,
    is_little: bool,
) -> tuple[bytes, int]:
    """Enter keys into the slots of a file of the index, and make their entries.

    @param positions: of the message of each.
    @param seconds: from the file's begin time to the store time of each.
    @param view: the slots, as numbers whose bytes stand as in the file.
    @param slots: how many these are.
    @param first: the number of the first entry.
    @param is_little: whether this machine has the low byte of a number first.
    @return: also how many keys are the first of their slot.
    """
    writer = BytesWriter()
    fresh: i64 = 0
    number = first
    at: i64 = 0
    count: i64 = len(codes)
    while at < count:
        code: i64 = codes[at]
        slot = int(code % slots)
        raw: i64 = view[slot]
        before = swapped(raw) if is_little else raw
        if before >= number:
            # It cannot be right: the file is broken.
            before = 0
        view[slot] = int(swapped(number) if is_little else number)
        write_i32_be(writer, i32(code))
        write_i64_be(writer, positions[at])
        write_i32_be(writer, i32(seconds[at]))
        write_i32_be(writer, i32(before))
        if before == 0:
            fresh += 1
        number += 1
        at += 1
    return writer.getvalue(), int(fresh)


def swapped(number: i64) -> i64:
    """A number of 32 bits without a sign, its bytes in the other order."""
    high = (number & 0xFF) << 24 | (number & 0xFF00) << 8
    return high | number >> 8 & 0xFF00 | number >> 24

# -*- test-case-name: tests.store.test_indexkeys -*-
"""Under which hashes messages stand in the index: unique key and keys.

Messages that one producer sends one after the other have properties of one shape: the
same names at the same places. So properties of one length are put one below the other,
and whether all of them have a name at one place, and a single time, is asked of columns
of characters, each by one comparison. That costs a tenth of looking into each message,
which is what is done where shapes differ, or where a message has several keys.

The store sheet, section 12.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rocketbroker.records.bulkhashing import MOST_ROWS, index_hashes
from rocketbroker.records.hashing import index_hash_after

_UNIQUE: Final = b"UNIQ_KEY\x01"
_KEYS: Final = b"KEYS\x01"
_END: Final = 2
_SPACE: Final = 32

#: So many keys of one message are taken; KEYS may have 32 KiB, and each is an entry.
MOST_KEYS: Final = 1024

#: For fewer messages columns cost more than they save.
FEW: Final = 8

#: Longer keys are hashed one by one: there is little to save.
LONGEST: Final = 128


def codes_of(
    prefixes: Sequence[int], properties: Sequence[bytes]
) -> list[tuple[int, ...]]:
    """The hashes of the keys of each message, the unique key's first.

    @param prefixes: the unsigned hash of each message's topic and C{#}.
    @param properties: the properties string of each; at most L{MOST_ROWS}.
    """
    assert len(prefixes) == len(properties) <= MOST_ROWS
    if len(properties) < FEW:
        return list(map(codes_of_one, prefixes, properties))
    if len(set(map(len, properties))) == 1:
        return _codes_of_equal(prefixes, properties)
    by_size: dict[int, list[int]] = {}
    for number, each in enumerate(properties):
        numbers = by_size.get(len(each))
        if numbers is None:
            by_size[len(each)] = [number]
        else:
            numbers.append(number)
    codes: list[tuple[int, ...]] = [()] * len(properties)
    for numbers in by_size.values():
        some = _codes_of_equal(
            [prefixes[number] for number in numbers],
            [properties[number] for number in numbers],
        )
        for number, each_codes in zip(numbers, some, strict=True):
            codes[number] = each_codes
    return codes


def _codes_of_equal(
    prefixes: Sequence[int], properties: Sequence[bytes]
) -> list[tuple[int, ...]]:
    """The same, of properties of one length."""
    if len(properties) >= FEW:
        rows = b"".join(properties)
        unique = _columns(rows, properties[0], len(properties), _UNIQUE)
        keys = _columns(rows, properties[0], len(properties), _KEYS)
        if unique is not None and keys is not None:
            found = [index_hashes(each, prefixes) for each in (unique, keys) if each]
            return list(zip(*found, strict=True)) if found else [()] * len(properties)
    return list(map(codes_of_one, prefixes, properties))


def _columns(rows: bytes, first: bytes, count: int, name: bytes) -> list[bytes] | None:
    """The columns of a property's value, which all rows have at one place.

    @param rows: properties of one length, joined.
    @param first: those of the first row.
    @return: an empty list if no row has the property, or all have an empty one; None
        if it is not so simple.
    """
    size = len(first)
    at = first.find(name)
    if at < 0:
        return [] if rows.find(name) < 0 else None
    if rows.count(name) != count or (at and not _is_all(rows[at - 1 :: size], _END)):
        # It is elsewhere, there are two, or it is the end of another's name.
        return None
    for place, unit in enumerate(name, at):
        if not _is_all(rows[place::size], unit):
            return None
    start = at + len(name)
    end = first.find(b"\x02", start)
    if end < 0:
        end = size
    elif not _is_all(rows[end::size], _END):
        return None
    if end - start > LONGEST:
        return None
    columns = [rows[place::size] for place in range(start, end)]
    values = b"".join(columns)
    if _END in values or _SPACE in values or not values.isascii():
        return None
    return columns


def _is_all(column: bytes, unit: int) -> bool:
    return column == column[:1] * len(column) and column[0] == unit


def codes_of_one(prefix: int, properties: bytes) -> tuple[int, ...]:
    """The hashes of the keys of one message."""
    return tuple([index_hash_after(prefix, key) for key in keys_of(properties)])


def keys_of(properties: bytes) -> list[str]:
    """Unique key and keys in a properties string; of two of a name the last counts."""
    keys = []
    unique = _value(properties, _UNIQUE)
    if unique:
        keys.append(unique)
    if _KEYS in properties:
        words = _value(properties, _KEYS).split(" ")
        keys += [key for key in words if key][:MOST_KEYS]
    return keys


def _value(properties: bytes, name: bytes) -> str:
    at = properties.rfind(name)
    while at > 0 and properties[at - 1] != _END:
        at = properties.rfind(name, 0, at)
    if at < 0:
        return ""
    start = at + len(name)
    end = properties.find(b"\x02", start)
    value = properties[start:] if end < 0 else properties[start:end]
    return value.decode("utf-8", "replace")

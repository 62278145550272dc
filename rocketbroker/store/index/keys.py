# -*- test-case-name: tests.store.index.test_keys -*-
"""The hashes of the keys of messages for the index: of the unique key and the keys.

Messages that one producer sends one after the other have properties of one shape: the
same names at the same places. So properties of one length are put one below the other;
one comparison for each column of characters then finds whether all of them have a name
at one place, and only there. That costs a tenth of parsing each message, which is done
where shapes differ, or where a message has several keys.

C{docs/facts/store.md} 12.3.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, final

from rocketbroker.codec.build import COMPILED
from rocketbroker.codec.keys import hashes_of
from rocketbroker.records.bulkhashing import MAX_ROWS, index_hashes
from rocketbroker.records.hashing import index_hash_after

_UNIQUE: Final = b"UNIQ_KEY\x01"
_KEYS: Final = b"KEYS\x01"
_TAGS: Final = b"TAGS\x01"
_MARK: Final = 1
_END: Final = 2
_SPACE: Final = 32

#: So many keys of one message are taken; KEYS may have 32 KiB, and each is an entry.
MAX_KEYS: Final = 1024

#: For fewer messages columns cost more than they save.
FEW: Final = 8

#: Longer keys are hashed one by one: there is little to save.
LONGEST: Final = 128

#: The most seconds that an entry can hold.
_MAX_SECONDS: Final = (1 << 31) - 1


@final
class Keys:
    """Keys to be entered, as columns.

    @ivar codes: the hash of each.
    @ivar positions: where its message is, as 64-bit numbers.
    @ivar times: the store time of that in ms, the same.
    @ivar span: a time before and one behind which there is none.
    """

    __slots__ = ("codes", "positions", "span", "times")

    def __init__(
        self,
        codes: Sequence[int],
        positions: array[int],
        times: array[int],
        span: tuple[int, int],
    ) -> None:
        assert len(codes) == len(positions) == len(times)
        self.codes = codes
        self.positions = positions
        self.times = times
        self.span = span

    def part(self, start: int, end: int) -> Keys:
        """Some of them."""
        if start == 0 and end >= len(self.codes):
            return self
        return Keys(
            self.codes[start:end],
            self.positions[start:end],
            self.times[start:end],
            self.span,
        )

    def seconds(self, begin_ms: int) -> array[int]:
        """For each key the seconds from a begin time to its store time."""
        low, high = (seconds_between(ms, begin_ms) for ms in self.span)
        if low == high:
            return array("i", (low,)) * len(self.times)
        return array("i", [seconds_between(ms, begin_ms) for ms in self.times])


def seconds_between(ms: int, begin_ms: int) -> int:
    """Whole seconds from a begin time, from 0 to the most that an entry can hold."""
    if begin_ms <= 0:
        return 0
    return min(max((ms - begin_ms) // 1000, 0), _MAX_SECONDS)


def codes_of(
    prefixes: Sequence[int], properties: Sequence[bytes]
) -> tuple[Sequence[int], Sequence[int] | int]:
    """The hashes of the keys of all messages, of each the unique key's first.

    @param prefixes: the unsigned hash of each message's topic and C{#}.
    @param properties: the properties string of each; at most L{MAX_ROWS}.
    @return: also how many keys each has, one number if all have as many.
    """
    assert len(prefixes) == len(properties) <= MAX_ROWS
    if COMPILED:
        found, numbers = hashes_of([*prefixes], [*properties], MAX_KEYS)
        if -1 not in numbers:
            same = len(set(numbers)) == 1
            return found, numbers[0] if same else numbers
    if len(properties) >= FEW and len(set(map(len, properties))) == 1:
        columns = _codes_of_equal(prefixes, properties)
        if columns is not None:
            return _interleaved(columns, len(properties)), len(columns)
    codes = _codes_of_mixed(prefixes, properties)
    return list(chain.from_iterable(codes)), list(map(len, codes))


def _interleaved(columns: list[tuple[int, ...]], count: int) -> Sequence[int]:
    """The first of each column, the second of each, and so on."""
    if len(columns) == 1:
        return columns[0]
    codes = [0] * (len(columns) * count)
    for at, column in enumerate(columns):
        codes[at :: len(columns)] = column
    return codes


def _codes_of_mixed(
    prefixes: Sequence[int], properties: Sequence[bytes]
) -> list[tuple[int, ...]]:
    """The hashes of each message, where they are of several shapes.

    Check points of POP and their acknowledgements may be as long, but their unique keys
    are not.
    """
    by_shape: dict[tuple[int, int], list[int]] = {}
    for number, each in enumerate(properties):
        shape = len(each), each.find(b"\x02", each.find(_UNIQUE))
        numbers = by_shape.get(shape)
        if numbers is None:
            by_shape[shape] = [number]
        else:
            numbers.append(number)
    codes: list[tuple[int, ...]] = [()] * len(properties)
    for numbers in by_shape.values():
        some_prefixes = [prefixes[number] for number in numbers]
        some = [properties[number] for number in numbers]
        columns = None
        if len(some) >= FEW:
            columns = _codes_of_equal(some_prefixes, some)
        rows: Iterable[tuple[int, ...]] = ()
        if columns is None:
            rows = map(codes_of_one, some_prefixes, some)
        elif columns:
            rows = zip(*columns, strict=True)
        else:
            continue
        for number, row in zip(numbers, rows, strict=True):
            codes[number] = row
    return codes


def _codes_of_equal(
    prefixes: Sequence[int], properties: Sequence[bytes]
) -> list[tuple[int, ...]] | None:
    """The hashes of the unique keys, and those of the keys, of messages whose
    properties have one length; None if they are not of one shape."""
    rows = b"".join(properties)
    marks = _marks(rows, properties[0], len(properties))
    unique = _columns(rows, properties[0], len(properties), marks, _UNIQUE)
    if unique is None:
        return None
    keys = _columns(rows, properties[0], len(properties), marks, _KEYS)
    if keys is None:
        return None
    return [index_hashes(each, prefixes) for each in (unique, keys) if each]


def _marks(rows: bytes, first: bytes, count: int) -> list[int]:
    """The places where names end, if they are the same in all rows.

    @return: an empty list if they are not.
    """
    size = len(first)
    places = [place for place, unit in enumerate(first) if unit == _MARK]
    if rows.count(_MARK) != len(places) * count:
        return []
    if all(_is_all(rows[place::size], _MARK) for place in places):
        return places
    return []


def _columns(
    rows: bytes, first: bytes, count: int, marks: list[int], name: bytes
) -> list[bytes] | None:
    """The columns of a property's value, which all rows have at one place.

    @param rows: properties of one length, joined.
    @param first: those of the first row.
    @param marks: see L{_marks}.
    @return: an empty list if no row has the property, or all have an empty one; None
        if it is not so simple.
    """
    size = len(first)
    start = _start(rows, first, count, marks, name)
    if start <= 0:
        return [] if start < 0 else None
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


def _start(rows: bytes, first: bytes, count: int, marks: list[int], name: bytes) -> int:
    """The place in each row where the value of a property begins.

    @return: -1 if no row has the property; 0 if it is not so simple.
    """
    size = len(first)
    places = []
    at = first.find(name)
    while at >= 0:
        places.append(at)
        at = first.find(name, at + 1)
    # Elsewhere it can only stand before another mark, and only if its first letter is;
    # this check costs less than a search through all rows.
    length = len(name) - 1
    others = [mark - length for mark in marks if mark - length not in places]
    is_near = any(name[0] in rows[place::size] for place in others if place >= 0)
    if (is_near or not marks) and rows.count(name) != len(places) * count:
        return 0
    for at in places:
        for place, unit in enumerate(name, at):
            if not _is_all(rows[place::size], unit):
                return 0
    # So all rows have it there and nowhere else. The last counts; but it may be the end
    # of another's name.
    for at in reversed(places):
        before = rows[at - 1 :: size] if at else b""
        if not before or _is_all(before, _END):
            return at + len(name)
        if _END in before:
            return 0
    return -1


def _is_all(column: bytes, unit: int) -> bool:
    return column == column[:1] * len(column) and column[0] == unit


def codes_of_one(prefix: int, properties: bytes) -> tuple[int, ...]:
    """The hashes of the keys of one message."""
    return tuple([index_hash_after(prefix, key) for key in keys_of(properties)])


def tags_code(prefix: int, properties: bytes) -> int | None:
    """The hash that Java's brokers enter for the tags of one message from 5.4 on
    (C{TOPIC#T#TAGS}, C{docs/facts/since-5.3.md} 8); None if it has no tags.

    Such entries stand in files that were taken over; ours are never made.
    """
    tags = _value(properties, _TAGS)
    return index_hash_after(prefix, f"T#{tags}") if tags else None


def keys_of(properties: bytes) -> list[str]:
    """Unique key and keys in a properties string; of two of a name the last counts."""
    keys = []
    unique = _value(properties, _UNIQUE)
    if unique:
        keys.append(unique)
    if _KEYS in properties:
        names = _value(properties, _KEYS).split(" ")
        keys += [key for key in names if key][:MAX_KEYS]
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

# -*- test-case-name: tests.arrow.test_decoding -*-
"""The properties of many messages at once, as Arrow arrays.

C{rocketbroker.records.properties} says what the properties of one message are. Here the
strings of all messages stand behind one another, each closed by 0x02; where all bytes
0x01 and 0x02 alternate, they are the positions to cut at, and nothing needs a loop.
Rows where that does not hold (a value with 0x01 inside, an entry without name or value,
a name twice, bytes that are not UTF-8) are I{odd}: they go through the codec one by
one, with the same answer, and are put back in their places.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketbroker.arrow.binary_arrays import (
    cut_and_take,
    joined_rows,
    values_and_offsets,
)
from rocketbroker.arrow.layout import Ints
from rocketbroker.records import properties

Flags: TypeAlias = npt.NDArray[np.bool_]

#: A properties map, as Spark declares it.
MAP: Final[Any] = pa.map_(pa.string(), pa.string())

#: What the columns need of single properties.
SINGLE: Final = (properties.TAGS, properties.KEYS, properties.UNIQUE_KEY)

#: A set of names fits into the bits of one word up to this many.
MAX_NAMES_FAST: Final = 62

END: Final = 2


class PropertyColumns(NamedTuple):
    """What became of the properties of N messages.

    @ivar maps: all of them, as maps.
    @ivar single: of the names in L{SINGLE}, the values as strings, null without one.
    """

    maps: Any
    single: dict[str, Any]


def read_properties(strings: Any) -> PropertyColumns:
    """Take apart the properties of all messages.

    @param strings: a binary array: the properties string of each message.
    """
    count = len(strings)
    found = marks(strings)
    odd = find_odd(found)
    while True:
        plain = np.flatnonzero(~odd)
        if len(plain) < count:
            found = marks(strings.take(plain))
        try:
            fast = read_plain(found)
        except pa.ArrowInvalid:
            odd |= find_undecodable(strings)
            continue
        twice = plain[fast[1]]
        if not len(twice):
            break
        odd[twice] = True
    if len(plain) == count:
        return fast[0]
    rows = np.flatnonzero(odd)
    slow = read_one_by_one(strings.take(rows))
    parts = [(plain, fast[0]), (rows, slow)]
    return PropertyColumns(
        joined_rows(count, [(rows, part.maps) for rows, part in parts]),
        {
            name: joined_rows(
                count, [(rows, part.single[name]) for rows, part in parts]
            )
            for name in SINGLE
        },
    )


def closed(strings: Any) -> Any:
    """The strings, each with a 0x02 at its end, which 4.9 leaves out; empty ones
    stay."""
    data, offsets = values_and_offsets(strings)
    filled = offsets[1:] > offsets[:-1]
    if not filled.any():
        return strings
    last = np.where(filled, offsets[1:] - 1, 0)
    missing = filled & (data[last] != END)
    if not missing.any():
        return strings
    nothing, end = pa.scalar(b"", pa.binary()), pa.scalar(b"\x02", pa.binary())
    longer = pc.binary_join_element_wise(strings, nothing, end)
    return pc.if_else(pa.array(missing), longer, strings)


class Marks(NamedTuple):
    """Where to cut the properties strings of N messages.

    @ivar data: all of them, one after the other, each closed.
    @ivar offsets: where each begins, and the last one ends.
    @ivar places: the positions of all 0x01 and 0x02.
    @ivar before: how many of these there are before each row, and in all.
    """

    data: npt.NDArray[np.uint8]
    offsets: Ints
    places: Ints
    before: Ints


def marks(strings: Any) -> Marks:
    """Where to cut these."""
    data, offsets = values_and_offsets(closed(strings))
    places = np.flatnonzero((data - 1) < END)
    return Marks(data, offsets, places, np.searchsorted(places, offsets))


def find_odd(marks: Marks) -> Flags:
    """Which rows cannot be cut at each 0x01 and 0x02."""
    data, offsets, places, before = marks
    counts = np.diff(before)
    odd: Flags = (counts & 1) != 0
    if not len(places):
        odd |= np.diff(offsets) > 0
        return odd
    row = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(places)) - before[:-1][row]
    alternate = data[places] == (number & 1) + 1
    previous = np.where(number == 0, offsets[:-1][row], np.roll(places, 1) + 1)
    wrong = ~alternate | (places - previous < 1)
    odd[row[wrong]] = True
    return odd


def find_undecodable(strings: Any) -> Flags:
    """Which rows are not UTF-8."""
    wrong = np.zeros(len(strings), np.bool_)
    for row, text in enumerate(strings.to_pylist()):
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            wrong[row] = True
    return wrong


def read_plain(marks: Marks) -> tuple[PropertyColumns, Ints]:
    """The properties of rows that are not odd.

    @return: the columns, and the rows in which a name stands twice: those are wrong.
    @raise pa.ArrowInvalid: something is not UTF-8.
    """
    data, _, found, before = marks
    count = len(before) - 1
    entries = before >> 1
    cuts = np.empty(len(found) * 2 + 1, np.int64)
    cuts[0] = 0
    # Of each entry: name begins, name ends, value begins, value ends.
    cuts[1::2], cuts[2::2] = found, found + 1
    words = cut_and_take(data, cuts, 0, 4).cast(pa.string())
    names = words.dictionary_encode()
    values = cut_and_take(data, cuts, 2, 4).cast(pa.string())
    codes = names.indices.to_numpy(zero_copy_only=False)
    dictionary = names.dictionary.to_pylist()
    maps = pa.MapArray.from_arrays(
        pa.array(entries.astype(np.int32)), words, values
    ).cast(MAP)
    row = np.repeat(np.arange(count), np.diff(entries))
    single = {}
    for name in SINGLE:
        place = np.full(count, -1, np.int64)
        if name in dictionary:
            hits = np.flatnonzero(codes == dictionary.index(name))
            place[row[hits]] = hits
        single[name] = values.take(pa.array(place, mask=place < 0))
    twice = rows_with_twins(row, codes, len(dictionary), entries)
    return PropertyColumns(maps, single), twice


def rows_with_twins(row: Ints, codes: Ints, names: int, entries: Ints) -> Ints:
    """In which rows a name stands twice.

    @param row: the row of each entry.
    @param codes: the number of each entry's name.
    @param names: how many names there are.
    @param entries: how many entries there are before each row.
    """
    if not len(codes):
        return np.empty(0, np.int64)
    if names <= MAX_NAMES_FAST:
        filled = np.flatnonzero(np.diff(entries) > 0)
        bits = np.left_shift(np.int64(1), codes.astype(np.int64))
        starts = entries[filled]
        # Distinct bits add up to what they give when or-ed together.
        added = np.add.reduceat(bits, starts)
        twice: Ints = filled[added != np.bitwise_or.reduceat(bits, starts)]
        return twice
    pairs, times = np.unique(row * np.int64(names) + codes, return_counts=True)
    return np.unique(pairs[times > 1] // names)


def read_one_by_one(strings: Any) -> PropertyColumns:
    """The same by the codec, for any rows."""
    found = [properties.decode(text) for text in strings.to_pylist()]
    return PropertyColumns(
        pa.array([list(each.items()) for each in found], MAP),
        {
            name: pa.array([each.get(name) for each in found], pa.string())
            for name in SINGLE
        },
    )

# -*- test-case-name: tests.storetools.repair.test_lostnumbers -*-
"""Numbers in the properties of a record that its queue knows, too, put back there.

The length of the properties stays, as everything behind them in the log does. So a
number that is wrong is written over; one whose name was changed, over what is left of
both; and where nothing is left of it, it takes the place of what is no property.

The store sheet, sections 3 and 9.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rocketbroker.records.checking import numbers_are_numbers
from rocketbroker.records.properties import find


def with_right_numbers(
    record: bytes, start: int, topic: bytes, known: Mapping[str, int]
) -> bytes:
    """A record with the right numbers in place of what is none: the reference would end
    its log there.

    @param start: where the properties begin.
    @param known: which number each property has to be.
    """
    for name, number in known.items():
        found = record[start:]
        mark = f"{name}\x01".encode()
        value = find(found, name.encode())
        if value is None or numbers_are_numbers(topic, mark + value):
            continue
        right = b"%d" % number
        if len(value) > len(right):
            # As a rule it is the byte behind the number that has changed.
            right += b"\x02"
        at = start + found.rindex(mark + value) + len(mark)
        if len(right) <= len(value):
            record = record[:at] + right + record[at + len(right) :]
    return record


def with_all_numbers(
    record: bytes, start: int, known: Mapping[str, int]
) -> bytes | None:
    """A record with all properties that it has to have.

    @param start: where the properties begin.
    @param known: which number each of them is.
    @return: None if there is no room for them.
    """
    # As if something stood before the first one, and behind the last one.
    found = b"\x02" + record[start:]
    ends = b"" if found.endswith(b"\x02") else b"\x02"
    found += ends
    gone = []
    for name, number in known.items():
        if find(found, name.encode()) is None:
            right = f"\x02{name}\x01{number}\x02".encode()
            at = _likest(found, right)
            if at < 0:
                gone.append(right[1:-1])
            else:
                found = found[:at] + right + found[at + len(right) :]
    if gone:
        text = b"\x02".join(gone)
        for at, end in _rubbish(found):
            if end - at >= len(text):
                found = found[:at] + text.ljust(end - at, b"\x02") + found[end:]
                break
        else:
            return None
    return record[:start] + found[1 : len(found) - len(ends)]


def _likest(found: bytes, right: bytes) -> int:
    """Where that stands of which most is as it should be, two thirds at least; -1 if it
    stands nowhere."""
    best, least = -1, len(right) // 3 + 1
    for at in range(len(found) - len(right) + 1):
        pairs = zip(found[at : at + len(right)], right, strict=True)
        other = sum(is_ != to for is_, to in pairs)
        if other < least:
            best, least = at, other
    return best


def _rubbish(found: bytes) -> Iterator[tuple[int, int]]:
    """From where to where properties are none that a client can have written."""
    at = start = 1
    for each in found[1:-1].split(b"\x02"):
        end = at + len(each)
        if _is_property(each):
            if start < at - 1:
                yield start, at - 1
            start = end + 1
        at = end + 1
    if start < at - 1:
        yield start, at - 1


def _is_property(text: bytes) -> bool:
    """Whether that may be a name and a value."""
    try:
        name, _, value = text.decode("utf-8").partition("\x01")
    except UnicodeDecodeError:
        return False
    return bool(name and value) and b"\0" not in text

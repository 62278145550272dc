# -*- test-case-name: tests.filtering.test_sql -*-
"""How an SQL92 expression finds the properties that it names, in the stored bytes.

A short expression searches the bytes for each property that it names. A long one may
name thousands: then a table of all properties is made of each message, once.

Both give the value that L{rocketbroker.records.properties.decode} would: the last one
of a name, empty values aside; bytes that are not UTF-8 are replaced, so that two values
are the same bytes if they are the same text. Names of an expression are ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rocketbroker.filtering.sqlvalues import Value
from rocketbroker.records.properties import find


class Lookup(NamedTuple):
    """A way to find properties.

    @ivar prepare: called once with a properties string; what it returns is given to
        the functions that C{value_of} has made.
    @ivar value_of: makes a function that returns the value of a name; None if it is
        absent.
    """

    prepare: Callable[[bytes], Any]
    value_of: Callable[[bytes], Callable[[Any], Value]]


def _whole(value: bytes) -> bytes:
    """A value in UTF-8."""
    if value.isascii():
        return value
    return value.decode("utf-8", "replace").encode()


def _framed(properties: bytes) -> bytes:
    """With the end of an entry before the first one, and behind the last."""
    return b"\x02" + properties + b"\x02"


def _searched(name: bytes) -> Callable[[bytes], Value]:
    mark = b"\x02" + name + b"\x01"
    size = len(mark)

    def value(framed: bytes) -> Value:
        at = framed.rfind(mark)
        if at < 0:
            return None
        at += size
        found = framed[at : framed.find(b"\x02", at)]
        if found and found.isascii():
            return found
        known = find(framed, name)
        return None if known is None else _whole(known)

    return value


def _table(properties: bytes) -> dict[bytes, bytes]:
    """All values by their names."""
    entries = [entry.partition(b"\x01") for entry in properties.split(b"\x02")]
    return {name: value for name, _, value in entries if value}


def _looked_up(name: bytes) -> Callable[[dict[bytes, bytes]], Value]:
    def value(table: dict[bytes, bytes]) -> Value:
        found = table.get(name)
        return None if found is None else _whole(found)

    return value


SEARCH: Final = Lookup(_framed, _searched)
TABLE: Final = Lookup(_table, _looked_up)

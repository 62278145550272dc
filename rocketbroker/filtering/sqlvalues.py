# -*- test-case-name: tests.filtering.test_sqlvalues -*-
"""Values in SQL92 expressions, and how they compare.

A property is a string or absent (None); everything else comes from literals, so of each
operand its possible kind is known beforehand. Strings are bytes, in UTF-8, as they
stand in a message. A string beside a number is read as a number of I{that} type, as
Java's C{valueOf} does; one that cannot be makes the whole expression match nothing,
whatever stands beside it.

C{docs/facts/broker.md} 13.5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

#: None is the absent value.
Value: TypeAlias = bytes | bool | int | float | None


class Kind(Enum):
    """The kind of an operand."""

    PROPERTY = "a property"
    STRING = "a string"
    INTEGER = "a number"
    LONG = "a long number"
    DOUBLE = "a floating point number"
    BOOLEAN = "a condition"
    NOTHING = "nothing"


NUMBERS: Final = frozenset((Kind.INTEGER, Kind.LONG, Kind.DOUBLE))


class Incomparable(Exception):
    """Two values that have no order: the expression matches nothing."""


_WHOLE: Final = re.compile(r"[+-]?\d+")
_DOUBLE: Final = re.compile(
    r"([+-]?)(?:(NaN|Infinity)|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?"
    r"|(0[xX](?:[\da-fA-F]+\.?|[\da-fA-F]*\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?)",
    re.ASCII,
)

#: All that Java's trim takes away.
_BLANKS: Final = "".join(map(chr, range(33)))

#: More digits than any number of 64 bits has, leading zeros aside; Python is slow with
#: many.
_MAX_DIGITS: Final = 400

#: So many decimal digits surely fit into 32 bits.
_SAFE_DIGITS: Final = 9


def _whole(value: bytes, bits: int) -> int:
    text = value.decode("utf-8", "replace")
    if len(text) > _MAX_DIGITS or _WHOLE.fullmatch(text) is None:
        raise Incomparable(f"{text[:50]!r} is no number")
    number = int(text)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise Incomparable(f"{text} has more than {bits} bits")
    return number


def integer(value: bytes) -> int:
    """A number of 32 bits.

    @raise Incomparable: it is none.
    """
    if value.isdigit() and len(value) <= _SAFE_DIGITS:
        return int(value)
    return _whole(value, 32)


def long(value: bytes) -> int:
    """A number of 64 bits.

    @raise Incomparable: it is none.
    """
    if value.isdigit() and len(value) <= _SAFE_DIGITS:
        return int(value)
    return _whole(value, 64)


def double(value: bytes) -> float:
    """A floating point number.

    @raise Incomparable: it is none.
    """
    if value.isdigit():
        return float(value)
    text = value.decode("utf-8", "replace")
    match = _DOUBLE.fullmatch(text.strip(_BLANKS))
    if match is None:
        raise Incomparable(f"{text[:50]!r} is no number")
    sign, name, plain, hexadecimal = match.groups()
    if name:
        number = math.nan if name == "NaN" else math.inf
    elif plain:
        number = float(plain)
    else:
        try:
            number = float.fromhex(hexadecimal)
        except OverflowError:
            number = math.inf
    return -number if sign == "-" else number


READERS: Final[dict[Kind, Callable[[bytes], int | float]]] = {
    Kind.INTEGER: integer,
    Kind.LONG: long,
    Kind.DOUBLE: double,
}


def order(left: float, right: float) -> int:
    """-1, 0 or 1, as Java orders doubles: NaN is the largest and equals itself, and
    -0.0 is less than 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right and left != 0:
        return 0
    return _rank(left) - _rank(right)


def _rank(number: float) -> int:
    if math.isnan(number):
        return 2
    if number != 0:
        return 0
    return 1 if math.copysign(1, number) > 0 else 0


def compare(left: Value, right: Value, left_kind: Kind, right_kind: Kind) -> int:
    """-1, 0 or 1 for two values that are there; for conditions only 0 has a meaning.

    @raise Incomparable: they cannot be compared.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return _compare_conditions(left, right)
    if isinstance(left, bytes) and isinstance(right, bytes):
        return order(double(left), double(right))
    if isinstance(left, bytes):
        left = READERS[right_kind](left)
    elif isinstance(right, bytes):
        right = READERS[left_kind](right)
    assert not isinstance(left, bytes) and not isinstance(right, bytes)
    assert left is not None and right is not None
    if isinstance(left, float) or isinstance(right, float):
        return order(float(left), float(right))
    return (left > right) - (left < right)


def _compare_conditions(left: Value, right: Value) -> int:
    if isinstance(left, bool):
        if isinstance(right, bytes):
            raise Incomparable("a condition stands left of a string")
        return 0 if left is right else -1
    if isinstance(left, bytes):
        return 0 if (left.lower() == b"true") is right else -1
    return -1


def equal(left: Value, right: Value, left_kind: Kind, right_kind: Kind) -> bool | None:
    """Whether two values are equal; None if it cannot be told.

    @raise Incomparable: they cannot be compared.
    """
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left == right
    return compare(left, right, left_kind, right_kind) == 0

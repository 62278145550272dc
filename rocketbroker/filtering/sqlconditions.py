# -*- test-case-name: tests.filtering.test_sql -*-
"""The operands and conditions of SQL92 expressions, as closures.

Each takes the properties, as the expression's L{Lookup
<rocketbroker.filtering.sqlproperties.Lookup>} has made them, and returns a value; of
each it is known what kind of value.
A chain of AND, or of OR, is one closure with a loop; a comparison of a property with a
number or a string, which most are, is one closure, too. Source text that is compiled
would be faster by a tenth, and would have to be kept free of what users write.

C{docs/facts/broker.md} 13.4 and 13.5.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeAlias, final

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sqlvalues import (
    NUMBERS,
    READERS,
    Kind,
    Value,
    compare,
    equal,
)

Evaluate: TypeAlias = Callable[[Any], Value]

SEARCHES: Final[dict[str, Callable[[bytes, bytes], bool]]] = {
    "CONTAINS": lambda text, part: part in text,
    "STARTSWITH": bytes.startswith,
    "ENDSWITH": bytes.endswith,
}

#: Tests of two numbers, and which result is the wanted one. NaN is larger than any
#: other number, and so has to fail a test for less.
_ORDERS: Final[dict[str, tuple[Callable[[float, float], bool], bool]]] = {
    ">": (operator.le, False),
    ">=": (operator.lt, False),
    "<": (operator.lt, True),
    "<=": (operator.le, True),
}
_MIRRORED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


@final
class Operand:
    """A part of an expression.

    @ivar kind: the kind of its value, if it is not absent.
    @ivar value: that of a literal, or a number with a sign.
    @ivar is_literal: whether it is a literal.
    """

    __slots__ = ("evaluate", "is_literal", "kind", "value")

    def __init__(
        self,
        kind: Kind,
        evaluate: Evaluate,
        value: Value = None,
        is_literal: bool = False,
    ) -> None:
        self.kind = kind
        self.evaluate = evaluate
        self.value = value
        self.is_literal = is_literal


def literal(kind: Kind, value: Value) -> Operand:
    """A literal."""
    return Operand(kind, lambda properties: value, value, True)


def _condition(evaluate: Evaluate) -> Operand:
    return Operand(Kind.BOOLEAN, evaluate)


# Literals.


def encoded(text: str) -> bytes:
    """A string, as properties have it; a lone surrogate stands in none."""
    return text.encode("utf-8", "surrogatepass")


def decimal(text: str) -> Operand:
    """A whole number.

    @raise SubscriptionParseFailed: it is too large.
    """
    digits = text.rstrip("lL")
    if len(digits) > 19 or int(digits) >= 1 << 63:
        raise SubscriptionParseFailed(f"{text[:50]} has more than 64 bits")
    number = int(digits)
    return literal(Kind.INTEGER if number < 1 << 31 else Kind.LONG, number)


def floating(text: str) -> Operand:
    """A number with a point or an exponent.

    @raise SubscriptionParseFailed: it is too large, or too small.
    """
    number = float(text)
    if not 0 < number < float("inf"):
        # RocketMQ means a number too small for a double, and refuses 0.0, too.
        raise SubscriptionParseFailed(f"{text[:50]} is too small or too large")
    return literal(Kind.DOUBLE, number)


def minus(operand: Operand) -> Operand:
    """A minus before an operand."""
    if operand.kind not in NUMBERS:
        # None, whatever it is, unless it cannot be told.
        evaluate = operand.evaluate
        return Operand(Kind.NOTHING, lambda properties: (evaluate(properties), None)[1])
    value = operand.value
    assert isinstance(value, int | float)
    negative = -value
    # Not a literal any more, so checks of literals do not see it.
    return Operand(operand.kind, lambda properties: negative, negative)


# Conditions.


def as_condition(operand: Operand) -> Operand:
    """An operand where a condition has to stand.

    @raise SubscriptionParseFailed: it is none.
    """
    if operand.kind == Kind.BOOLEAN:
        return operand
    if operand.kind == Kind.NOTHING and operand.is_literal:
        return operand
    if operand.kind == Kind.PROPERTY:
        find = operand.evaluate
        return _condition(
            lambda properties: None if find(properties) is None else False
        )
    raise SubscriptionParseFailed(f"{operand.kind.value} is no condition")


def negation(operand: Operand) -> Operand:
    """NOT before a condition."""
    evaluate = operand.evaluate

    def opposite(properties: object) -> Value:
        value = evaluate(properties)
        return None if value is None else not value

    return _condition(opposite)


def all_of(parts: list[Evaluate]) -> Operand:
    """Conditions with AND between them."""

    def conjunction(properties: object) -> Value:
        result: bool | None = True
        for part in parts:
            value = part(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return _condition(conjunction)


def any_of(parts: list[Evaluate]) -> Operand:
    """Conditions with OR between them."""

    def disjunction(properties: object) -> Value:
        result: bool | None = False
        for part in parts:
            value = part(properties)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return _condition(disjunction)


def same(left: Operand, right: Operand) -> Operand:
    """The equality of two operands.

    @raise SubscriptionParseFailed: they cannot be equal.
    """
    for operand in (left, right):
        if operand.is_literal and operand.kind == Kind.NOTHING:
            raise SubscriptionParseFailed("nothing equals NULL; IS NULL is meant")
    are_literals = left.is_literal and right.is_literal
    if are_literals and left.kind == Kind.BOOLEAN and right.kind != Kind.BOOLEAN:
        raise SubscriptionParseFailed("TRUE and FALSE equal conditions only")
    first, second = left.evaluate, right.evaluate
    kinds = left.kind, right.kind
    if kinds == (Kind.PROPERTY, Kind.STRING):
        text = right.value

        def same_text(properties: object) -> Value:
            value = first(properties)
            return None if value is None else value == text

        return _condition(same_text)
    if left.kind == Kind.PROPERTY and right.kind in NUMBERS:
        read, number = READERS[right.kind], right.value

        def same_number(properties: Any) -> Value:
            value: Any = first(properties)
            return None if value is None else read(value) == number

        return _condition(same_number)
    return _condition(
        lambda properties: equal(first(properties), second(properties), *kinds)
    )


def is_absent(operand: Operand, negated: bool) -> Operand:
    """IS NULL, and IS NOT NULL."""
    evaluate = operand.evaluate
    return _condition(lambda properties: (evaluate(properties) is None) is not negated)


def ordered(left: Operand, word: str, right: Operand) -> Operand:
    """One operand less or greater than another.

    @param word: the symbol between them.
    @raise SubscriptionParseFailed: one of them has no order.
    """
    for operand in (left, right):
        no_order = operand.is_literal and operand.kind not in NUMBERS
        if no_order or operand.kind == Kind.BOOLEAN:
            raise SubscriptionParseFailed(f"{operand.kind.value} has no order")
    if left.kind == Kind.PROPERTY and right.kind in NUMBERS:
        return _beside_number(left, word, right)
    if left.kind in NUMBERS and right.kind == Kind.PROPERTY:
        return _beside_number(right, _MIRRORED[word], left)
    first, second = left.evaluate, right.evaluate
    kinds = left.kind, right.kind
    # Which results of a comparison it wants.
    wanted = {">": (1,), ">=": (0, 1), "<": (-1,), "<=": (-1, 0)}[word]

    def comparison(properties: object) -> Value:
        one = first(properties)
        if one is None or (other := second(properties)) is None:
            return None
        result = compare(one, other, *kinds)
        return (result > 0) - (result < 0) in wanted

    return _condition(comparison)


def _beside_number(operand: Operand, word: str, number: Operand) -> Operand:
    """A comparison of a property with a number, which is what most are."""
    find, read, bound = operand.evaluate, READERS[number.kind], number.value
    assert isinstance(bound, int | float)
    test, wanted = _ORDERS[word]

    def comparison(properties: Any) -> Value:
        text: Any = find(properties)
        return None if text is None else test(read(text), bound) is wanted

    return _condition(comparison)


def between(value: Operand, low: Operand, high: Operand, negated: bool) -> Operand:
    """BETWEEN, and NOT BETWEEN.

    @raise SubscriptionParseFailed: nothing is between these.
    """
    if low.is_literal and high.is_literal:
        least, most = low.value, high.value
        if least is None or most is None:
            raise SubscriptionParseFailed("nothing is between NULL and something")
        if low.kind in NUMBERS and high.kind in NUMBERS and not negated:
            assert isinstance(least, int | float) and isinstance(most, int | float)
            if most < least:
                raise SubscriptionParseFailed(f"nothing is between {least} and {most}")
    if negated:
        below, above = ordered(value, "<", low), ordered(value, ">", high)
        return any_of([below.evaluate, above.evaluate])
    from_low, to_high = ordered(value, ">=", low), ordered(value, "<=", high)
    return all_of([from_low.evaluate, to_high.evaluate])


def one_of(operand: Operand, texts: frozenset[bytes], negated: bool) -> Operand:
    """IN, and NOT IN.

    @raise SubscriptionParseFailed: the operand is no property.
    """
    if operand.kind != Kind.PROPERTY:
        raise SubscriptionParseFailed("only a property can be IN something")
    find = operand.evaluate

    def membership(properties: object) -> Value:
        value = find(properties)
        return None if value is None else (value in texts) is not negated

    return _condition(membership)


def search(
    operand: Operand, part: bytes, test: Callable[[bytes, bytes], bool], negated: bool
) -> Operand:
    """A search in a string.

    @param test: one of L{SEARCHES}.
    """
    evaluate = operand.evaluate

    def found(properties: object) -> Value:
        text = evaluate(properties)
        if not isinstance(text, bytes) or not part:
            return False
        return test(text, part) is not negated

    return _condition(found)

# -*- test-case-name: tests.filtering.test_sql -*-
"""SQL92 expressions: which messages they want, by their properties.

A Pratt parser: each infix word has a binding power, and an operand takes in what binds
stronger than the word before it::

    OR 1    AND 2    = <> IS 3    > >= < <= BETWEEN IN CONTAINS ... 4    + - NOT 5

It makes closures, one for each node, that take the properties and return a value; of
each it is known what kind of value. A chain of AND, or of OR, is one closure with a
loop. These oddities are RocketMQ's, and clients' expressions depend on them:

  - NOT binds stronger than any comparison: C{NOT a = 5} is C{(NOT a) = 5}.
  - Behind a whole expression anything is ignored: C{a = 007} is C{a = 0}. A C{NOT} is
    not, where a comparison could go on, and must be followed by C{IN} or the like.
  - Three values: a comparison with an absent property is neither true nor false, but
    C{=} with the absent one on its right is false.
  - A property where a condition is wanted is false if it is there.

C{docs/facts/broker.md} 13.4 and 13.5.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, final

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sqltokens import (
    DECIMAL,
    END,
    FLOAT,
    KEYWORD,
    NAME,
    STRING,
    SYMBOL,
    Token,
    Tokens,
)
from rocketbroker.filtering.sqlvalues import (
    NUMBERS,
    Incomparable,
    Kind,
    Value,
    compare,
    equal,
)

Properties: TypeAlias = Mapping[str, str]
Evaluate: TypeAlias = Callable[[Properties], Value]

#: An expression is compiled for each group that registers it, and evaluated for each
#: message: a longer one is no subscription but an attack.
MAX_CHARACTERS: Final = 64 << 10

#: How deep operands may stand in operands; each level costs some frames of the stack,
#: here and at each message.
MAX_DEPTH: Final = 60

#: How many compiled expressions, and errors, are kept, as RocketMQ does.
MAX_KEPT: Final = 100

_OR, _AND, _EQUALITY, _COMPARISON, _UNARY = range(1, 6)

_POWERS: Final[dict[str, int]] = {
    "OR": _OR,
    "AND": _AND,
    "=": _EQUALITY,
    "<>": _EQUALITY,
    "IS": _EQUALITY,
    **dict.fromkeys((">", ">=", "<", "<="), _COMPARISON),
    **dict.fromkeys(("NOT", "BETWEEN", "IN"), _COMPARISON),
    **dict.fromkeys(("CONTAINS", "STARTSWITH", "ENDSWITH"), _COMPARISON),
}
_NEGATABLE: Final = frozenset(("BETWEEN", "IN", "CONTAINS", "STARTSWITH", "ENDSWITH"))

_SEARCHES: Final[dict[str, Callable[[str, str], bool]]] = {
    "CONTAINS": lambda text, part: part in text,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


@final
class Operand:
    """A part of an expression.

    @ivar kind: the kind of its value, if it is not absent.
    @ivar value: that of a literal.
    @ivar is_literal: whether it is one.
    """

    __slots__ = ("evaluate", "is_literal", "kind", "name", "value")

    def __init__(
        self,
        kind: Kind,
        evaluate: Evaluate,
        value: Value = None,
        is_literal: bool = False,
        name: str = "",
    ) -> None:
        self.kind = kind
        self.evaluate = evaluate
        self.value = value
        self.is_literal = is_literal
        self.name = name


def _literal(kind: Kind, value: Value) -> Operand:
    return Operand(kind, lambda properties: value, value, True)


def _condition(evaluate: Evaluate) -> Operand:
    return Operand(Kind.BOOLEAN, evaluate)


@final
class SqlFilter:
    """A compiled expression.

    @ivar expression: as it was given.
    """

    __slots__ = ("_evaluate", "expression")

    def __init__(self, expression: str, evaluate: Evaluate) -> None:
        self.expression = expression
        self._evaluate = evaluate

    def __repr__(self) -> str:
        return f"<wants {self.expression}>"

    def __reduce__(self) -> tuple[object, ...]:
        return compiled, (self.expression,)

    def matches(self, properties: Properties) -> bool:
        """Whether a message with these properties is wanted."""
        try:
            return self._evaluate(properties) is True
        except Incomparable:
            return False


#: Compiled expressions, or their errors, the oldest first.
_kept: dict[str, SqlFilter | str] = {}


def compiled(expression: str) -> SqlFilter:
    """The filter of an expression; the last ones are kept.

    @raise SubscriptionParseFailed: it is no expression; the remark says why.
    """
    kept = _kept.pop(expression, None)
    if kept is None:
        try:
            kept = SqlFilter(expression, Parser(expression).expression())
        except SubscriptionParseFailed as error:
            kept = error.remark
        if len(_kept) >= MAX_KEPT:
            del _kept[next(iter(_kept))]
    _kept[expression] = kept
    if isinstance(kept, str):
        raise SubscriptionParseFailed(kept)
    return kept


@final
class Parser:
    """Parses one expression."""

    def __init__(self, text: str) -> None:
        """
        @raise SubscriptionParseFailed: it is too long.
        """
        if len(text) > MAX_CHARACTERS:
            raise SubscriptionParseFailed(
                f"the expression has {len(text)} characters, at most {MAX_CHARACTERS}"
            )
        self._tokens = Tokens(text)
        self._depth = 0

    def expression(self) -> Evaluate:
        """The whole expression.

        @raise SubscriptionParseFailed: it is none.
        """
        return _as_condition(self._operand(0)).evaluate

    def _operand(self, power: int) -> Operand:
        """An operand, with all that binds stronger than C{power}."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SubscriptionParseFailed(
                f"the expression is more than {MAX_DEPTH} levels deep"
            )
        left = self._prefix()
        links = 0
        loosest = _UNARY
        # What binds stronger than the word before it belongs to an operand; behind
        # IS NULL there is none, and it ends the expression.
        while power < (strength := self._strength()) <= loosest:
            loosest = strength
            if strength in (_AND, _OR):
                left = self._chain(left, strength)
                continue
            left = self._infix(left)
            links += 1
            if links > MAX_DEPTH:
                raise SubscriptionParseFailed(
                    f"more than {MAX_DEPTH} comparisons follow each other"
                )
        self._depth -= 1
        return left

    def _strength(self) -> int:
        """How strong the next word binds; 0 if it is not infix."""
        token = self._tokens.peek()
        if token.kind not in (KEYWORD, SYMBOL):
            return 0
        return _POWERS.get(token.text, 0)

    # Operands.

    def _prefix(self) -> Operand:
        token = self._tokens.take()
        text = token.text
        if token.kind == NAME:
            name = sys.intern(text)
            return Operand(
                Kind.PROPERTY, lambda properties: properties.get(name), name=name
            )
        if token.kind == STRING:
            return _literal(Kind.STRING, text)
        if token.kind == DECIMAL:
            return _decimal(text)
        if token.kind == FLOAT:
            return _float(text)
        if token.kind == KEYWORD:
            if text == "NOT":
                return _not(_as_condition(self._operand(_UNARY)))
            if text in ("TRUE", "FALSE"):
                return _literal(Kind.BOOLEAN, text == "TRUE")
            if text == "NULL":
                return _literal(Kind.NOTHING, None)
        elif text == "+":
            return self._operand(_UNARY)
        elif text == "-":
            return _negated(self._operand(_UNARY))
        elif text == "(":
            inner = self._operand(0)
            self._expect(")")
            return inner
        raise _unexpected(token)

    def _expect(self, text: str) -> None:
        token = self._tokens.take()
        if token.kind not in (SYMBOL, KEYWORD) or token.text != text:
            raise _unexpected(token, f"{text} is")

    def _string(self) -> str:
        token = self._tokens.take()
        if token.kind != STRING:
            raise _unexpected(token, "a string is")
        return token.text

    # What follows them.

    def _chain(self, first: Operand, strength: int) -> Operand:
        """Operands between which AND stands, or OR."""
        parts = [_as_condition(first).evaluate]
        while self._strength() == strength:
            self._tokens.take()
            parts.append(_as_condition(self._operand(strength)).evaluate)
        return _all_of(parts) if strength == _AND else _any_of(parts)

    def _infix(self, left: Operand) -> Operand:
        word = self._tokens.take().text
        if word in ("=", "<>"):
            condition = _equal(left, self._operand(_EQUALITY))
            return condition if word == "=" else _not(condition)
        if word == "IS":
            token = self._tokens.peek()
            negated = token.kind == KEYWORD and token.text == "NOT"
            if negated:
                self._tokens.take()
            self._expect("NULL")
            return _is_absent(left, negated)
        negated = word == "NOT"
        if negated:
            token = self._tokens.take()
            if token.kind != KEYWORD or token.text not in _NEGATABLE:
                raise _unexpected(token)
            word = token.text
        if word == "BETWEEN":
            low = self._operand(_COMPARISON)
            self._expect("AND")
            return _between(left, low, self._operand(_COMPARISON), negated)
        if word == "IN":
            return _in(left, self._list(), negated)
        if word in _SEARCHES:
            return _search(left, self._string(), _SEARCHES[word], negated)
        return _ordered(left, word, self._operand(_COMPARISON))

    def _list(self) -> frozenset[str]:
        self._expect("(")
        found = {self._string()}
        while self._tokens.peek().text == "," and self._tokens.peek().kind == SYMBOL:
            self._tokens.take()
            found.add(self._string())
        self._expect(")")
        return frozenset(found)


def _unexpected(token: Token, wanted: str = "") -> SubscriptionParseFailed:
    what = "the end" if token.kind == END else repr(token.text)
    return SubscriptionParseFailed(
        f"{what} at {token.at} is not expected"
        + (f"; {wanted} expected there" if wanted else "")
    )


# Literals.


def _decimal(text: str) -> Operand:
    digits = text.rstrip("lL")
    if len(digits) > 19 or int(digits) >= 1 << 63:
        raise SubscriptionParseFailed(f"{text[:50]} has more than 64 bits")
    number = int(digits)
    return _literal(Kind.INTEGER if number < 1 << 31 else Kind.LONG, number)


def _float(text: str) -> Operand:
    number = float(text)
    if not 0 < number < float("inf"):
        # RocketMQ means a number too small for a double, and refuses 0.0, too.
        raise SubscriptionParseFailed(f"{text[:50]} is too small or too large")
    return _literal(Kind.DOUBLE, number)


def _negated(operand: Operand) -> Operand:
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


def _as_condition(operand: Operand) -> Operand:
    """An operand where a condition has to stand.

    @raise SubscriptionParseFailed: it is none.
    """
    if operand.kind == Kind.BOOLEAN:
        return operand
    if operand.kind == Kind.NOTHING and operand.is_literal:
        return operand
    if operand.kind == Kind.PROPERTY:
        name = operand.name
        return _condition(lambda properties: False if name in properties else None)
    raise SubscriptionParseFailed(f"{operand.kind.value} is no condition")


def _not(operand: Operand) -> Operand:
    evaluate = operand.evaluate

    def negation(properties: Properties) -> Value:
        value = evaluate(properties)
        return None if value is None else not value

    return _condition(negation)


def _all_of(parts: list[Evaluate]) -> Operand:
    def conjunction(properties: Properties) -> Value:
        result: bool | None = True
        for part in parts:
            value = part(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return _condition(conjunction)


def _any_of(parts: list[Evaluate]) -> Operand:
    def disjunction(properties: Properties) -> Value:
        result: bool | None = False
        for part in parts:
            value = part(properties)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    return _condition(disjunction)


def _equal(left: Operand, right: Operand) -> Operand:
    for operand in (left, right):
        if operand.is_literal and operand.kind == Kind.NOTHING:
            raise SubscriptionParseFailed("nothing equals NULL; IS NULL is meant")
    are_literals = left.is_literal and right.is_literal
    if are_literals and left.kind == Kind.BOOLEAN and right.kind != Kind.BOOLEAN:
        raise SubscriptionParseFailed("TRUE and FALSE equal conditions only")
    first, second = left.evaluate, right.evaluate
    kinds = left.kind, right.kind
    if kinds == (Kind.PROPERTY, Kind.STRING):
        name, text = left.name, right.value

        def same(properties: Properties) -> Value:
            value = properties.get(name)
            return None if value is None else value == text

        return _condition(same)
    return _condition(
        lambda properties: equal(first(properties), second(properties), *kinds)
    )


def _is_absent(operand: Operand, negated: bool) -> Operand:
    evaluate = operand.evaluate
    return _condition(lambda properties: (evaluate(properties) is None) is not negated)


def _ordered(left: Operand, word: str, right: Operand) -> Operand:
    for operand in (left, right):
        no_order = operand.is_literal and operand.kind not in NUMBERS
        if no_order or operand.kind == Kind.BOOLEAN:
            raise SubscriptionParseFailed(f"{operand.kind.value} has no order")
    first, second = left.evaluate, right.evaluate
    kinds = left.kind, right.kind
    # Which results of a comparison it wants.
    wanted = {">": (1,), ">=": (0, 1), "<": (-1,), "<=": (-1, 0)}[word]

    def comparison(properties: Properties) -> Value:
        one = first(properties)
        if one is None or (other := second(properties)) is None:
            return None
        result = compare(one, other, *kinds)
        return (result > 0) - (result < 0) in wanted

    return _condition(comparison)


def _between(value: Operand, low: Operand, high: Operand, negated: bool) -> Operand:
    if low.is_literal and high.is_literal:
        least, most = low.value, high.value
        if least is None or most is None:
            raise SubscriptionParseFailed("nothing is between NULL and something")
        if low.kind in NUMBERS and high.kind in NUMBERS and not negated:
            assert isinstance(least, int | float) and isinstance(most, int | float)
            if most < least:
                raise SubscriptionParseFailed(f"nothing is between {least} and {most}")
    if negated:
        below, above = _ordered(value, "<", low), _ordered(value, ">", high)
        return _any_of([below.evaluate, above.evaluate])
    from_low, to_high = _ordered(value, ">=", low), _ordered(value, "<=", high)
    return _all_of([from_low.evaluate, to_high.evaluate])


def _in(operand: Operand, texts: frozenset[str], negated: bool) -> Operand:
    if operand.kind != Kind.PROPERTY:
        raise SubscriptionParseFailed("only a property can be IN something")
    name = operand.name

    def membership(properties: Properties) -> Value:
        value = properties.get(name)
        return None if value is None else (value in texts) is not negated

    return _condition(membership)


def _search(
    operand: Operand, part: str, test: Callable[[str, str], bool], negated: bool
) -> Operand:
    evaluate = operand.evaluate

    def search(properties: Properties) -> Value:
        value = evaluate(properties)
        if not isinstance(value, str) or not part:
            return False
        return test(value, part) is not negated

    return _condition(search)

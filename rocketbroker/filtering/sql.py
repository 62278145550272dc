# -*- test-case-name: tests.filtering.test_sql -*-
"""SQL92 expressions: which messages they want, by their properties.

A Pratt parser: each infix word has a binding power, and an operand takes in what binds
stronger than the word before it::

    OR 1    AND 2    = <> IS 3    > >= < <= BETWEEN IN CONTAINS ... 4    + - NOT 5

It makes one Python function of the expression, that looks for properties in the stored
bytes (L{rocketbroker.filtering.sqlconditions}). These oddities are RocketMQ's, and
clients' expressions depend on them:

  - NOT binds stronger than any comparison: C{NOT a = 5} is C{(NOT a) = 5}.
  - Behind a whole expression anything is ignored: C{a = 007} is C{a = 0}. A C{NOT} is
    not, where a comparison could go on, and must be followed by C{IN} or the like.
  - Three values: a comparison with an absent property is neither true nor false, but
    C{=} with the absent one on its right is false.
  - A property where a condition is wanted is false if it is there.

C{docs/facts/broker.md} 13.4 and 13.5.
"""

from __future__ import annotations

import re
from typing import Final, final

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sqlconditions import (
    MAX_DEPTH,
    SEARCHES,
    Operand,
    Source,
    encoded,
)
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
from rocketbroker.filtering.sqlvalues import Kind

#: An expression is compiled for each group that registers it, and evaluated for each
#: message: a longer one is no subscription but an attack.
MAX_CHARACTERS: Final = 64 << 10

#: How many compiled expressions, and errors, are kept, as RocketMQ does.
MAX_KEPT: Final = 100

#: Longer expressions may name so many properties that a table of them is cheaper.
LONG_CHARACTERS: Final = 128

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


@final
class SqlFilter:
    """A compiled expression.

    @ivar expression: as it was given.
    @ivar matches: given a properties string, whether the message is wanted.
    @ivar cost_ns: about how long that takes, in ns.
    @ivar hint: is found in each properties string that matches, and perhaps in others;
        None: there is no such pattern that is found quickly.
    """

    __slots__ = ("cost_ns", "expression", "hint", "matches")

    def __init__(self, expression: str) -> None:
        """
        @raise SubscriptionParseFailed: it is none.
        """
        parser = Parser(expression)
        self.expression = expression
        condition = parser.expression()
        self.matches = parser.source.compiled(condition)
        self.cost_ns = parser.source.cost_ns
        self.hint = re.compile(condition.hint) if condition.hint else None

    def __repr__(self) -> str:
        return f"<wants {self.expression}>"

    def __reduce__(self) -> tuple[object, ...]:
        return compiled, (self.expression,)


#: Compiled expressions, or their errors, the oldest first.
_kept: dict[str, SqlFilter | str] = {}


def compiled(expression: str) -> SqlFilter:
    """The filter of an expression; the last ones are kept.

    @raise SubscriptionParseFailed: it is no expression; the remark says why.
    """
    kept = _kept.pop(expression, None)
    if kept is None:
        try:
            kept = SqlFilter(expression)
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
    """Parses one expression.

    @ivar source: what is made of it.
    """

    def __init__(self, text: str) -> None:
        """
        @raise SubscriptionParseFailed: it is too long.
        """
        if len(text) > MAX_CHARACTERS:
            raise SubscriptionParseFailed(
                f"the expression has {len(text)} characters, at most {MAX_CHARACTERS}"
            )
        self.source = Source(len(text) > LONG_CHARACTERS)
        self._tokens = Tokens(text)
        self._depth = 0

    def expression(self) -> Operand:
        """The condition that the whole expression is.

        @raise SubscriptionParseFailed: it is none.
        """
        return self._condition(0)

    def _operand(self, power: int) -> Operand:
        """An operand, with all that binds stronger than C{power}."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SubscriptionParseFailed(
                f"the expression is more than {MAX_DEPTH} levels deep"
            )
        left = self._prefix()
        loosest = _UNARY
        # What binds stronger than the word before it belongs to an operand; behind
        # IS NULL there is none, and it ends the expression.
        while power < (strength := self._strength()) <= loosest:
            loosest = strength
            if strength in (_AND, _OR):
                left = self._chain(left, strength)
                continue
            left = self._infix(left)
        self._depth -= 1
        return left

    def _condition(self, power: int) -> Operand:
        """An operand that has to be a condition."""
        return self.source.as_condition(self._operand(power))

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
            return self.source.property(text.encode())
        if token.kind == STRING:
            return self.source.literal(Kind.STRING, encoded(text))
        if token.kind == DECIMAL:
            return self.source.decimal(text)
        if token.kind == FLOAT:
            return self.source.floating(text)
        if token.kind == KEYWORD:
            if text == "NOT":
                return self.source.negation(self._condition(_UNARY))
            if text in ("TRUE", "FALSE"):
                return self.source.literal(Kind.BOOLEAN, text == "TRUE")
            if text == "NULL":
                return self.source.literal(Kind.NOTHING, None)
        elif text == "+":
            return self._operand(_UNARY)
        elif text == "-":
            return self.source.minus(self._operand(_UNARY))
        elif text == "(":
            inner = self._operand(0)
            self._expect(")")
            return inner
        raise _unexpected(token)

    def _expect(self, text: str) -> None:
        token = self._tokens.take()
        if token.kind not in (SYMBOL, KEYWORD) or token.text != text:
            raise _unexpected(token, f"{text} is")

    def _string(self) -> bytes:
        token = self._tokens.take()
        if token.kind != STRING:
            raise _unexpected(token, "a string is")
        return encoded(token.text)

    # What follows them.

    def _chain(self, first: Operand, strength: int) -> Operand:
        """Operands between which AND stands, or OR."""
        parts = [self.source.as_condition(first)]
        while self._strength() == strength:
            self._tokens.take()
            parts.append(self._condition(strength))
        if strength == _AND:
            return self.source.all_of(parts)
        return self.source.any_of(parts)

    def _infix(self, left: Operand) -> Operand:
        word = self._tokens.take().text
        if word in ("=", "<>"):
            condition = self.source.same(left, self._operand(_EQUALITY))
            return condition if word == "=" else self.source.negation(condition)
        if word == "IS":
            token = self._tokens.peek()
            negated = token.kind == KEYWORD and token.text == "NOT"
            if negated:
                self._tokens.take()
            self._expect("NULL")
            return self.source.is_absent(left, negated)
        negated = word == "NOT"
        if negated:
            token = self._tokens.take()
            if token.kind != KEYWORD or token.text not in _NEGATABLE:
                raise _unexpected(token)
            word = token.text
        if word == "BETWEEN":
            low = self._operand(_COMPARISON)
            self._expect("AND")
            return self.source.between(left, low, self._operand(_COMPARISON), negated)
        if word == "IN":
            return self.source.one_of(left, self._list(), negated)
        if word in SEARCHES:
            return self.source.search(left, word, self._string(), negated)
        return self.source.ordered(left, word, self._operand(_COMPARISON))

    def _list(self) -> frozenset[bytes]:
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

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
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar, final

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sqlconditions import (
    MAX_DEPTH,
    SEARCHES,
    CompiledSource,
    Operand,
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

#: How many characters these have together: compiled, one takes 50 to 160 bytes.
MAX_KEPT_CHARACTERS: Final = 256 << 10

#: How many words are parsed in a step: some tenths of a millisecond.
STEP_WORDS: Final = 64

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


T = TypeVar("T")

#: What is done in steps, and what comes of it.
Steps: TypeAlias = Generator[None, None, T]


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

    def __init__(
        self,
        expression: str,
        matches: Callable[[bytes], bool],
        cost_ns: int,
        hint: re.Pattern[bytes] | None,
    ) -> None:
        self.expression = expression
        self.matches = matches
        self.cost_ns = cost_ns
        self.hint = hint

    def __repr__(self) -> str:
        return f"<wants {self.expression}>"

    def __reduce__(self) -> tuple[object, ...]:
        return compiled, (self.expression,)


@final
class _Kept:
    """The expressions that were compiled last, or their errors, the oldest first."""

    def __init__(self) -> None:
        self._outcomes: dict[str, SqlFilter | str] = {}
        self._size = 0

    def get(self, expression: str) -> SqlFilter | None:
        """That of an expression; None: it is not known."""
        outcome = self._outcomes.pop(expression, None)
        if outcome is None:
            return None
        self._outcomes[expression] = outcome
        if isinstance(outcome, str):
            raise SubscriptionParseFailed(outcome)
        return outcome

    def keep(self, expression: str, outcome: SqlFilter | str) -> None:
        """Keep it, and let the oldest go."""
        if self._outcomes.pop(expression, None) is None:
            self._size += len(expression)
        self._outcomes[expression] = outcome
        while len(self._outcomes) > MAX_KEPT or self._size > MAX_KEPT_CHARACTERS:
            oldest = next(iter(self._outcomes))
            del self._outcomes[oldest]
            self._size -= len(oldest)


_kept = _Kept()


def known(expression: str) -> SqlFilter | None:
    """The filter of an expression if it needs no work: it is one of the last.

    @raise SubscriptionParseFailed: it is no expression, as is known already.
    """
    check_length(expression)
    return _kept.get(expression)


def compiled(expression: str) -> SqlFilter:
    """The filter of an expression, made now; the last ones are kept.

    @raise SubscriptionParseFailed: it is no expression; the remark says why.
    """
    return _at_once(in_steps(expression))


def in_steps(expression: str) -> Steps[SqlFilter]:
    """The same, made in steps of some milliseconds at most.

    @raise SubscriptionParseFailed: as above.
    """
    found = known(expression)
    if found is not None:
        return found
    try:
        parser = Parser(expression)
        condition = yield from parser.steps()
        matches = yield from parser.source.compiled(condition)
    except SubscriptionParseFailed as error:
        _kept.keep(expression, error.remark)
        raise
    hint = re.compile(condition.hint) if condition.hint else None
    made = SqlFilter(expression, matches, parser.source.cost_ns, hint)
    _kept.keep(expression, made)
    return made


def _at_once(steps: Steps[T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def check_length(expression: str) -> None:
    """Refuse what is too long.

    @raise SubscriptionParseFailed: it is.
    """
    if len(expression) > MAX_CHARACTERS:
        raise SubscriptionParseFailed(
            f"the expression has {len(expression)} characters, at most {MAX_CHARACTERS}"
        )


@final
class Parser:
    """Parses one expression.

    @ivar source: what is made of it.
    """

    def __init__(self, text: str) -> None:
        """
        @raise SubscriptionParseFailed: it is too long.
        """
        check_length(text)
        self.source = CompiledSource(len(text) > LONG_CHARACTERS)
        self._tokens = Tokens(text)
        self._depth = 0
        self._step_end = STEP_WORDS

    def expression(self) -> Operand:
        """The condition that the whole expression is.

        @raise SubscriptionParseFailed: it is none.
        """
        return _at_once(self.steps())

    def steps(self) -> Steps[Operand]:
        """The same, parsed in steps."""
        return self._condition(0)

    def _is_step(self) -> bool:
        """Whether enough was parsed for one step."""
        if self._tokens.taken < self._step_end:
            return False
        self._step_end = self._tokens.taken + STEP_WORDS
        return True

    def _operand(self, power: int) -> Steps[Operand]:
        """An operand, with all that binds stronger than C{power}."""
        if self._is_step():
            yield
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SubscriptionParseFailed(
                f"the expression is more than {MAX_DEPTH} levels deep"
            )
        left = yield from self._prefix()
        loosest = _UNARY
        # What binds stronger than the word before it belongs to an operand; behind
        # IS NULL there is none, and it ends the expression.
        while power < (strength := self._strength()) <= loosest:
            loosest = strength
            if strength in (_AND, _OR):
                left = yield from self._chain(left, strength)
                continue
            left = yield from self._infix(left)
        self._depth -= 1
        return left

    def _condition(self, power: int) -> Steps[Operand]:
        """An operand that has to be a condition."""
        return self.source.as_condition((yield from self._operand(power)))

    def _strength(self) -> int:
        """How strong the next word binds; 0 if it is not infix."""
        token = self._tokens.peek()
        if token.kind not in (KEYWORD, SYMBOL):
            return 0
        return _POWERS.get(token.text, 0)

    # Operands.

    def _prefix(self) -> Steps[Operand]:
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
                return self.source.negation((yield from self._condition(_UNARY)))
            if text in ("TRUE", "FALSE"):
                return self.source.literal(Kind.BOOLEAN, text == "TRUE")
            if text == "NULL":
                return self.source.literal(Kind.NOTHING, None)
        elif text == "+":
            return (yield from self._operand(_UNARY))
        elif text == "-":
            return self.source.minus((yield from self._operand(_UNARY)))
        elif text == "(":
            inner = yield from self._operand(0)
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

    def _chain(self, first: Operand, strength: int) -> Steps[Operand]:
        """Operands between which AND stands, or OR."""
        parts = [self.source.as_condition(first)]
        while self._strength() == strength:
            self._tokens.take()
            parts.append((yield from self._condition(strength)))
        join = self.source.all_of if strength == _AND else self.source.any_of
        return self.source.chained(parts, join)

    def _infix(self, left: Operand) -> Steps[Operand]:
        word = self._tokens.take().text
        if word in ("=", "<>"):
            right = yield from self._operand(_EQUALITY)
            condition = self.source.same(left, right)
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
            low = yield from self._operand(_COMPARISON)
            self._expect("AND")
            high = yield from self._operand(_COMPARISON)
            return self.source.between(left, low, high, negated)
        if word == "IN":
            texts = yield from self._list()
            return self.source.one_of(left, texts, negated)
        if word in SEARCHES:
            return self.source.search(left, word, self._string(), negated)
        right = yield from self._operand(_COMPARISON)
        return self.source.ordered(left, word, right)

    def _list(self) -> Steps[frozenset[bytes]]:
        self._expect("(")
        found = {self._string()}
        while self._tokens.peek().text == "," and self._tokens.peek().kind == SYMBOL:
            self._tokens.take()
            found.add(self._string())
            if self._is_step():
                yield
        self._expect(")")
        return frozenset(found)


def _unexpected(token: Token, wanted: str = "") -> SubscriptionParseFailed:
    what = "the end" if token.kind == END else repr(token.text)
    return SubscriptionParseFailed(
        f"{what} at {token.at} is not expected"
        + (f"; {wanted} expected there" if wanted else "")
    )

# -*- test-case-name: tests.filtering.test_sqltokens -*-
"""The words of an SQL92 expression.

The kinds of words::

    ==========  =================================================================
    kind        form
    ==========  =================================================================
    keyword     NOT AND OR BETWEEN IN TRUE FALSE NULL IS CONTAINS STARTSWITH
                ENDSWITH, in any case
    symbol      = <> > >= < <= ( ) , + -
    decimal     0, or a digit other than 0 and more digits; then l or L may follow
    float       5.5  5.  .5  5E10, with a sign in the exponent
    string      in single quotes, a quote in it doubled
    name        a letter, _ or $, then those and digits
    end
    ==========  =================================================================

Blanks and comments (C{-- to the end of the line}, C{/* ... */}) separate. What the
parser does not ask for is not looked at: behind a whole expression anything may stand.

C{docs/facts/broker.md} 13.4.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, final

from rocketbroker.errors import SubscriptionParseFailed

KEYWORD: Final = "keyword"
SYMBOL: Final = "symbol"
DECIMAL: Final = "decimal"
FLOAT: Final = "float"
STRING: Final = "string"
NAME: Final = "name"
END: Final = "end"

KEYWORDS: Final = frozenset(
    ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS")
    + ("CONTAINS", "STARTSWITH", "ENDSWITH")
)

#: Each token is the longest that fits, and floats come before the decimals they begin
#: with.
_TOKEN: Final = re.compile(
    r"""
      (?P<skip>   [ \t\n\r\f]+ | --[^\n\r]*[\n\r] | /\*.*?\*/ )
    | (?P<float>  [0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?
                | \.[0-9]+(?:[eE][+-]?[0-9]+)?
                | [0-9]+[eE][+-]?[0-9]+ )
    | (?P<decimal> 0 | [1-9][0-9]*[lL]? )
    | (?P<string> '(?:''|[^'])*' )
    | (?P<name>   [A-Za-z_$][A-Za-z0-9_$]* )
    | (?P<symbol> <> | >= | <= | [=<>(),+-] )
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word.

    @ivar kind: one of the above.
    @ivar text: as it stands there, keywords in capitals, strings without quotes.
    @ivar at: where it begins.
    """

    kind: str
    text: str
    at: int


@final
class Tokens:
    """The words of an expression, read when they are asked for.

    @ivar taken: how many were taken.
    """

    def __init__(self, text: str) -> None:
        self.taken = 0
        self._text = text
        self._at = 0
        self._next: Token | None = None

    def peek(self) -> Token:
        """The next word; it stays there.

        @raise SubscriptionParseFailed: there is none that could be one.
        """
        if self._next is None:
            self._next = self._read()
        return self._next

    def take(self) -> Token:
        """The next word; it is gone then."""
        token = self.peek()
        self._next = None
        self.taken += 1
        return token

    def _read(self) -> Token:
        while self._at < len(self._text):
            at = self._at
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise SubscriptionParseFailed(
                    f"{self._text[at]!r} at {at} begins no word of an expression"
                )
            self._at = match.end()
            kind = match.lastgroup
            assert kind is not None
            word = match.group()
            if kind == "skip":
                continue
            if kind == NAME and word.upper() in KEYWORDS:
                return Token(KEYWORD, word.upper(), at)
            if kind == STRING:
                word = word[1:-1].replace("''", "'")
            return Token(kind, word, at)
        return Token(END, "", self._at)

"""Random SQL92 expressions, right and wrong, and properties to try them on.

Values are chosen where they have borders: numbers that just fit, or not, into 32 and 64
bits and into doubles, words that nearly are numbers, absent properties.
"""

from __future__ import annotations

from random import Random
from typing import Final

NAMES: Final = ("a", "b", "c", "A", "_x", "$y", "a1")

STRINGS: Final = (
    *("", " 5", "5 ", "it''s", "\u00e4", "\u0665"),
    *"a ab abc b 5 5.0 -5 +5 05 5e0 1e400 true TRUE false null %".split(),
    *"2147483648 9223372036854775808 NaN Infinity -Infinity 0x10 0x1p3".split(),
    *"5f 5d 5L 0 -0 -0.0 .5 5.".split(),
)

NUMBERS: Final = (
    *"0 1 5 10 5.0 5. .5 5e0 5E+2 5e-3 0.0 00 007 0L 5L 5l 0e0 0.0000001".split(),
    *"2147483647 2147483648 9223372036854775807 9223372036854775808".split(),
    *"9223372036854775807L 100000000000000000000.0 0.1 1. 0x10 1_000 5d 5f".split(),
    *"9007199254740993 9007199254740993.0".split(),
    *"1e308 1e309 4.9e-324 1e-324 2.2e-308".split(),
)

#: No property is empty.
VALUES: Final = (
    *filter(None, STRINGS),
    *("it's", " ", "\t5\n"),
    *"10 1 abcabc B 1.0 5.5 6 100".split(),
)

WORDS: Final = (
    *"= <> > >= < <= AND OR NOT BETWEEN IN IS NULL TRUE FALSE".split(),
    *"CONTAINS STARTSWITH ENDSWITH ( ) , + - == != ! && || LIKE".split(),
    *("--c\n", "/* c */", "*", "/", "'", '"', ";", "@", "\u00e4", "--", "/*"),
)

SPACES: Final = ("\t", "\n", "\r\n", "\f", "\v", "\u00a0", "/**/", " -- x\n")
ORDERS: Final = ("=", "<>", ">", ">=", "<", "<=")
SEARCHES: Final = ("CONTAINS", "STARTSWITH", "ENDSWITH")


class Expressions:
    """Makes them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self) -> str:
        """An expression: mostly one that makes sense, or nearly."""
        chance = self._random.random()
        if chance < 0.06:
            return " ".join(self._word() for _ in range(self._random.randrange(1, 9)))
        words = self._condition(self._random.randrange(4)).split(" ")
        if chance < 0.22:
            for _ in range(self._random.randrange(1, 3)):
                self._spoil(words)
        text = " ".join(words)
        return text if chance < 0.9 else self._disguised(text)

    def properties(self) -> dict[str, str]:
        """Properties of a message, some of them absent."""
        random = self._random
        return {name: random.choice(VALUES) for name in NAMES if random.random() < 0.6}

    def _word(self) -> str:
        random = self._random
        kind = random.randrange(4)
        if kind == 0:
            return random.choice(NAMES)
        if kind == 1:
            return random.choice(NUMBERS)
        return self._string() if kind == 2 else random.choice(WORDS)

    def _string(self) -> str:
        return f"'{self._random.choice(STRINGS)}'"

    def _spoil(self, words: list[str]) -> None:
        random = self._random
        at = random.randrange(len(words))
        how = random.randrange(4)
        if how == 0 and len(words) > 1:
            del words[at]
        elif how == 1:
            words.insert(at, self._word())
        elif how == 2:
            words[at] = self._word()
        else:
            words[at] = words[at] * 2

    def _disguised(self, text: str) -> str:
        random = self._random
        how = random.randrange(4)
        if how == 0:
            return text.lower()
        if how == 1:
            return text.replace(" ", "")
        if how == 2:
            return text.replace(" ", random.choice(SPACES))
        return text.swapcase()

    def _condition(self, depth: int) -> str:
        random = self._random
        if depth <= 0 or random.random() < 0.35:
            return self._comparison(depth)
        kind = random.randrange(6)
        inner = self._condition(depth - 1)
        if kind == 0:
            return f"( {inner} )"
        if kind == 1:
            return f"NOT {inner}" if random.random() < 0.4 else f"NOT ( {inner} )"
        return f"{inner} {random.choice(('AND', 'OR'))} {self._condition(depth - 1)}"

    def _comparison(self, depth: int) -> str:
        random = self._random
        left, word = self._operand(depth), random.randrange(9)
        negated = random.choice(("", "NOT "))
        if word == 0:
            return f"{left} IS {negated}NULL"
        if word == 1:
            listed = " , ".join(self._string() for _ in range(random.randrange(1, 4)))
            return f"{left} {negated}IN ( {listed} )"
        if word == 2:
            low, high = self._operand(depth), self._operand(depth)
            return f"{left} {negated}BETWEEN {low} AND {high}"
        if word == 3:
            search = random.choice(SEARCHES)
            return f"{left} {negated}{search} {self._string()}"
        if word == 4:
            return left
        return f"{left} {random.choice(ORDERS)} {self._operand(depth)}"

    def _operand(self, depth: int) -> str:
        random = self._random
        chance = random.random()
        if chance < 0.4:
            return random.choice(NAMES)
        if chance < 0.6:
            return random.choice(NUMBERS)
        if chance < 0.75:
            return self._string()
        if chance < 0.85:
            return random.choice(("TRUE", "FALSE", "NULL"))
        if chance < 0.93:
            return f"{random.choice('+-')} {self._operand(depth)}"
        return f"( {self._condition(depth - 2)} )"

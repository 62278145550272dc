# -*- test-case-name: tests.filtering.test_sql -*-
"""The operands and conditions of SQL92 expressions, as source text of one function.

Closures, one for each node, would take twice as long for each message. The function
looks for properties in the stored bytes, each where it is needed, once for each
message. A long expression may name thousands; then it makes a table of all properties
first.

B{No text of a user becomes code.} The source is made of the templates below, and of
names that are counted (C{c0}, C{c1}...). Names of properties, strings and numbers are
constants behind such names, in the globals of the function, which has no builtins but
those below. Expressions that differ in them alone have the same source.

Python compiles one source at a time, and nothing else runs meanwhile: 40 KB take about
20 ms. So the operands of a long chain of AND or OR become functions of their own, about
L{PIECE} characters each, which are compiled one by one.

Values are as the table of L{rocketbroker.records.properties.decode} has them: the last
one of a name, empty values aside. They are compared as bytes, which is the same as to
compare text, but for bytes that are not UTF-8: where these may matter, C{whole} first
replaces them, as Java does.

C{docs/facts/broker.md} 13.4 and 13.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Sequence
from typing import Any, Final, cast, final

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sqlhints import number_hint, text_hint
from rocketbroker.filtering.sqlvalues import (
    NUMBERS,
    READERS,
    Incomparable,
    Kind,
    Value,
    compare,
    equal,
)
from rocketbroker.records.properties import find

#: How deep conditions may stand in conditions: the compiler of Python has a limit.
MAX_DEPTH: Final = 60

#: More operands would take more than a third of a second of the processor to compile,
#: and several megabytes. A list is not many operands.
MAX_OPERANDS: Final = 4000

#: How many characters of source are compiled in a step, about: they take two
#: milliseconds.
PIECE: Final = 4096

_FUNCTION: Final = """
def matches(properties):
    p = {properties}
    {unread} = False
    try:
        return {condition} is True
    except Incomparable:
        return False
"""

_PIECE: Final = """
def {name}(p):
    return {condition}
"""
_CALLED: Final = re.compile(r"\b[fl][0-9]+(?=\(p\))")

#: The properties, so that the end of an entry is before each.
_FRAMED: Final = "b'\\2' + properties"

#: The search for a property in these; and of one that is named several times. What is
#: behind C{mark} is all of C{p} if it is not there.
_SEARCHED: Final = (
    "(None if (r := p.rpartition({mark})[2]) is p"
    " else r.partition(b'\\2')[0] or find(p, {name}))"
)
_KEPT: Final = "({value} if {value} is not False else ({value} := {source}))"

#: A number that a property is, and whether it is less than another, and so on: NaN is
#: larger than any other number, so it has to fail a test for less.
_NUMBER: Final = "(int(t) if t.isdigit() and len(t) < 10 else {read}(t))"
_ORDERS: Final = {
    ">": "not {one} <= {other}",
    ">=": "not {one} < {other}",
    "<": "{one} < {other}",
    "<=": "{one} <= {other}",
}
_MIRRORED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">="}

SEARCHES: Final = {
    "CONTAINS": "{part} in t",
    "STARTSWITH": "t.startswith({part})",
    "ENDSWITH": "t.endswith({part})",
}

#: About how long they take, in ns: the call of the function, a node, a property, and
#: two operands whose values may be anything.
CALL_NS: Final = 150
NODE_NS: Final = 50
PROPERTY_NS: Final = 150
COMPARE_NS: Final = 2000


def table(properties: bytes) -> dict[bytes, bytes]:
    """All values by their names."""
    entries = [entry.partition(b"\x01") for entry in properties.split(b"\x02")]
    return {name: value for name, _, value in entries if value}


def whole(value: Value) -> Value:
    """A value in UTF-8."""
    if not isinstance(value, bytes) or value.isascii():
        return value
    return value.decode("utf-8", "replace").encode()


def encoded(text: str) -> bytes:
    """A string, as properties have it; a lone surrogate stands in none."""
    return text.encode("utf-8", "surrogatepass")


#: All that the source may name, besides its constants: the builtins of the function.
BUILTINS: Final[dict[str, object]] = {
    "Incomparable": Incomparable,
    "bytes": bytes,
    "compare": compare,
    "equal": equal,
    "find": find,
    "int": int,
    "len": len,
    "table": table,
    "type": type,
    "whole": whole,
    **{kind.name: kind for kind in Kind},
    **{read.__name__: read for read in READERS.values()},
}


@final
class Operand:
    """A part of an expression.

    @ivar kind: the kind of its value, if it is not absent.
    @ivar source: gives its value; in parentheses, or one word.
    @ivar last: for a condition: the same where nothing follows, and false and absent
        are the same.
    @ivar depth: how many operands stand in each other in it.
    @ivar value: that of a literal, or a number with a sign.
    @ivar is_literal: whether it is a literal.
    @ivar name: that of a property.
    @ivar hint: for a condition: see L{rocketbroker.filtering.sqlhints}; or empty.
    """

    __slots__ = (
        "depth",
        "hint",
        "is_literal",
        "kind",
        "last",
        "name",
        "source",
        "value",
    )

    def __init__(
        self,
        kind: Kind,
        source: str,
        parts: Sequence[Operand] = (),
        value: Value = None,
        is_literal: bool = False,
    ) -> None:
        """
        @param parts: the operands in it.
        @raise SubscriptionParseFailed: it is too deep.
        """
        self.kind = kind
        self.source = source
        self.last = source
        self.depth: int = max((part.depth + 1 for part in parts), default=0)
        self.value = value
        self.is_literal = is_literal
        self.name = b""
        self.hint = b""
        if self.depth > MAX_DEPTH:
            raise SubscriptionParseFailed(
                f"the expression is more than {MAX_DEPTH} levels deep"
            )


@final
class CompiledSource:
    """The source of one expression, and its constants.

    Its methods give operands, made of other operands.

    @ivar cost_ns: about how long the function takes for a message.
    """

    def __init__(self, has_table: bool) -> None:
        """
        @param has_table: whether properties come from a table.
        """
        self.cost_ns = CALL_NS
        self._has_table = has_table
        self._constants: dict[str, object] = {}
        #: The sources of the functions that pieces of it are, by their names.
        self._pieces: dict[str, str] = {}
        #: How often each property is named.
        self._properties: dict[bytes, int] = {}
        self._variables = 0
        self._operands = 0

    def compiled(
        self, condition: Operand
    ) -> Generator[None, None, Callable[[bytes], bool]]:
        """Compile the function, in steps: given a properties string, whether the
        condition is true."""
        texts = self.texts(condition)
        namespace = {**self._constants, "__builtins__": BUILTINS}
        for text in texts:
            yield
            exec(compile(text, "<SQL92>", "exec"), namespace)
        matches: Any = namespace.pop("matches")
        return cast(Callable[[bytes], bool], matches)

    def texts(self, condition: Operand) -> list[str]:
        """The sources that are compiled one by one: of that function, and of the pieces
        that are called from there."""
        found = [self.text(condition)]
        called: set[str] = set()
        for text in found:
            for name in sorted(set(_CALLED.findall(text)) - called):
                called.add(name)
                piece = self._pieces[name]
                found.append(_PIECE.format(name=name, condition=piece))
        return found

    def text(self, condition: Operand) -> str:
        """The source of that function."""
        source = condition.last
        kept = ["t"]
        for number, (name, count) in enumerate(self._properties.items()):
            found = self._search(name)
            if count > 1:
                kept.append(f"v{number}")
                found = _KEPT.format(value=kept[-1], source=found)
            source = source.replace(f"<{number}>", found)
        return _FUNCTION.format(
            properties="table(properties)" if self._has_table else _FRAMED,
            unread=" = ".join(kept),
            condition=source,
        )

    def _search(self, name: bytes) -> str:
        mark = self._constant(b"\x02" + name + b"\x01")
        return _SEARCHED.format(mark=mark, name=self._constant(name))

    def _constant(self, value: object) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _variable(self) -> str:
        self._variables += 1
        return f"u{self._variables}"

    def _condition(self, source: str, *parts: Operand) -> Operand:
        self.cost_ns += NODE_NS
        return Operand(Kind.BOOLEAN, source, parts)

    # Operands.

    def _count(self) -> None:
        self._operands += 1
        if self._operands > MAX_OPERANDS:
            raise SubscriptionParseFailed(
                f"the expression has more than {MAX_OPERANDS} operands"
            )

    def property(self, name: bytes) -> Operand:
        """A property. Where the bytes are searched, how is not known before the end.

        @raise SubscriptionParseFailed: there are too many operands.
        """
        self._count()
        self.cost_ns += PROPERTY_NS
        if self._has_table:
            source = f"p.get({self._constant(name)})"
        else:
            self._properties[name] = self._properties.get(name, 0) + 1
            source = f"<{list(self._properties).index(name)}>"
        operand = Operand(Kind.PROPERTY, source)
        operand.name = name
        return operand

    def literal(self, kind: Kind, value: Value) -> Operand:
        """A literal.

        @raise SubscriptionParseFailed: there are too many operands.
        """
        self._count()
        return Operand(kind, self._constant(value), (), value, True)

    def decimal(self, text: str) -> Operand:
        """A whole number.

        @raise SubscriptionParseFailed: it is too large, or one too many.
        """
        digits = text.rstrip("lL")
        if len(digits) > 19 or int(digits) >= 1 << 63:
            raise SubscriptionParseFailed(f"{text[:50]} has more than 64 bits")
        number = int(digits)
        return self.literal(Kind.INTEGER if number < 1 << 31 else Kind.LONG, number)

    def floating(self, text: str) -> Operand:
        """A number with a point or an exponent.

        @raise SubscriptionParseFailed: it is too large or small, or one too many.
        """
        number = float(text)
        if not 0 < number < float("inf"):
            # RocketMQ means a number too small for a double, and refuses 0.0, too.
            raise SubscriptionParseFailed(f"{text[:50]} is too small or too large")
        return self.literal(Kind.DOUBLE, number)

    def minus(self, operand: Operand) -> Operand:
        """A minus before an operand."""
        if operand.kind not in NUMBERS:
            # None, whatever it is, unless it cannot be told.
            return Operand(Kind.NOTHING, f"({operand.source}, None)[1]", [operand])
        assert isinstance(operand.value, int | float)
        # Not a literal any more, so checks of literals do not see it.
        number = -operand.value
        return Operand(operand.kind, self._constant(number), (), number)

    # Conditions.

    def as_condition(self, operand: Operand) -> Operand:
        """An operand where a condition has to stand.

        @raise SubscriptionParseFailed: it is none.
        """
        if operand.kind == Kind.BOOLEAN:
            return operand
        if operand.kind == Kind.NOTHING and operand.is_literal:
            return operand
        if operand.kind == Kind.PROPERTY:
            source = f"(None if {operand.source} is None else False)"
            return self._condition(source, operand)
        raise SubscriptionParseFailed(f"{operand.kind.value} is no condition")

    def negation(self, operand: Operand) -> Operand:
        """NOT before a condition."""
        source = f"(None if (t := {operand.source}) is None else not t)"
        return self._condition(source, operand)

    def chained(
        self, parts: Sequence[Operand], join: Callable[[Sequence[Operand]], Operand]
    ) -> Operand:
        """Conditions with AND between them, or OR.

        Three values, and the order in which they are looked at, are the same whether
        some neighbours are joined first.

        @param join: L{all_of} or L{any_of}.
        """
        if not self._has_table:
            return join(parts)
        groups: list[Operand] = []
        group: list[Operand] = []
        size = 0
        for part in parts:
            group.append(part)
            size += len(part.source)
            if size >= PIECE:
                groups.append(self._piece(join(group) if group[1:] else part))
                group, size = [], 0
        return join(groups + group) if (groups + group)[1:] else groups[0]

    def _piece(self, condition: Operand) -> Operand:
        """A condition as a function, of its properties C{p}."""
        number = len(self._pieces) // 2
        called, last = f"f{number}", f"l{number}"
        self._pieces[called], self._pieces[last] = condition.source, condition.last
        piece = Operand(Kind.BOOLEAN, f"{called}(p)")
        piece.last = f"{last}(p)"
        piece.depth = max(0, condition.depth - 1)
        piece.hint = condition.hint
        return piece

    def all_of(self, parts: Sequence[Operand]) -> Operand:
        """Conditions with AND between them."""
        values = [self._variable() for _ in parts]
        tests = [
            f"({value} := {part.source}) is not False"
            for value, part in zip(values, parts, strict=True)
        ]
        absent = " or ".join(f"{value} is None" for value in values)
        last = f"(None if {absent} else True)"
        result = self._condition(f"({' and '.join([*tests, last])})", *parts)
        # One that is absent decides, too: what follows could only make it false.
        result.last = f"({' and '.join(part.last for part in parts)})"
        result.hint = next((part.hint for part in parts if part.hint), b"")
        return result

    def any_of(self, parts: Sequence[Operand]) -> Operand:
        """Conditions with OR between them."""
        values = [self._variable() for _ in parts]
        tests = [
            f"({value} := {part.source})"
            for value, part in zip(values, parts, strict=True)
        ]
        absent = " or ".join(f"{value} is None" for value in values)
        last = f"(None if {absent} else False)"
        result = self._condition(f"({' or '.join([*tests, last])})", *parts)
        sources = [part.source for part in parts[:-1]]
        result.last = f"({' or '.join([*sources, parts[-1].last])})"
        return result

    def same(self, left: Operand, right: Operand) -> Operand:
        """The equality of two operands.

        @raise SubscriptionParseFailed: they cannot be equal.
        """
        for operand in (left, right):
            if operand.is_literal and operand.kind == Kind.NOTHING:
                raise SubscriptionParseFailed("nothing equals NULL; IS NULL is meant")
        are_literals = left.is_literal and right.is_literal
        if are_literals and left.kind == Kind.BOOLEAN and right.kind != Kind.BOOLEAN:
            raise SubscriptionParseFailed("TRUE and FALSE equal conditions only")
        if left.kind == Kind.PROPERTY and right.kind == Kind.STRING:
            found = _text(left, right.value)
            source = f"(None if (t := {found}) is None else t == {right.source})"
        elif left.kind == Kind.PROPERTY and right.kind in NUMBERS:
            number = _NUMBER.format(read=READERS[right.kind].__name__)
            source = f"(None if (t := {left.source}) is None"
            source += f" else {number} == {right.source})"
        else:
            self.cost_ns += COMPARE_NS
            kinds = f"{left.kind.name}, {right.kind.name}"
            source = f"equal({_text(left)}, {_text(right)}, {kinds})"
        result = self._condition(source, left, right)
        if left.kind == Kind.PROPERTY and isinstance(right.value, bytes):
            result.hint = text_hint(left.name, [right.value])
        elif left.kind == Kind.PROPERTY and type(right.value) is int:
            result.hint = number_hint(left.name, right.value)
        return result

    def is_absent(self, operand: Operand, negated: bool) -> Operand:
        """IS NULL, and IS NOT NULL."""
        word = "is not" if negated else "is"
        return self._condition(f"({operand.source} {word} None)", operand)

    def ordered(self, left: Operand, word: str, right: Operand) -> Operand:
        """One operand less or greater than another.

        @param word: the symbol between them.
        @raise SubscriptionParseFailed: one of them has no order.
        """
        for operand in (left, right):
            no_order = operand.is_literal and operand.kind not in NUMBERS
            if no_order or operand.kind == Kind.BOOLEAN:
                raise SubscriptionParseFailed(f"{operand.kind.value} has no order")
        if left.kind in NUMBERS and right.kind == Kind.PROPERTY:
            left, word, right = right, _MIRRORED[word], left
        if left.kind == Kind.PROPERTY and right.kind in NUMBERS:
            number = _NUMBER.format(read=READERS[right.kind].__name__)
            test = _ORDERS[word].format(one=number, other=right.source)
            source = f"(None if (t := {left.source}) is None else {test})"
            return self._condition(source, left, right)
        self.cost_ns += COMPARE_NS
        first, second = self._variable(), self._variable()
        kinds = f"{left.kind.name}, {right.kind.name}"
        source = (
            f"(None if ({first} := {_text(left)}) is None"
            f" or ({second} := {_text(right)}) is None"
            f" else compare({first}, {second}, {kinds}) {word} 0)"
        )
        return self._condition(source, left, right)

    def between(
        self, value: Operand, low: Operand, high: Operand, negated: bool
    ) -> Operand:
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
                    raise SubscriptionParseFailed(
                        f"nothing is between {least} and {most}"
                    )
        if value.kind == Kind.NOTHING and not value.is_literal:
            # Its source may be long: it is not to stand there twice.
            variable = self._variable()
            again = Operand(Kind.NOTHING, variable)
            value = Operand(Kind.NOTHING, f"({variable} := {value.source})", [value])
        else:
            again = value
        words = ("<", ">") if negated else (">=", "<=")
        parts = self.ordered(value, words[0], low), self.ordered(again, words[1], high)
        return self.any_of(parts) if negated else self.all_of(parts)

    def one_of(
        self, operand: Operand, texts: Collection[bytes], negated: bool
    ) -> Operand:
        """IN, and NOT IN.

        @raise SubscriptionParseFailed: the operand is no property.
        """
        if operand.kind != Kind.PROPERTY:
            raise SubscriptionParseFailed("only a property can be IN something")
        found, some = _text(operand, *texts), self._constant(frozenset(texts))
        word = "not in" if negated else "in"
        source = f"(None if (t := {found}) is None else t {word} {some})"
        result = self._condition(source, operand)
        if not negated:
            result.hint = text_hint(operand.name, texts)
        return result

    def search(
        self, operand: Operand, word: str, part: bytes, negated: bool
    ) -> Operand:
        """A search in a string.

        @param word: one of L{SEARCHES}.
        """
        if not part:
            return self._condition(f"({operand.source}, False)[1]", operand)
        test = SEARCHES[word].format(part=self._constant(part))
        if negated:
            test = f"not {test}"
        source = f"(type(t := {_text(operand, part)}) is bytes and {test})"
        return self._condition(source, operand)


def _text(operand: Operand, *beside: Value) -> str:
    """The source of an operand that is compared as text.

    @param beside: all with which it is compared, if that is known: text of ASCII does
        not equal what is replaced.
    """
    is_safe = beside and all(
        isinstance(each, bytes) and each.isascii() for each in beside
    )
    if operand.kind != Kind.PROPERTY or is_safe:
        return operand.source
    return f"whole({operand.source})"

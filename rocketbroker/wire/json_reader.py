# -*- test-case-name: tests.wire.test_json_reader -*-
"""The dialect of JSON that RocketMQ's JSON library takes, as Python values.

Bodies and files of RocketMQ are not JSON: integer keys stand without quotes, and
keys may be objects (C{docs/facts/remoting.md} 16). On input its library takes more:
single quotes, bare identifiers as keys, comments, commas before a closing bracket.
L{loads} takes all of these; strict JSON takes the short way through msgspec.
The other direction is L{rocketbroker.wire.json_writer}.

An integer key becomes an C{int} when it stood without quotes and stays a C{str} when
it had them; bodies take both. An object key becomes an L{ObjectKey}.

The library abbreviates a second occurrence of the same object by a reference,
C{{"$ref":"$.topicConfigTable.A.attributes"}}. Such a reference is resolved if its
target holds no reference itself, and is an empty object otherwise: the real ones point
to flat maps, and so no input can make a value that contains itself, or one that is much
larger than its text.

A peer chooses the length of its text, and all others wait while it is read. So there
are two ways to read: L{loads} reads all of it at once, with a limit for what comes from
peers; L{loads_in_steps} reads a text of any length, each step of it a short one. The
steps are those of a reader in Python, which lets the C reader of the standard library
read each object and array that fits in a window of the text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final, NoReturn, TypeAlias, final

import msgspec

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.steps import Steps, finished

#: How deep values nest at most. Bodies of the protocol nest no deeper than ten; what
#: they hold is walked by recursion, and so a peer must not choose its depth.
MAX_DEPTH: Final = 100

#: How many characters references may stand for, with 16 for each value: as many as the
#: longest frame has. Without a limit a short text could mean gigabytes.
MAX_EXPANSION: Final = 16 * 1024 * 1024

#: How much of L{MAX_EXPANSION} one reference may stand for: to weigh more takes longer
#: than one step may. The real ones point to the attributes of a topic.
MAX_TARGET: Final = 64 * 1024

#: How many values a text that is read in steps may have, about: its commas and opening
#: brackets. Each takes up to a hundred bytes, and all are freed at once in the end, in
#: about ten milliseconds. It is enough for 50,000 topics with their attributes.
MAX_VALUES: Final = 1 << 19

#: How many characters a string may have, and other words, where the C reader does not
#: take them: one is read in one step. It is twice the longest SQL92 expression.
MAX_STRING: Final = 128 * 1024

#: The same for the blanks and comments between two words.
MAX_BLANKS: Final = 64 * 1024

#: How long a table of numbers may be that is read at once; longer ones are read number
#: by number.
MAX_NUMBERS: Final = 32 * 1024

#: Python converts no more digits.
MAX_DIGITS: Final = 4300

#: How long an object may be that is a key: it is sorted at once.
MAX_KEY: Final = 8 * 1024

#: What is read in a step: so many values one by one, or one window by the C reader.
STEP_VALUES: Final = 64
WINDOW: Final = 8 * 1024

_LONG: Final = 1 << 63

#: What nests; as a tuple, because C{dict | list} is made anew at each use.
_NESTING: Final = (dict, list)

_STRICT: Final = msgspec.json.Decoder()

# Possessive (*+), or a matcher keeps a way back for each of a million repetitions.
_SPACE: Final = re.compile(r"(?:[\s\ufeff\x08]++|//[^\n]*+|/\*.*?\*/)*+", re.S)
_QUOTED: Final = {
    '"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.S),
    "'": re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'", re.S),
}
#: The suffix says which type of number it is, which does not matter here.
_NUMBER: Final = re.compile(r"(-?[0-9]++)(\.[0-9]*+)?+([eE][+-]?[0-9]++)?+[LSBFD]?")
#: An object with whole numbers as keys and values: tables of offsets are made of these.
_NUMBER_PAIR: Final = r"[0-9]{1,18}:-?[0-9]{1,18}[ \t\r\n]*+"
_NUMBERS: Final = re.compile(
    rf"\{{[ \t\r\n]*+({_NUMBER_PAIR}(?:,[ \t\r\n]*+{_NUMBER_PAIR})*+)\}}"
)
_IDENTIFIER: Final = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.S)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_STEP: Final = re.compile(r"\.((?:[^.\[\\]|\\.)++)|\[([0-9]++)\]", re.S)
_INDEX: Final = re.compile("[0-9]{1,18}")
_BACKSLASH: Final = re.compile(r"\\(.)", re.S)

_ESCAPES: Final = {
    **{str(number): chr(number) for number in range(8)},
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "F": "\f",
    "r": "\r",
    '"': '"',
    "'": "'",
    "/": "/",
    "\\": "\\",
}

#: Words that are values. The library writes NaN as null and reads it so.
_WORDS: Final = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": None,
    "undefined": None,
}


@final
class ObjectKey(tuple[tuple[str, object], ...]):
    """An object that is a key: its members, sorted by name."""

    __slots__ = ()

    @classmethod
    def of(cls, members: Mapping[Any, object]) -> ObjectKey:
        """The key with these members."""
        pairs = ((str(name), _frozen(value)) for name, value in members.items())
        return cls(sorted(pairs, key=lambda pair: pair[0]))

    def members(self) -> dict[object, object]:
        """The members by name."""
        return dict(self)


def _frozen(value: object) -> object:
    """The same value, hashable."""
    if isinstance(value, dict):
        return ObjectKey.of(value)
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value


#: How much of a client's answer may be in RocketMQ's dialect: a third of a second of
#: reading. The largest such answer is the offsets of some ten thousand queues.
MAX_LENIENT_BODY: Final = 1 << 20

#: The same for a request that is read in one turn, in which nobody else is served: with
#: 20 ms, it is enough for some thousand objects of strict JSON, and for a hundredth of
#: that in the dialect. Longer bodies are read in steps, or refused.
MAX_TURN_BODY: Final = 1 << 20
MAX_LENIENT_TURN_BODY: Final = 32 * 1024


def loads(
    text: bytes | str, max_lenient: int | None = None, max_strict: int | None = None
) -> object:
    """The value of a text.

    @param text: UTF-8 if it is bytes; others become replacement characters.
    @param max_lenient: how long a text may be that is not strict JSON; None: any. It
        takes a hundred times as long to read, and whoever reads it waits.
    @param max_strict: how long a text may be at all; None: any.
    @raise RemoteProtocolError: fastjson would not take it either, or it is too long.
    """
    if max_strict is not None and len(text) > max_strict:
        raise RemoteProtocolError(
            f"{len(text)} bytes of JSON, the most that is read at once is {max_strict}"
        )
    try:
        value = _STRICT.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if max_lenient is not None and len(text) > max_lenient:
            raise RemoteProtocolError(
                f"{len(text)} bytes that are not strict JSON, the most is {max_lenient}"
            ) from None
        if not isinstance(text, str):
            text = str(text, "utf-8", "replace")
        elif _SURROGATE.search(text):
            text = _paired(text)
        value = finished(_Reader(text).steps())
        marked = "$ref" in text
    else:
        if isinstance(text, str):
            marked = "$ref" in text
            brackets = text.count("{") + text.count("[")
        else:
            marked = b"$ref" in text
            brackets = text.count(b"{") + text.count(b"[")
        if brackets > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
            raise _too_deep()
    return finished(_resolve(value)) if marked else value


def loads_in_steps(text: bytes, max_values: int = MAX_VALUES) -> Steps[object]:
    """The value of a long text of a peer, read in steps: C{yield from} this.

    A step takes some tenths of a millisecond, those of a thousand topics four.

    @param text: as L{loads} has it.
    @param max_values: how many values it may have, if it is longer than a window.
    @return: the value, where the generator ends.
    @raise RemoteProtocolError: fastjson would not take it either; or it has too many
        values, or in one piece more than can be read in a step.
    """
    if len(text) <= WINDOW:
        return loads(text)
    pieces = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for at in range(0, len(text), MAX_TURN_BODY):
        pieces.append(decoder.decode(text[at : at + MAX_TURN_BODY]))
        yield
    pieces.append(decoder.decode(b"", True))
    value = yield from _Reader("".join(pieces), max_values).steps()
    if b"$ref" in text:
        value = yield from _resolve(value)
    return value


def _too_deep() -> RemoteProtocolError:
    return RemoteProtocolError(f"JSON nested deeper than {MAX_DEPTH}")


def depth_of(value: object) -> int:
    """How deep a value nests; found without recursion.

    A plain value is 0 deep, an empty list 1. Keys do not count.
    """
    depth = 0
    level = [value]
    while level := [v for v in level if isinstance(v, _NESTING)]:
        depth += 1
        below: list[object] = []
        for item in level:
            below += item.values() if isinstance(item, dict) else item
        level = below
    return depth


def _paired(text: str) -> str:
    """Halves of characters put together, or replaced where the other is missing."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


#: An object or array that is too long to be read at once.
_NESTS: Final = object()


def _constant(word: str) -> None:
    """What the C reader takes beyond JSON: NaN, which is null, and Infinity."""
    if word != "NaN":
        raise RemoteProtocolError(f"JSON: {word} is no value")


_decode: Final = json.JSONDecoder(parse_constant=_constant).raw_decode


@final
class _Reader:
    """One pass over a text of the dialect.

    Where an object or array begins, the C reader is asked first. It fails where the
    dialect is used, and where the window ends: then what begins before that place is
    read here, value by value, so that no part of a text is tried twice.
    """

    __slots__ = (
        "_at",
        "_begin",
        "_depth",
        "_failed_at",
        "_left",
        "_max_blanks",
        "_max_string",
        "_max_values",
        "_text",
        "_values",
        "_window",
    )

    def __init__(self, text: str, max_values: int | None = None) -> None:
        """
        @param max_values: how many it may have; None: any, and it is read at once.
        """
        self._text = text
        self._at = 0
        self._depth = 0
        most = len(text) + 1
        in_steps = max_values is not None
        self._max_blanks = MAX_BLANKS if in_steps else most
        self._max_string = MAX_STRING if in_steps else most
        self._max_values = most if max_values is None else max_values
        self._values = 0
        self._left = STEP_VALUES
        #: The window, where it begins, and where the C reader has failed.
        self._window = ""
        self._begin = 0
        self._failed_at = -1

    def steps(self) -> Steps[object]:
        """The one value, with nothing behind it."""
        self._next()
        value = yield from self._value()
        if self._next():
            raise self._error("something behind the end")
        return value

    def _error(self, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"JSON: {what} at {self._at}")

    def _next(self) -> str:
        """Skip space and comments; the character there, empty at the end."""
        end = self._at + self._max_blanks
        match = _SPACE.match(self._text, self._at, end)
        if match is not None:
            self._at = match.end()
            if self._at == end:
                raise self._error(f"more than {self._max_blanks} blanks")
        return self._text[self._at : self._at + 1]

    def _value(self) -> Steps[object]:
        """The value that begins here."""
        holders: list[list[object] | dict[object, object]] = []
        keys: list[object] = []
        while True:
            char = self._text[self._at : self._at + 1]
            value = self._whole(char)
            if value is _NESTS:
                self._deeper()
                self._at += 1
                holders.append({} if char == "{" else [])
                char = self._next()
            elif not holders:
                return value
            else:
                char = self._put(holders[-1], keys, value)
            while char == ("}" if isinstance(holders[-1], dict) else "]"):
                self._at += 1
                self._depth -= 1
                closed = holders.pop()
                if not holders:
                    return closed
                char = self._put(holders[-1], keys, closed)
            if isinstance(holders[-1], dict):
                keys.append((yield from self._key(char)))
                if self._next() != ":":
                    raise self._error("no colon")
                self._at += 1
                self._next()
            self._count(1)
            if self._left <= 0:
                self._left = STEP_VALUES
                yield

    def _put(
        self,
        holder: list[object] | dict[object, object],
        keys: list[object],
        value: object,
    ) -> str:
        """Add a value to what holds it; the character behind it and its comma."""
        if isinstance(holder, dict):
            holder[keys.pop()] = value
            return self._separator("}")
        holder.append(value)
        return self._separator("]")

    def _count(self, values: int) -> None:
        self._left -= 1
        self._values += values
        if self._values > self._max_values:
            raise self._error(f"more than {self._max_values} values")

    def _whole(self, char: str) -> object:
        """The value that begins here, if it can be read at once."""
        if char in ('"', "'") and char:
            return self._string(char)
        if char in ("{", "["):
            return self._container(char)
        if char.isdigit() or char == "-":
            return self._number()
        match = _IDENTIFIER.match(self._text, self._at, self._at + MAX_KEY)
        if match is None or match[0] not in _WORDS:
            raise self._error("no value")
        self._at = match.end()
        return _WORDS[match[0]]

    def _container(self, char: str) -> object:
        """An object or array, if it can be read at once."""
        at = self._at
        if char == "{" and self._depth < MAX_DEPTH:
            numbers = _NUMBERS.match(self._text, at, at + MAX_NUMBERS)
            if numbers is not None:
                self._at = numbers.end()
                pairs = [pair.split(":") for pair in numbers[1].split(",")]
                self._values += len(pairs)
                self._left = 0
                return {int(key): int(value) for key, value in pairs}
        if at <= self._failed_at:
            return _NESTS
        if at - self._begin >= len(self._window) // 2:
            self._begin = at
            self._window = self._text[at : at + WINDOW]
            # The C reader does not put the halves of a character together.
            half = _ESCAPED_SURROGATE.search(self._window)
            if half is not None:
                self._window = self._window[: half.start()]
        begin = at - self._begin
        try:
            value, end = _decode(self._window, begin)
        except json.JSONDecodeError as error:
            self._failed_at = max(self._begin + error.pos, at)
            return _NESTS
        except RecursionError:
            raise _too_deep() from None
        except ValueError:
            raise self._error("a number too long") from None
        count = self._window.count
        brackets = count("{", begin, end) + count("[", begin, end)
        if self._depth + brackets > MAX_DEPTH and (
            self._depth + depth_of(value) > MAX_DEPTH
        ):
            raise _too_deep()
        self._at = self._begin + end
        self._left -= (end - begin) * STEP_VALUES // WINDOW
        self._count(brackets + count(",", begin, end))
        return value

    def _string(self, quote: str) -> str:
        most = self._max_string
        match = _QUOTED[quote].match(self._text, self._at, self._at + most)
        if match is None:
            raise self._error(
                f"a string without end, or of more than {most} characters"
            )
        text = match[1]
        if "\\" in text:
            text = _ESCAPE.sub(self._unescaped, text)
            if _SURROGATE.search(text):
                text = _paired(text)
        self._at = match.end()
        self._left -= len(text) * STEP_VALUES // WINDOW
        return text

    def _unescaped(self, match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPES:
            raise self._error(f"an escape {escape!r} in the string")
        return _ESCAPES[escape]

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at, self._at + 2 * MAX_DIGITS)
        if match is None:
            raise self._error("no number")
        whole, fraction, exponent = match.groups()
        try:
            if fraction or exponent:
                number: int | float = float(whole + (fraction or "") + (exponent or ""))
            else:
                number = int(whole)
        except ValueError as e:
            raise self._error("a number too long") from e
        self._at = match.end()
        return number

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_deep()

    def _separator(self, end: str) -> str:
        """Skip one comma; the character behind it, or the closing bracket."""
        char = self._next()
        if char == ",":
            self._at += 1
            return self._next()
        if char != end:
            raise self._error("no comma")
        return char

    def _key(self, char: str) -> Steps[object]:
        if char in ('"', "'") and char:
            return self._string(char)
        if char == "{":
            at = self._at
            members = yield from self._value()
            if self._at - at > MAX_KEY:
                raise self._error(f"a key of more than {MAX_KEY} characters")
            assert isinstance(members, dict)
            return ObjectKey.of(members)
        if char.isdigit() or char == "-":
            number = self._number()
            # Without a bound, numbers could be chosen that have the same hash.
            if not isinstance(number, int) or not -_LONG <= number < _LONG:
                raise self._error("a key that is no number of 64 bits")
            return number
        match = _IDENTIFIER.match(self._text, self._at, self._at + MAX_KEY)
        if match is None:
            raise self._error("no key")
        self._at = match.end()
        return match[0]


# References

#: A reference: the dict or list that holds it, under which key, its path, and in how
#: many containers it stands.
_Found: TypeAlias = tuple[Any, Any, str, int]


def _resolve(root: object) -> Steps[object]:
    """Put the targets in the place of references, in steps."""
    found: list[_Found] = []
    yield from _find(root, found)
    # All targets are looked up before any reference is replaced, so that the search for
    # references in a target sees the text as it was.
    known: dict[int, tuple[int, int] | None] = {}
    targets: list[object] = []
    total = 0
    for number, (_, _, path, depth) in enumerate(found):
        if number % STEP_VALUES == 0:
            yield
        target = _target(root, path)
        size = None
        # The whole holds the reference, however large it is.
        if target is not root:
            if id(target) not in known:
                known[id(target)] = _size(target)
                yield
            size = known[id(target)]
        if size is None or target is None:
            targets.append({})
            continue
        total += size[0]
        if total > MAX_EXPANSION:
            raise RemoteProtocolError("JSON: references to too much")
        # A target may itself nest, and is deeper now than where it was found.
        if depth + size[1] > MAX_DEPTH:
            raise _too_deep()
        targets.append(target)
    for number, (place, key, _, _) in enumerate(found):
        if number % STEP_VALUES == 0:
            yield
        place[key] = targets[number]
    return {} if _reference(root) is not None else root


def _find(root: object, found: list[_Found]) -> Steps[None]:
    """Collect the references below C{root}, in steps."""
    places = deque([(root, 1)])
    left = STEP_VALUES
    while places:
        place, depth = places.pop()
        items: Iterable[tuple[object, object]] = ()
        if isinstance(place, dict):
            items = place.items()
        elif isinstance(place, list):
            items = enumerate(place)
        for key, value in items:
            left -= 1
            if not left:
                left = STEP_VALUES
                yield
            if isinstance(value, _NESTING):
                path = _reference(value)
                if path is not None:
                    found.append((place, key, path, depth))
                else:
                    places.append((value, depth + 1))


def _size(target: object) -> tuple[int, int] | None:
    """The weight and depth of a target; None if it holds a reference."""
    weight = _weight(target)
    return None if weight is None else (weight, depth_of(target))


def _too_large() -> NoReturn:
    raise RemoteProtocolError(f"JSON: a reference to more than {MAX_TARGET} characters")


def _weight(value: object) -> int | None:
    """About how much text a value makes; None if it holds a reference."""
    if isinstance(value, str):
        return 16 + len(value)
    items: Iterable[object]
    if isinstance(value, dict):
        if _reference(value) is not None:
            return None
        items = chain(value.keys(), value.values())
    elif isinstance(value, list):
        items = value
    else:
        return 16
    total = 16
    for item in items:
        weight = _weight(item)
        if weight is None:
            return None
        total += weight
        if total > MAX_TARGET:
            _too_large()
    return total


def _reference(value: object) -> str | None:
    """The path of a reference, None if it is another value."""
    if isinstance(value, dict) and len(value) == 1:
        path = value.get("$ref")
        if isinstance(path, str):
            return path
    return None


def _target(root: object, path: str) -> object:
    """The target of a path, None if it cannot be resolved."""
    if not path.startswith("$"):
        return None
    at = 1
    value = root
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        name = _BACKSLASH.sub(r"\1", step[1] or step[2])
        number = int(name) if _INDEX.fullmatch(name) else -1
        if isinstance(value, list) and step[2] is not None:
            value = value[number] if 0 <= number < len(value) else None
        elif isinstance(value, dict):
            value = value.get(name, value.get(number))
        else:
            return None
    return value

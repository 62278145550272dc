# -*- test-case-name: tests.wire.test_reading -*-
"""The dialect of JSON that RocketMQ's JSON library takes, as Python values.

Bodies and files of RocketMQ are not JSON: integer keys stand without quotes, and
keys may be objects (C{docs/facts/remoting.md} 16). On input its library takes more:
single quotes, bare identifiers as keys, comments, commas before a closing bracket.
L{loads} takes all of these; strict JSON takes the short way through msgspec.
The other direction is L{rocketbroker.wire.emitting}.

An integer key becomes an C{int} when it stood without quotes and stays a C{str} when
it had them; bodies take both. An object key becomes an L{ObjectKey}.

The library abbreviates a second occurrence of the same object by a reference,
C{{"$ref":"$.topicConfigTable.A.attributes"}}. Such a reference is resolved if its
target holds no reference itself, and is an empty object otherwise: the real ones point
to flat maps, and so no input can make a value that contains itself, or one that is much
larger than its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, final

import msgspec

from rocketbroker.errors import RemoteProtocolError

#: How deep values nest at most. Bodies of the protocol nest no deeper than ten; what
#: they hold is walked by recursion, and so a peer must not choose its depth.
MAX_DEPTH: Final = 100

#: How many characters references may stand for, with 16 for each value: as many as the
#: longest frame has. Without a limit a short text could mean gigabytes.
MAX_EXPANSION: Final = 16 * 1024 * 1024

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


#: How much of a peer's text may be in RocketMQ's dialect: a third of a second of
#: reading. The largest such body is a registration of some thousand static topics.
MAX_LENIENT_BODY: Final = 1 << 20


def loads(text: bytes | str, max_lenient: int | None = None) -> object:
    """The value of a text.

    @param text: UTF-8 if it is bytes; others become replacement characters.
    @param max_lenient: how long a text may be that is not strict JSON; None: any. It
        takes a hundred times as long to read, and whoever reads it waits.
    @raise RemoteProtocolError: fastjson would not take it either, or it is too long.
    """
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
        value = _Reader(text).read()
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
    if marked:
        value = _resolve(value)
        # A target may itself nest, and is deeper now than where it was found.
        if depth_of(value) > MAX_DEPTH:
            raise _too_deep()
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


@final
class _Reader:
    """One pass over a text of the dialect."""

    __slots__ = ("_at", "_depth", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def read(self) -> object:
        """The one value, with nothing behind it."""
        self._next()
        value = self._value()
        if self._next():
            raise self._error("something behind the end")
        return value

    def _error(self, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"JSON: {what} at {self._at}")

    def _next(self) -> str:
        """Skip space and comments; the character there, empty at the end."""
        match = _SPACE.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _value(self) -> object:
        """The value that begins here."""
        char = self._text[self._at : self._at + 1]
        if char in ('"', "'") and char:
            return self._string(char)
        if char == "{":
            return self._object()
        if char == "[":
            return self._array()
        if char.isdigit() or char == "-":
            return self._number()
        match = _IDENTIFIER.match(self._text, self._at)
        if match is None or match[0] not in _WORDS:
            raise self._error("no value")
        self._at = match.end()
        return _WORDS[match[0]]

    def _string(self, quote: str) -> str:
        match = _QUOTED[quote].match(self._text, self._at)
        if match is None:
            raise self._error("a string without end")
        text = match[1]
        if "\\" in text:
            text = _ESCAPE.sub(self._unescaped, text)
            if _SURROGATE.search(text):
                text = _paired(text)
        self._at = match.end()
        return text

    def _unescaped(self, match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPES:
            raise self._error(f"an escape {escape!r} in the string")
        return _ESCAPES[escape]

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
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

    def _array(self) -> list[object]:
        self._deeper()
        self._at += 1
        items: list[object] = []
        char = self._next()
        while char != "]":
            items.append(self._value())
            char = self._separator("]")
        self._at += 1
        self._depth -= 1
        return items

    def _object(self) -> dict[object, object]:
        numbers = _NUMBERS.match(self._text, self._at)
        if numbers is not None and self._depth < MAX_DEPTH:
            self._at = numbers.end()
            pairs = [pair.split(":") for pair in numbers[1].split(",")]
            return {int(key): int(value) for key, value in pairs}
        self._deeper()
        self._at += 1
        members: dict[object, object] = {}
        char = self._next()
        while char != "}":
            key = self._key(char)
            if self._next() != ":":
                raise self._error("no colon")
            self._at += 1
            self._next()
            members[key] = self._value()
            char = self._separator("}")
        self._at += 1
        self._depth -= 1
        return members

    def _separator(self, end: str) -> str:
        """Skip one comma; the character behind it, or the closing bracket."""
        char = self._next()
        if char == ",":
            self._at += 1
            return self._next()
        if char != end:
            raise self._error("no comma")
        return char

    def _key(self, char: str) -> object:
        if char in ('"', "'") and char:
            return self._string(char)
        if char == "{":
            return ObjectKey.of(self._object())
        if char.isdigit() or char == "-":
            number = self._number()
            # Without a bound, numbers could be chosen that have the same hash.
            if not isinstance(number, int) or not -_LONG <= number < _LONG:
                raise self._error("a key that is no number of 64 bits")
            return number
        match = _IDENTIFIER.match(self._text, self._at)
        if match is None:
            raise self._error("no key")
        self._at = match.end()
        return match[0]


# References

#: A reference: the dict or list that holds it, under which key, and its path.
_Found: TypeAlias = tuple[Any, Any, str]


def _resolve(root: object) -> object:
    """Put the targets in the place of references."""
    found: list[_Found] = []
    _find(root, found)
    # All targets are looked up before any reference is replaced, so that the search for
    # references in a target sees the text as it was.
    weights: dict[int, int | None] = {}
    targets: list[object] = []
    total = 0
    for _, _, path in found:
        target = _target(root, path)
        if id(target) not in weights:
            weights[id(target)] = _weight(target)
        weight = weights[id(target)]
        total += weight or 0
        if total > MAX_EXPANSION:
            raise RemoteProtocolError("JSON: references to too much")
        targets.append({} if target is None or weight is None else target)
    for (place, key, _), target in zip(found, targets, strict=True):
        place[key] = target
    return {} if _reference(root) is not None else root


def _weight(value: object) -> int | None:
    """About how much text a value makes; None if it holds a reference."""
    if isinstance(value, str):
        return 16 + len(value)
    if isinstance(value, dict):
        if _reference(value) is not None:
            return None
        items = [*value.keys(), *value.values()]
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
    return total


def _reference(value: object) -> str | None:
    """The path of a reference, None if it is another value."""
    if isinstance(value, dict) and len(value) == 1:
        path = value.get("$ref")
        if isinstance(path, str):
            return path
    return None


def _find(place: object, found: list[_Found]) -> None:
    """Collect the references below C{place}: where, under which key, to what."""
    items: list[tuple[object, object]] = []
    if isinstance(place, dict):
        items = list(place.items())
    elif isinstance(place, list):
        items = list(enumerate(place))
    for key, value in items:
        path = _reference(value)
        if path is not None:
            found.append((place, key, path))
        elif isinstance(value, dict | list):
            _find(value, found)


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

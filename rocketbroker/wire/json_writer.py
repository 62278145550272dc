# -*- test-case-name: tests.wire.test_json_writer -*-
"""Values as text in the form of RocketMQ's JSON library, byte for byte.

Two forms (C{docs/facts/remoting.md} 2, 16.2 and 16.6):

  - L{dumps}: integer keys without quotes, objects as keys, raw UTF-8. The form of files
    and nearly all bodies. It has no white space: the Go client takes brokers' addresses
    apart by splitting the text.
  - L{dumps_standard}: JSON as the standard has it, in ASCII: the answer to a request
    for a route by anyone since 4.9.4.

In both, keys are sorted, members whose value is null are left out, and bytes become
Base64.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, final, runtime_checkable

import msgspec

from rocketbroker.errors import LocalProtocolError
from rocketbroker.wire.json_reader import MAX_DEPTH, ObjectKey
from rocketbroker.wire.steps import Steps

_SPECIAL: Final = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029]')
#: All of them but the two by which the properties of a message are separated.
_RARE: Final = re.compile('[\x00\x03-\x1f"\\\\\x7f-\x9f\u2028\u2029]')
#: By what needs no escape: to compile the range of all else takes 12 ms of each start.
_STANDARD_SPECIAL: Final = re.compile("[^ !#-.0-\\[\\]-~]")
_SHORT: Final = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
}

_WORDS: Final = {None: "null", True: "true", False: "false"}

#: Beyond these JavaScript cannot count; the standard form writes strings there.
_MAX_EXACT: Final = (1 << 53) - 1


#: So many items of a list or a table are written in a step of L{dumping}.
STEP_ITEMS: Final = 64

#: Writes plain values as fast as they can be; not always in the library's form.
_PLAIN: Final = msgspec.json.Encoder(order="sorted")


@final
class Written:
    """A value that is text in the library's own form already, in pieces.

    Not for L{dumps_standard}.
    """

    __slots__ = ("pieces",)

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = pieces


@runtime_checkable
class JsonValue(Protocol):
    """A value that knows its own JSON form."""

    def to_json(self) -> object:
        """The value as dicts, lists and plain values."""


def dumps(value: object) -> bytes:
    """The text in the library's own form, as UTF-8.

    @param value: plain values, lists, dicts, and values with C{to_json}.
    @raise LocalProtocolError: no such value can be written.
    """
    return _bytes(_text(value, False, MAX_DEPTH))


def member_text(name: str, members: Mapping[str, object]) -> str:
    """An object as a member of another: its name, a colon and its text.

    For tables of thousands of objects, each of which is written once and kept. Ten
    times as fast as L{dumps}, where the two forms are the same.

    @param members: of the object: strings, whole numbers, booleans, None, and dicts of
        these by strings. Other forms of numbers and keys are for L{dumps} alone.
    @raise LocalProtocolError: it cannot be written.
    """
    there = {key: value for key, value in members.items() if value is not None}
    try:
        text = _PLAIN.encode({name: there}).decode("ascii")
    except (UnicodeError, TypeError):
        text = ""
    # Other escapes, and members that are null and left out.
    if not text or "\\" in text or "\x7f" in text or ":null" in text:
        text = dumps({name: there}).decode()
    return text[1:-1]


def joined(members: Sequence[str]) -> Written:
    """The object that has these members.

    @param members: as L{member_text} gives them, sorted by name.
    """
    if not members:
        return Written(["{}"])
    # Megabytes are not copied before all of the text is put together.
    pieces = [","] * (2 * len(members) + 1)
    pieces[1::2] = members
    pieces[0], pieces[-1] = "{", "}"
    return Written(pieces)


def dumps_standard(value: object) -> bytes:
    """The text as standard JSON in ASCII.

    @raise LocalProtocolError: no such value can be written.
    """
    return _bytes(_text(value, True, MAX_DEPTH))


def dumping(value: object, standard: bool = False) -> Steps[bytes]:
    """The same text as that of L{dumps}, or of L{dumps_standard}, a step for each
    L{STEP_ITEMS} items of long lists and tables in it.

    What a C{to_json} gives is taken as a whole, but for the value's own.

    @raise LocalProtocolError: no such value can be written.
    """
    emitter = _Emitter(standard)
    parts = []
    for _ in emitter.steps(value, MAX_DEPTH):
        parts.append(_bytes("".join(emitter.pieces)))
        emitter.pieces.clear()
        yield
    parts.append(_bytes("".join(emitter.pieces)))
    return b"".join(parts)


def quoted(text: str) -> str:
    """A string with its quotes, in the library's own form."""
    if _SPECIAL.search(text) is None:
        return f'"{text}"'
    if _RARE.search(text) is None:
        text = text.replace("\x01", "\\u0001").replace("\x02", "\\u0002")
        return f'"{text}"'
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def _quoted_standard(text: str) -> str:
    if _STANDARD_SPECIAL.search(text) is None:
        return f'"{text}"'
    return f'"{_STANDARD_SPECIAL.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    short = _SHORT.get(char)
    if short is not None:
        return short
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04X}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04X}\\u{0xDC00 | code & 0x3FF:04X}"


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as e:
        raise LocalProtocolError(f"a string that is not Unicode: {e.reason}") from e


def _text(value: object, standard: bool, room: int) -> str:
    """The text of any value that nests no deeper than C{room}."""
    emitter = _Emitter(standard)
    emitter.emit(value, room)
    return "".join(emitter.pieces)


@final
class _Emitter:
    """The writer of one text.

    @ivar pieces: the text so far: what is large is joined once, at the end.
    """

    __slots__ = ("_quote", "_standard", "pieces")

    def __init__(self, standard: bool) -> None:
        """
        @param standard: whether it is standard JSON in ASCII.
        """
        self._standard = standard
        self._quote = _quoted_standard if standard else quoted
        self.pieces: list[str] = []

    def emit(self, value: object, room: int) -> None:
        """Add a value."""
        add = self.pieces.append
        if isinstance(value, str):
            add(self._quote(value))
        elif value is None or isinstance(value, bool):
            add(_WORDS[value])
        elif isinstance(value, int):
            exact = not self._standard or -_MAX_EXACT <= value <= _MAX_EXACT
            add(str(int(value)) if exact else f'"{int(value)}"')
        elif isinstance(value, float):
            add(java_double(value))
        elif isinstance(value, bytes):
            add(self._quote(b64encode(value).decode("ascii")))
        elif isinstance(value, Written):
            self.pieces += value.pieces
        else:
            self._nested(value, room)

    def steps(self, value: object, room: int) -> Iterator[None]:
        """Add a value in steps."""
        if isinstance(value, JsonValue):
            value = value.to_json()
        if not isinstance(value, dict | list) or room == 0:
            self.emit(value, room)
            return
        items: Iterable[tuple[object, str, object]]
        if isinstance(value, dict):
            items, colon = self._pairs(value, room - 1), ":"
            before, end = "{}"
        else:
            items, colon = ((0, "", item) for item in value), ""
            before, end = "[]"
        number = 0
        for number, (_, text, item) in enumerate(items, 1):
            self.pieces.append(f"{before}{text}{colon}")
            before = ","
            if isinstance(item, dict | list):
                yield from self.steps(item, room - 1)
            else:
                self.emit(item, room - 1)
            if number % STEP_ITEMS == 0:
                yield
        self.pieces.append(end if number else f"{before}{end}")

    def _nested(self, value: object, room: int) -> None:
        """Add what holds other values."""
        if isinstance(value, ObjectKey):
            value = value.members()
        elif isinstance(value, JsonValue):
            value = value.to_json()
            if not isinstance(value, Mapping | list | tuple | set | frozenset):
                self.emit(value, room)
                return
        if room == 0:
            raise LocalProtocolError("a value that nests too deep to be read again")
        if isinstance(value, Mapping):
            self._object(value, room - 1)
        elif isinstance(value, list | tuple):
            before = "["
            for item in value:
                self.pieces.append(before)
                self.emit(item, room - 1)
                before = ","
            self.pieces.append("]" if value else "[]")
        elif isinstance(value, set | frozenset):
            items = sorted(_text(item, self._standard, room - 1) for item in value)
            self.pieces.append(f"[{','.join(items)}]")
        else:
            raise LocalProtocolError(f"JSON has no {type(value).__name__}")

    def _object(self, members: Mapping[object, object], room: int) -> None:
        """Add an object with its members sorted."""
        before = "{"
        for _, text, value in self._pairs(members, room):
            self.pieces.append(f"{before}{text}:")
            self.emit(value, room)
            before = ","
        self.pieces.append("{}" if before == "{" else "}")

    def _pairs(
        self, members: Mapping[object, object], room: int
    ) -> Iterable[tuple[object, str, object]]:
        """The members sorted, numbers first, in their order: what they are sorted by,
        key and value of each."""
        if len(members) > STEP_ITEMS and all(type(key) is str for key in members):
            return self._named(members)
        quote, standard = self._quote, self._standard
        pairs: list[tuple[tuple[int, int, str], str, object]] = []
        for key, value in members.items():
            if value is None:
                continue
            if isinstance(key, str):
                pairs.append(((1, 0, key), quote(key), value))
            elif isinstance(key, int):
                text = f'"{int(key)}"' if standard else str(int(key))
                pairs.append(((0, key, ""), text, value))
            else:
                text = _text(key, standard, room)
                pairs.append(((2, 0, text), quote(text) if standard else text, value))
        pairs.sort(key=lambda pair: pair[0])
        return pairs

    def _named(
        self, members: Mapping[Any, object]
    ) -> Iterator[tuple[object, str, object]]:
        """The same where all keys are names: what is long is put into order only."""
        for name in sorted(members):
            value = members[name]
            if value is not None:
                yield name, self._quote(name), value


def java_double(value: float) -> str:
    """A number as Java writes a double; infinities and NaN become null."""
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    if 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    power = int(exponent) + len(text) - 1
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{power}"

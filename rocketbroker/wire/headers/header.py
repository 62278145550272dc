# -*- test-case-name: tests.wire.headers.test_header -*-
"""Extension fields as typed headers, and back.

A header class has Java's name, and an attribute for each field: the field's name in
snake case, unless the field's name on the wire is no camel case at all. A field without
a default is one that Java marks as required, which is a documentation mark there: if it
is missing, or is a number that does not parse, Java logs that and leaves null or zero.
So C{from_ext} never rejects: a missing required number is 0, a missing required string
is empty, an optional field is C{None}. A responder that would do harm with such a value
uses C{complete}; Java mostly fails on the null and answers SYSTEM_ERROR, too.

Two kinds of header are stricter, as in Java, and raise an error that becomes
SYSTEM_ERROR: the "fast" ones, whose numbers must parse, and the two that check a value.

The texts of values and the rules of reading: C{docs/facts/remoting.md} 5.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

import msgspec

from rocketbroker.errors import SystemFailure

#: Java's int and long.
Int: TypeAlias = Annotated[int, 32]
Long: TypeAlias = Annotated[int, 64]

#: Java's BoundaryType: LOWER or UPPER.
Boundary: TypeAlias = Annotated[str, "boundary"]

_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,40}")

#: A number of fewer digits fits 32 bits.
_ALWAYS_INT: Final = 10


def _read_int(text: str) -> int | None:
    return _number(text, 0x80000000)


def _read_long(text: str) -> int | None:
    return _number(text, 0x8000000000000000)


def _number(text: str, limit: int) -> int | None:
    """Java's parseInt and parseLong; C{None} if it is no such number."""
    if len(text) < _ALWAYS_INT and text.isascii() and text.isdigit():
        return int(text)
    if _DECIMAL.fullmatch(text):
        number = int(text)
        if -limit <= number < limit:
            return number
    return None


def _read_bool(text: str) -> bool:
    return text.lower() == "true"


def _read_boundary(text: str) -> str:
    return "UPPER" if text.lower() == "upper" else "LOWER"


def _write_bool(value: bool) -> str:
    return "true" if value else "false"


#: How a kind is read, how it is written, and its value if it is missing.
_Kind: TypeAlias = tuple[
    Callable[[str], object] | None, Callable[[Any], str] | None, object
]


#: The attribute of a key, and how it is read.
_Rule: TypeAlias = tuple[str, Callable[[str], object] | None]


class _Field(msgspec.Struct, frozen=True):
    """One field: its names, how its value is read and written, and if it is missing."""

    attribute: str
    key: str
    read: Callable[[str], object] | None
    write: Callable[[Any], str] | None
    missing: object
    required: bool


def _field(info: msgspec.structs.FieldInfo) -> _Field:
    """The rules of one field, from its annotation."""
    annotation = info.type
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (a for a in get_args(annotation) if a is not type(None))
    kind = (
        get_args(annotation)[1] if get_origin(annotation) is Annotated else annotation
    )
    read, write, zero = _KINDS[kind]
    missing = zero if info.required else info.default
    return _Field(info.name, info.encode_name, read, write, missing, info.required)


_KINDS: Final[dict[object, _Kind]] = {
    str: (None, None, ""),
    32: (_read_int, str, 0),
    64: (_read_long, str, 0),
    bool: (_read_bool, _write_bool, False),
    "boundary": (_read_boundary, None, "LOWER"),
}


@cache
def _plan(cls: type[Header]) -> tuple[_Field, ...]:
    """The fields in Java's order: a class's own before those that it inherits."""
    infos = {info.name: info for info in msgspec.structs.fields(cls)}
    names: list[str] = []
    for ancestor in cls.__mro__:
        for name in inspect.get_annotations(ancestor):
            if name in infos and name not in names:
                names.append(name)
    return tuple(_field(infos[name]) for name in names)


@cache
def _reading(cls: type[Header]) -> tuple[dict[str, _Rule], dict[str, object]]:
    """How each key is read, and the attributes where all are missing."""
    plan = _plan(cls)
    rules = {field.key: (field.attribute, field.read) for field in plan}
    return rules, {field.attribute: field.missing for field in plan}


@cache
def _required(cls: type[Header]) -> frozenset[str]:
    """The keys that may not be missing."""
    return frozenset(
        field.key
        for field in _plan(cls)
        if field.required and field.missing is not False
    )


class Header(msgspec.Struct, rename="camel", kw_only=True):
    """A typed header.

    @cvar fast: whether Java reads it by hand, so that a number that does not parse is
        an error.
    """

    fast: ClassVar[bool] = False

    @classmethod
    def from_ext(cls, ext: dict[str, str] | None) -> Self:
        """Read the extension fields, as leniently as Java does.

        @raise SystemFailure: a strict header has a value that it cannot have.
        """
        fields, missing = _reading(cls)
        values = missing.copy()
        for key, text in (ext or {}).items():
            rule = fields.get(key)
            if rule is None:
                continue
            attribute, read = rule
            value = text if read is None else read(text)
            if value is not None:
                values[attribute] = value
            elif cls.fast:
                raise SystemFailure(f"{key} is not a number: {text[:40]!r}")
        header = cls(**values)
        if ext is not None:
            header.check()
        return header

    @classmethod
    def lacking(cls, ext: dict[str, str] | None) -> list[str]:
        """The required fields that are missing or are numbers that do not parse."""
        ext = ext or {}
        wrong = []
        for field in _plan(cls):
            if field.required:
                text = ext.get(field.key)
                if text is None or (field.read and field.read(text) is None):
                    wrong.append(field.key)
        return wrong

    @classmethod
    def complete(cls, ext: dict[str, str] | None, but: Collection[str] = ()) -> Self:
        """Read fields of which none that is required may be missing.

        What is made of a zero instead may be done to a message or a topic that nobody
        meant. Booleans are C{false} in Java, too.

        @param but: keys that may be missing all the same, as the caller needs none.
        @raise SystemFailure: one is missing, or a number does not parse.
        """
        fields, missing = _reading(cls)
        values = missing.copy()
        needed = _required(cls).difference(but)
        for key, text in (ext or {}).items():
            rule = fields.get(key)
            if rule is None:
                continue
            attribute, read = rule
            value = text if read is None else read(text)
            if value is None:
                break
            values[attribute] = value
        else:
            if ext is not None and needed <= ext.keys():
                header = cls(**values)
                header.check()
                return header
        kinds = {field.key: field.missing for field in _plan(cls)}
        for key in cls.lacking(ext):
            if key not in but and kinds[key] is not False:
                raise SystemFailure(f"the field {key} is missing, or is no number")
        return cls.from_ext(ext)

    def to_ext(self) -> dict[str, str]:
        """The extension fields, in the order of declaration, without the null ones."""
        ext: dict[str, str] = {}
        for field in _plan(type(self)):
            value = getattr(self, field.attribute)
            if value is not None:
                ext[field.key] = value if field.write is None else field.write(value)
        return ext

    def check(self) -> None:
        """Java's checks after reading, if the peer sent any fields.

        @raise SystemFailure: a value is not one of those that there are.
        """


class RpcRequestHeader(Header, kw_only=True):
    """Fields that all requests since 5.0 may carry.

    @ivar ns: the namespace.
    @ivar nsd: whether names have the namespace already.
    @ivar bname: the logical broker's name.
    @ivar oway: a hint that no answer is wanted.
    """

    ns: str | None = None
    nsd: bool | None = None
    bname: str | None = None
    oway: bool | None = None


class TopicRequestHeader(RpcRequestHeader, kw_only=True):
    """Fields that all requests about a topic may carry.

    @ivar lo: false: the queue is a physical one; skip static topics' mapping.
    """

    lo: bool | None = None

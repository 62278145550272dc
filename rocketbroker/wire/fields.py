# -*- test-case-name: tests.wire.test_fields -*-
"""Members of a JSON object as typed values, as leniently as RocketMQ reads them.

Its JSON library converts: a number may stand in quotes, a long may be 1.7E12, an enum
may be its ordinal. A member that is missing and one that is null are the same, the
default. An exact name wins; else case, C{_} and C{-} in names are overlooked. What
cannot be converted is refused (C{docs/facts/remoting.md} 16.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeAlias, TypeVar, final

import msgspec

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.json_reader import depth_of, loads

T = TypeVar("T")

#: Members of msgspec's structs: numbers as Java has them, with their sign.
Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]

_DECIMAL: Final = re.compile("[+-]?[0-9]{1,30}")

#: How deep what is only kept may nest: twice what the real ones do. It is written again
#: inside of larger objects, whose files must not become too deep to be read.
MAX_KEPT_DEPTH: Final = 10


@final
class Fields:
    """The members of one object."""

    __slots__ = ("_loose", "_members", "_what")

    def __init__(self, value: object, what: str) -> None:
        """
        @param value: the value as read from the text.
        @param what: the name of the expected object, for the error.
        @raise RemoteProtocolError: it is no object.
        """
        if not isinstance(value, dict):
            raise RemoteProtocolError(f"{what} is not an object")
        self._members: dict[object, object] = value
        self._what = what
        self._loose: dict[str, object] | None = None

    def _wrong(self, name: str, kind: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"{name} of {self._what} is not {kind}")

    def value(self, name: str) -> object:
        """The member as it is; None if it is missing."""
        if name in self._members:
            return self._members[name]
        if self._loose is None:
            self._loose = {
                loose_name(key): member
                for key, member in self._members.items()
                if isinstance(key, str)
            }
        return self._loose.get(loose_name(name))

    def text(self, name: str) -> str | None:
        """A string; a number or a boolean becomes its text."""
        value = self.value(name)
        if value is None or isinstance(value, str):
            return value
        return text_of(value, lambda: self._wrong(name, "a string"))

    def integer(self, name: str, default: int = 0, bits: int = 32) -> int:
        """A whole number that fits in so many bits, with its sign."""
        value = self.value(name)
        if value is None or value == "":
            return default
        number = integer_of(value)
        if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise self._wrong(name, f"a whole number of {bits} bits")
        return number

    def boolean(self, name: str, default: bool = False) -> bool:
        """A boolean, also as text or as a number."""
        value = self.value(name)
        if value is None or value == "":
            return default
        if isinstance(value, str):
            lower = value.lower()
            if lower in ("true", "1", "y", "t"):
                return True
            if lower in ("false", "0", "n", "f"):
                return False
        elif isinstance(value, bool | int):
            return bool(value)
        raise self._wrong(name, "a boolean")

    def choice(self, name: str, choices: Sequence[str]) -> str | None:
        """One of these names, which may stand as its place; None for an unknown one."""
        value = self.value(name)
        if isinstance(value, str):
            return value if value in choices else None
        if isinstance(value, int) and not isinstance(value, bool):
            return choices[value] if 0 <= value < len(choices) else None
        if value is None:
            return None
        raise self._wrong(name, "a name")

    def items(self, name: str) -> list[object]:
        """The elements of an array; none if it is missing."""
        value = self.value(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, "an array")
        return value

    def strings(self, name: str) -> list[str]:
        """The elements of an array of strings, without null ones."""

        def wrong() -> RemoteProtocolError:
            return self._wrong(name, "an array of strings")

        texts = [text_of(item, wrong) for item in self.items(name)]
        return [text for text in texts if text is not None]

    def integers(self, name: str) -> list[int]:
        """The elements of an array of numbers of 32 bits, which may stand in quotes."""
        numbers = []
        for item in self.items(name):
            number = integer_of(item)
            if number is None or not -(1 << 31) <= number < 1 << 31:
                raise self._wrong(name, "an array of numbers of 32 bits")
            numbers.append(number)
        return numbers

    def beans(self, name: str, read: Callable[[object], T]) -> list[T]:
        """The elements of an array of objects, without null ones."""
        return [read(item) for item in self.items(name) if item is not None]

    def members(self, name: str) -> dict[object, object]:
        """The members of an object; none if it is missing."""
        value = self.value(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def kept(self, name: str) -> object:
        """A member that is kept as it is, to be written again."""
        value = self.value(name)
        if depth_of(value) > MAX_KEPT_DEPTH:
            raise self._wrong(name, f"nested less than {MAX_KEPT_DEPTH} deep")
        return value

    def table(self, name: str, read: Callable[[object], T]) -> dict[str, T]:
        """An object with strings as keys, without its null values."""
        return {
            str(key): read(value)
            for key, value in self.members(name).items()
            if value is not None
        }

    def texts(self, name: str) -> dict[str, str]:
        """An object with strings as keys and values, without its null values."""
        return self.table(name, self._read_text)

    def _read_text(self, value: object) -> str:
        text = text_of(value, lambda: self._wrong("a value", "a string"))
        return "" if text is None else text

    def numbered(self, name: str, read: Callable[[object], T]) -> dict[int, T]:
        """An object with whole numbers as keys, in quotes or not."""
        table: dict[int, T] = {}
        for key, value in self.members(name).items():
            number = integer_of(key)
            # Without a bound, numbers could be chosen that have the same hash.
            if number is None or not -(1 << 63) <= number < 1 << 63:
                raise self._wrong(name, "an object with numbers of 64 bits as keys")
            if value is not None:
                table[number] = read(value)
        return table


def loose_name(name: str) -> str:
    """A name without the characters that RocketMQ overlooks."""
    return name.replace("_", "").replace("-", "").lower()


def text_of(value: object, wrong: Callable[[], RemoteProtocolError]) -> str | None:
    """A value as a string.

    @param wrong: makes the error for a wrong value.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise wrong()


def read_text(value: object) -> str:
    """A string that must be there.

    @raise RemoteProtocolError: it is none.
    """
    if isinstance(value, str):
        return value
    raise RemoteProtocolError("a value is not a string")


def read_long(value: object) -> int:
    """A whole number of 64 bits that must be there.

    @raise RemoteProtocolError: it is none.
    """
    number = integer_of(value)
    if number is None or not -(1 << 63) <= number < 1 << 63:
        raise RemoteProtocolError("a value is not a number")
    return number


def read_texts(value: object) -> list[str]:
    """An array of strings.

    @raise RemoteProtocolError: it is none.
    """
    if not isinstance(value, list):
        raise RemoteProtocolError("a value is not an array")
    return [read_text(item) for item in value]


def integer_of(value: object) -> int | None:
    """A whole number, also from its text; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        if isinstance(value, float):
            return int(value)
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    return None


def object_of(data: bytes, read: Callable[[object], T]) -> T:
    """A body from its bytes.

    @raise RemoteProtocolError: it is not one.
    """
    return read(loads(data))

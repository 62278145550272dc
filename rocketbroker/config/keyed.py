# -*- test-case-name: tests.config.test_keyed -*-
"""The reader that makes a frozen object with typed attributes of a .properties file.

Each attribute of an options class is one key of RocketMQ's: C{listen_port} is
C{listenPort}. A key that this rule does not produce (C{brokerIP1}) stands in the
class's L{IRREGULAR<KeyedOptions.IRREGULAR>} table. One file feeds several classes; a
key that two of them have sets both. Binding: C{docs/facts/broker.md 1.2}, but for one
thing: a value that does not fit a known key is an error here, and silently ignored in
RocketMQ, so that an operator believes in a limit that is not in force.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Final, Self, TypeVar

import attrs

from rocketbroker.errors import ConfigurationError

T = TypeVar("T")

#: The range of an int setting unless its class says otherwise: Java's int.
INT: Final = (-(2**31), 2**31 - 1)

#: Java's long.
LONG: Final = (-(2**63), 2**63 - 1)

#: A TCP port, 0 for none or for any free one.
PORT: Final = (0, 65535)

#: At least one, as a Java int.
POSITIVE: Final = (1, INT[1])

#: How much of two keys has to be the same for one to be meant by the other.
SIMILAR: Final = 0.75

#: How metrics may leave a server.
EXPORTERS: Final = ("DISABLE", "OTLP_GRPC", "PROM", "LOG")

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}\Z")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})\Z")


#: Marks an attribute in its metadata; see L{running}.
_RUNNING: Final = "running"


def running(default: T) -> T:
    """The default of an attribute that a request can change while the server runs.

    Who declares one so promises that the parts obey the change, and that its value
    never becomes a path, a command, a class, or an address that the server connects to
    or listens at: anybody can send a request.
    """
    return attrs.field(default=default, metadata={_RUNNING: True})


@cache
def key_of(attribute: str) -> str:
    """The key that a regular attribute stands for.

    >>> key_of("listen_port")
    'listenPort'
    """
    first, *rest = attribute.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def text_of(value: object) -> str:
    """A value as RocketMQ prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class KeyedOptions:
    """Options that know their keys. Subclasses are frozen attrs classes.

    Those with hundreds of attributes are made without what attrs would compile at each
    start and nothing needs: slots, and the text that L{__repr__} gives.

    @cvar IRREGULAR: the keys of attributes whose names do not give them.
    @cvar BOUNDS: least and greatest value of int attributes, where not L{INT}.
    @cvar CHOICES: the allowed values of string attributes that are not free.
    @cvar CHECKS: of string attributes that are not free either: raises C{ValueError}
        with what the value must be instead.
    @cvar PATHS: the string attributes that are paths, each with what makes its text an
        absolute one; see L{rocketbroker.config.paths}.
    @cvar SECRETS: the attributes that are never shown.
    @cvar ABOUT: the meaning of each attribute that has an effect. The others are
        known, kept and printed, but nothing reads them.
    @cvar UNITS: the units of their values, where they have one.
    """

    IRREGULAR: ClassVar[Mapping[str, str]] = {}
    BOUNDS: ClassVar[Mapping[str, tuple[int, int]]] = {}
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    CHECKS: ClassVar[Mapping[str, Callable[[str], object]]] = {}
    PATHS: ClassVar[Mapping[str, Callable[[str], str]]] = {}
    SECRETS: ClassVar[frozenset[str]] = frozenset()
    ABOUT: ClassVar[Mapping[str, str]] = {}
    UNITS: ClassVar[Mapping[str, str]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.as_properties()})"

    @classmethod
    def keys(cls) -> dict[str, str]:
        """All keys, in the order of declaration, each with its attribute's name."""
        irregular = cls.IRREGULAR
        names = [field.name for field in attrs.fields(cls)]  # type: ignore[arg-type]
        return {irregular.get(name) or key_of(name): name for name in names}

    @classmethod
    def running_keys(cls) -> frozenset[str]:
        """The keys that a request can change while the server runs: the allow-list."""
        fields = attrs.fields_dict(cls)  # type: ignore[arg-type]
        return frozenset(
            key for key, name in cls.keys().items() if _RUNNING in fields[name].metadata
        )

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], source: str = "settings", **defaults: object
    ) -> Self:
        """Options with the values of those keys that this class knows.

        @param properties: the keys and values of a file; unknown keys are ignored.
        @param source: its name in an error, usually the file's path.
        @param defaults: attributes whose default is another for this program.
        @raise ConfigurationError: a value that does not fit.
        """
        return cls(**{**defaults, **cls._values(properties, source)})

    def changed(self, properties: Mapping[str, str], source: str = "request") -> Self:
        """A copy with the values of C{properties}, as L{from_properties} reads them.

        @raise ConfigurationError: a value that does not fit.
        """
        values = self._values(properties, source)
        return attrs.evolve(self, **values) if values else self  # type: ignore[misc]

    @classmethod
    def _values(cls, properties: Mapping[str, str], source: str) -> dict[str, Any]:
        """The typed values of the keys known here, by attribute."""
        kinds = {
            field.name: str(field.type)
            for field in attrs.fields(cls)  # type: ignore[arg-type]
            if field.init
        }
        values: dict[str, Any] = {}
        for key, name in cls.keys().items():
            if key in properties and name in kinds:
                text = properties[key]
                try:
                    values[name] = cls._value(name, kinds[name], text.strip())
                except ValueError as error:
                    raise ConfigurationError(
                        f"{source}: {key} cannot be {text!r}: {error}."
                    ) from error
        return values

    @classmethod
    def _value(cls, name: str, kind: str, text: str) -> object:
        """One value.

        @raise ValueError: what it must be instead.
        """
        if kind == "int":
            low, high = cls.BOUNDS.get(name, INT)
            if not _WHOLE.match(text):
                raise ValueError("it must be a whole number")
            if not low <= (number := int(text)) <= high:
                raise ValueError(f"it must lie between {low} and {high}")
            return number
        if kind == "bool":
            if (word := text.lower()) not in ("true", "false"):
                raise ValueError("it must be true or false")
            return word == "true"
        if kind == "float":
            if not _DECIMAL.match(text):
                raise ValueError("it must be a decimal number")
            return float(text)
        choices = cls.CHOICES.get(name)
        if choices is not None and text not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        check = cls.CHECKS.get(name)
        if check is not None:
            check(text)
        resolve = cls.PATHS.get(name)
        if resolve is None:
            return text
        if not text and kind == "str":
            raise ValueError("it must be a path")
        return resolve(text)

    def as_properties(self) -> dict[str, str]:
        """All keys and values as RocketMQ prints them; those not set are left out, and
        secrets."""
        return {
            key: text_of(value)
            for key, name in self.keys().items()
            if (value := getattr(self, name)) is not None and name not in self.SECRETS
        }

    @classmethod
    def secret_keys(cls) -> frozenset[str]:
        """The keys of what is never shown."""
        return frozenset(k for k, name in cls.keys().items() if name in cls.SECRETS)


def did_you_mean(key: str, known: Iterable[str]) -> str:
    """What follows a sentence about a key that is not known: a blank and a question, or
    nothing if no key is like it.

    @param known: the keys that are known.
    """
    # Most starts need none of it.
    from difflib import get_close_matches

    # Each with what it is compared by: nobody remembers which letters are capitals.
    found = {each.lower(): each for each in known}
    close = get_close_matches(key.lower(), found, 1, SIMILAR)
    return f" Did you mean {found[close[0]]}?" if close else ""


def unknown(
    properties: Mapping[str, str], classes: Iterable[type[KeyedOptions]]
) -> dict[str, str]:
    """Those of C{properties} that none of C{classes} knows."""
    known = {key for cls in classes for key in cls.keys()}  # noqa: SIM118
    return {key: text for key, text in properties.items() if key not in known}

# -*- test-case-name: tests.auth.test_address_patterns -*-
"""Address patterns of ACL 1.0: C{10.1.*.*}, C{10.1.2.1-9}, C{10.1.2.{1,2}}, C{::1}.

They are read as RocketMQ's C{RemoteAddressStrategyFactory} reads them, odd ones too
(C{docs/facts/security-metrics.md} 2.2). There is one difference: a pattern whose star
or range stands where RocketMQ does not look for it (C{*.1.2.3}, C{1.2.3.0-0}) is
refused, as RocketMQ takes it and then fails at each request.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, TypeAlias

import attrs

from rocketbroker.auth.java_strings import tokens

#: Patterns that each address matches.
_EVERYWHERE: Final = ("*", "*.*.*.*", "*:*:*:*:*:*:*:*")

_GROUPS: Final = 8
_DECIMAL: Final = re.compile("[+-]?[0-9]{1,9}")
_HEX: Final = re.compile("[+-]?[0-9a-fA-F]{1,7}")


@attrs.frozen
class AllAddresses:
    """A pattern that each address matches."""

    def matches(self, address: str) -> bool:
        """Whether an address matches."""
        return True


@attrs.frozen
class ListedAddresses:
    """A pattern that some addresses match, or none at all."""

    addresses: frozenset[str]

    def matches(self, address: str) -> bool:
        """Whether an address matches."""
        return expanded(address) in self.addresses


@attrs.frozen
class AddressRange:
    """A pattern with a range in one part of the address, and any parts behind it.

    @ivar head: the text of the parts before it, IPv6 as L{expanded} gives it.
    @ivar index: the number of these parts.
    @ivar first: the least number of the part, and C{last} the greatest.
    """

    head: str
    index: int
    first: int
    last: int

    def matches(self, address: str) -> bool:
        """Whether an address matches."""
        text = expanded(address)
        if not text.startswith(self.head):
            return False
        colons = ":" in text
        parts = text.split(":" if colons else ".")
        if self.index >= len(parts) or colons == ("." in self.head):
            return False
        return self.first <= int(parts[self.index], 16 if colons else 10) <= self.last


#: What a pattern becomes.
AddressPattern: TypeAlias = AllAddresses | ListedAddresses | AddressRange

#: The pattern that no address matches.
NOWHERE: Final = ListedAddresses(frozenset())


def parse(text: str | None) -> AddressPattern:
    """The pattern of a text; a blank one matches nothing.

    @raise ValueError: it is no pattern.
    """
    if text is None or not text.strip():
        return NOWHERE
    if text in _EVERYWHERE:
        return AllAddresses()
    if text.endswith("}"):
        return _listed(_alternatives(text))
    if "," in text:
        return _listed(tokens(text, ","))
    if "*" in text or "-" in text:
        return _range6(text) if ":" in text else _range4(text)
    return _listed([text])


def expanded(address: str, groups: int = _GROUPS) -> str:
    """An IPv6 address with all its groups, of four capital digits each.

    An IPv4 address stays as it is. A pattern's star or range counts as a group.
    """
    if ":" not in address:
        return address
    text = address.upper()
    missing = groups - text.count(":")
    if missing > 0:
        text = text.replace("::", ":" * (missing + 1))
    return ":".join(part.rjust(4, "0") for part in text.split(":"))


def is_ipv4(text: str) -> bool:
    """Whether a text is an IPv4 address."""
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def is_ipv6(text: str) -> bool:
    """Whether a text is an IPv6 address; a prefix length and a zone may follow."""
    address, slash, bits = text.partition("/")
    if slash and not (bits.isascii() and bits.isdigit() and int(bits) <= 128):
        return False
    try:
        IPv6Address(address)
    except AddressValueError:
        return False
    return True


def _listed(addresses: Collection[str]) -> ListedAddresses:
    for address in addresses:
        if not is_ipv4(address) and not is_ipv6(address):
            raise ValueError(f"{address!r} is no address")
    return ListedAddresses(frozenset(map(expanded, addresses)))


def _alternatives(text: str) -> list[str]:
    """The addresses of C{10.1.2.{1,2}}."""
    separator = ":" if ":" in text else "."
    parts = tokens(text, separator)
    if not parts[-1].startswith("{") or (separator == "." and len(parts) < 4):
        raise ValueError(f"{text!r}: braces may only be the last part of an address")
    head = text[: text.index("{")]
    return [head + last for last in tokens(parts[-1][1:-1], ",")]


def _range4(text: str) -> AddressRange:
    """The range of C{10.1.*.*} or C{10.1.2.1-9}: the first star or range counts."""
    parts = [part.strip() for part in tokens(text, ".")]
    for index in range(1, min(4, len(parts))):
        limits = _limits(parts[index], 10, 255)
        if limits is None:
            continue
        if len(parts) != 4:
            break
        if not all(0 <= _number(part, 10) <= 255 for part in parts[: index - 1]):
            raise ValueError(f"{text!r}: a part is above 255")
        return AddressRange("".join(f"{p}." for p in parts[:index]), index, *limits)
    raise ValueError(
        f"{text!r}: a range needs four parts, and is one of the last three"
    )


def _range6(text: str) -> AddressRange:
    """The range of C{fe80::*}, C{fe80::1-9} or C{fe80::1-9:*}."""
    star, minus = "*" in text, text.find("-")
    if star and text.index("*") != len(text) - 1:
        raise ValueError(f"{text!r}: a star may only be the last part")
    *before, last_colon = (at for at, char in enumerate(text) if char == ":")
    end = last_colon if not star else before[-1] if before else -1
    if -1 < minus <= end:
        raise ValueError(f"{text!r}: a range may only be the last part before a star")
    parts = [part.strip() for part in tokens(text, ":")]
    for index in range(1, len(parts)):
        limits = _limits(parts[index], 16, 0xFFFF)
        if limits is None:
            continue
        whole = [part for part in expanded(text).split(":") if part]
        if not all(0 <= _number(part, 16) <= 0xFFFF for part in whole[: index - 1]):
            raise ValueError(f"{text!r}: a group is above FFFF")
        both = star and minus > -1
        head = text[: end if both else last_colon]
        head = expanded(head, 6 if both else 7)
        return AddressRange(head, len(tokens(head, ":")), *limits)
    raise ValueError(f"{text!r}: a range may not be the first part")


def _limits(part: str, base: int, most: int) -> tuple[int, int] | None:
    """The least and the greatest number of a part, None if it has no range."""
    if part == "*":
        return 0, most
    if "-" not in part:
        return None
    numbers = tokens(part, "-")
    if part.startswith("-") or len(numbers) < 2:
        raise ValueError(f"{part!r} is no range")
    first, last = (_number(number, base) for number in numbers[:2])
    if not 0 <= first <= last <= most:
        raise ValueError(f"{part!r} is no range from 0 to {most}")
    return (first, last) if last else None


def _number(text: str, base: int) -> int:
    """Java's C{Integer.parseInt}."""
    if not (_DECIMAL if base == 10 else _HEX).fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return int(text, base)

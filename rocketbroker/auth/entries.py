# -*- test-case-name: tests.auth.test_entries -*-
"""Policies of ACL 2.0: entries that allow or deny actions on resources.

C{docs/facts/security-metrics.md} 3.4 and 3.6; RocketMQ's C{PolicyEntry}, C{Policy} and
C{Acl}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from ipaddress import (
    IPv4Address,
    IPv6Address,
    ip_address,
    ip_network,
)
from typing import Self, TypeVar

import attrs

from rocketbroker.auth.resources import Resource

E = TypeVar("E", bound=Enum)


class Action(Enum):
    """What is done to a resource; the value is its name in texts."""

    UNKNOWN = "Unknown"
    ALL = "All"
    ANY = "Any"
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class PolicyType(Enum):
    """Custom policies come first; the others are asked where none of them matches."""

    CUSTOM = "Custom"
    DEFAULT = "Default"


class Effect(Enum):
    """What an entry decides."""

    ALLOW = "Allow"
    DENY = "Deny"


def named(kind: type[E], text: str | None) -> E | None:
    """The member of an enumeration with a name in any case, None if there is none."""
    lower = None if text is None else text.lower()
    return next((each for each in kind if each.value.lower() == lower), None)


class UnknownSource(Exception):
    """An entry has sources, and the client's address is not known."""


@attrs.frozen
class Entry:
    """One entry of a policy.

    @ivar sources: addresses and networks of clients, none for all clients.
    """

    resource: Resource
    actions: tuple[Action, ...]
    effect: Effect
    sources: tuple[str, ...] = ()

    def __str__(self) -> str:
        actions = ",".join(action.value for action in self.actions)
        sources = f" from {','.join(self.sources)}" if self.sources else ""
        return f"{self.effect.value} {actions} on {self.resource}{sources}"

    def matches(
        self, resource: Resource, actions: Collection[Action], source: str
    ) -> bool:
        """Whether it is about a request: one of the actions is enough.

        @param source: the client's address, empty if it is not known.
        @raise UnknownSource: it depends on an address that is not known.
        """
        if not self.resource.matches(resource) or not self.actions:
            return False
        if not self._allows_one_of(actions):
            return False
        if not self.sources:
            return True
        if not source:
            raise UnknownSource
        return any(is_inside(source, each) for each in self.sources)

    @property
    def is_denial(self) -> bool:
        """Whether it denies."""
        return self.effect is Effect.DENY

    def _allows_one_of(self, actions: Collection[Action]) -> bool:
        """Whether it is about one of these actions."""
        if Action.ANY in actions or Action.ALL in self.actions:
            return True
        return any(action in self.actions for action in actions)


@attrs.frozen
class Policy:
    """Entries of one type, in the order in which they were made."""

    type: PolicyType
    entries: tuple[Entry, ...]

    def with_entries(self, entries: Iterable[Entry]) -> Self:
        """The policy with more entries. One about a known resource takes the place of
        the known one."""
        found = list(self.entries)
        for entry in entries:
            at = _place(found, entry.resource)
            if at is None:
                found.append(entry)
            else:
                found[at] = entry
        return attrs.evolve(self, entries=tuple(found))

    def without(self, resource: Resource) -> Self:
        """The policy without its first entry about a resource."""
        found = list(self.entries)
        at = _place(found, resource)
        if at is not None:
            del found[at]
        return attrs.evolve(self, entries=tuple(found))


def _place(entries: Iterable[Entry], resource: Resource) -> int | None:
    """Where the first entry about a resource stands."""
    found = (at for at, each in enumerate(entries) if each.resource == resource)
    return next(found, None)


@attrs.frozen
class Acl:
    """All policies of a subject: C{User:name}."""

    subject: str
    policies: tuple[Policy, ...]

    def policy(self, kind: PolicyType) -> Policy | None:
        """The first policy of a type."""
        return next((each for each in self.policies if each.type is kind), None)

    def with_policies(self, policies: Iterable[Policy]) -> Self:
        """The same with more entries, by the type of their policies."""
        found = list(self.policies)
        for new in policies:
            for at, old in enumerate(found):
                if old.type is new.type:
                    found[at] = old.with_entries(new.entries)
                    break
            else:
                found.append(new)
        return attrs.evolve(self, policies=tuple(found))

    def without(self, kind: PolicyType, resource: Resource) -> Self:
        """The same without an entry, and without a policy that has no entry left."""
        found = list(self.policies)
        for at, policy in enumerate(found):
            if policy.type is kind:
                found[at] = policy.without(resource)
                if not found[at].entries:
                    del found[at]
                break
        return attrs.evolve(self, policies=tuple(found))


def is_inside(source: str, pattern: str) -> bool:
    """Whether a client's address is that of an entry, or in its network.

    As in RocketMQ, addresses of both families are compared as numbers: C{::/0} has all
    of them.
    """
    address = _address(source)
    if address is None:
        return source == pattern
    if "/" not in pattern:
        return address == _address(pattern)
    network = ip_network(pattern, strict=False)
    first, last = int(network.network_address), int(network.broadcast_address)
    return first <= int(address) <= last


def is_source(text: str) -> bool:
    """Whether a text is an address or a network."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" not in text or text.partition("/")[2].isdigit()


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address as a number; one of IPv4 in the form of IPv6 is that of IPv4."""
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address

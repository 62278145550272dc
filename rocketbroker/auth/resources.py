# -*- test-case-name: tests.auth.test_resources -*-
"""Resources of ACL 2.0: C{Topic:orders}, C{Group:pay*}, C{Cluster:*}, C{*}.

C{docs/facts/security-metrics.md} 3.4; RocketMQ's C{Resource}.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Self

import attrs

from rocketbroker.records.names import is_retry_topic, retry_topic

ASTERISK: Final = "*"


class ResourceType(Enum):
    """The kind of a resource; the value is its name in texts."""

    UNKNOWN = "Unknown"
    ANY = "Any"
    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


class Pattern(Enum):
    """How the name of a resource is compared; the value is its rank, best first."""

    LITERAL = 0
    PREFIXED = 1
    ANY = 2


_TYPES: Final = {kind.value.lower(): kind for kind in ResourceType}


@attrs.frozen
class Resource:
    """A resource, or all of a pattern.

    @ivar name: its name, or how names begin; None for any, and where a request that
        should name one does not.
    """

    type: ResourceType
    name: str | None
    pattern: Pattern = Pattern.LITERAL

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """The resource of a text, None if it is none. What stands behind the first
        star of a prefix is dropped."""
        if text is None or not text.strip():
            return None
        if text == ASTERISK:
            return cls(ResourceType.ANY, None, Pattern.ANY)
        kind_text, _, name = text.partition(":")
        kind = _TYPES.get(kind_text.lower())
        if kind is None:
            return None
        if name == ASTERISK:
            return cls(kind, None, Pattern.ANY)
        if name.endswith(ASTERISK):
            return cls(kind, name.partition(ASTERISK)[0], Pattern.PREFIXED)
        return cls(kind, name)

    def __str__(self) -> str:
        if self.type is ResourceType.ANY:
            return ASTERISK
        if self.pattern is Pattern.ANY:
            return f"{self.type.value}:{ASTERISK}"
        star = ASTERISK if self.pattern is Pattern.PREFIXED else ""
        return f"{self.type.value}:{'null' if self.name is None else self.name}{star}"

    def matches(self, wanted: Resource) -> bool:
        """Whether the resource that a request wants is this one, or one of these."""
        if self.type is ResourceType.ANY:
            return True
        if self.type is not wanted.type:
            return False
        if self.pattern is Pattern.ANY:
            return True
        if self.pattern is Pattern.LITERAL:
            return self.name == wanted.name
        prefix, name = self.name, wanted.name
        return prefix is not None and name is not None and name.startswith(prefix)


def topic(name: str | None) -> Resource:
    """A topic."""
    return Resource(ResourceType.TOPIC, name)


def group(name: str | None) -> Resource:
    """A group, by its name or by that of its retry topic."""
    if name is not None and is_retry_topic(name):
        name = name[len(retry_topic("")) :]
    return Resource(ResourceType.GROUP, name)


def cluster(name: str) -> Resource:
    """A cluster."""
    return Resource(ResourceType.CLUSTER, name)

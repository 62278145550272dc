# -*- test-case-name: tests.auth.test_order -*-
"""The order of entries that match a request: the first one decides.

Since 5.4 the closest one is first: an entry about a kind of resource before C{*}, the
name itself before a prefix, a prefix before all names, a longer prefix before a shorter
one, and among equals the one that denies.

5.3 meant that, too, but its comparison is wrong: shorter prefixes come first, an entry
that allows comes before one that denies, and of a name and a prefix each is before the
other. What is first then depends on how the entries are sorted, so that Java's sort
stands here, as it is for fewer than 32 entries (C{docs/facts/security-metrics.md} 3.6;
RocketMQ's C{AclAuthorizationHandler}).
"""

from __future__ import annotations

from collections.abc import Sequence

from rocketbroker.auth.entries import Effect, Entry
from rocketbroker.auth.resources import Pattern, ResourceType
from rocketbroker.auth.wanted import Release


def first(entries: Sequence[Entry], release: Release) -> Entry:
    """The entry that decides, of those that match a request in their stored order."""
    if release is Release.V5_4:
        return min(entries, key=_closeness)
    return _sorted_by_java(entries)[0]


def _closeness(entry: Entry) -> tuple[bool, int, int, bool]:
    """The key of the order of 5.4."""
    resource = entry.resource
    length = 0
    if resource.pattern is Pattern.PREFIXED and resource.name is not None:
        length = len(resource.name)
    return (
        resource.type is ResourceType.ANY,
        resource.pattern.value,
        -length,
        entry.effect is not Effect.DENY,
    )


def _compare(one: Entry, other: Entry) -> int:
    """The comparison of 5.3: negative if the first comes first."""
    a, b = one.resource, other.resource
    found = 0
    if a.type is not b.type:
        found = -1 if b.type is ResourceType.ANY else int(a.type is ResourceType.ANY)
    elif a.pattern is b.pattern:
        if a.pattern is Pattern.PREFIXED:
            found = len(a.name or "") - len(b.name or "")
    elif a.pattern is not Pattern.ANY:
        found = -1
    if found:
        return found
    if one.effect is Effect.DENY:
        return 1
    return -1 if other.effect is Effect.DENY else 0


def _sorted_by_java(entries: Sequence[Entry]) -> list[Entry]:
    """The entries as C{List.sort} leaves them: a run at the begin, which is turned
    round if it goes down, and then one entry after the other put in by halving."""
    found = list(entries)
    run = _run(found)
    for at in range(run, len(found)):
        pivot = found.pop(at)
        left, right = 0, at
        while left < right:
            middle = (left + right) // 2
            if _compare(pivot, found[middle]) < 0:
                right = middle
            else:
                left = middle + 1
        found.insert(left, pivot)
    return found


def _run(entries: list[Entry]) -> int:
    """How many entries at the begin are in order, once those that go down are turned
    round."""
    if len(entries) < 2:
        return len(entries)
    downwards = _compare(entries[1], entries[0]) < 0
    end = 2
    while (
        end < len(entries)
        and (_compare(entries[end], entries[end - 1]) < 0) is downwards
    ):
        end += 1
    if downwards:
        entries[:end] = reversed(entries[:end])
    return end

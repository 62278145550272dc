# -*- test-case-name: tests.routing.test_allocation -*-
"""The rebalance strategies that clients name, as RocketMQ's clients compute them.

All members see the same queues and members in the same order, so that each finds its
own share without asking the others. docs/facts/broker.md 19.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

T = TypeVar("T")


def allocate(
    strategy: str, queues: Sequence[T], members: Sequence[str], member: str
) -> list[T] | None:
    """The queues of one member.

    @param queues: all, sorted.
    @param members: all, sorted.
    @return: no queues for a stranger; None for an unknown strategy.
    """
    if strategy not in STRATEGIES:
        return None
    if member not in members:
        return []
    return STRATEGIES[strategy](queues, members.index(member), len(members))


def allocate_shared(
    strategy: str, queues: Sequence[T], members: Sequence[str], member: str, share: int
) -> list[T] | None:
    """The queues of one member, which it shares with those before it.

    Consumers that pop may share queues: a member has its own, and those of the next
    C{share} members.

    @param queues: all, sorted.
    @param members: all, sorted.
    @return: no queues for a stranger; None for an unknown strategy.
    """
    if strategy not in STRATEGIES:
        return None
    if member not in members or not queues:
        return []
    at, count = members.index(member), len(members)
    if count > len(queues):
        return [queues[at % len(queues)]]
    found: list[T] = []
    for n in range(min(share, count - 1) + 1):
        found += STRATEGIES[strategy](queues, (at + n) % count, count)
    return found


def averaged(queues: Sequence[T], at: int, count: int) -> list[T]:
    """AVG: as many for each member, in one piece; the first ones get one more.

    >>> [averaged("abcde", at, 2) for at in range(2)]
    [['a', 'b', 'c'], ['d', 'e']]
    """
    size, more = divmod(len(queues), count)
    begin = at * size + min(at, more)
    return list(queues[begin : begin + size + (at < more)])


def by_circle(queues: Sequence[T], at: int, count: int) -> list[T]:
    """AVG_BY_CIRCLE: dealt out like cards.

    >>> [by_circle("abcde", at, 2) for at in range(2)]
    [['a', 'c', 'e'], ['b', 'd']]
    """
    return list(queues[at::count])


#: The strategies by name: queues, place of the member, number of members.
STRATEGIES: Final[dict[str, Callable[[Sequence[Any], int, int], list[Any]]]] = {
    "AVG": averaged,
    "AVG_BY_CIRCLE": by_circle,
}

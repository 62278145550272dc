# -*- test-case-name: tests.routing.test_allocation -*-
"""The rebalance strategies of RocketMQ's clients: which member of a group has which
queues of a topic.

All members see the same queues and members in the same order, so that each finds its
own share without asking the others. Members in Java and ours may be in one group, so
every strategy gives exactly what the class of Java's client gives::

  =======================  =====================================
  here                     in Java
  =======================  =====================================
  "AVG"                    AllocateMessageQueueAveragely
  "AVG_BY_CIRCLE"          AllocateMessageQueueAveragelyByCircle
  "CONSISTENT_HASH",       AllocateMessageQueueConsistentHash
  ConsistentHash
  Configured               AllocateMessageQueueByConfig
  MachineRooms             AllocateMessageQueueByMachineRoom
  NearbyRoom               AllocateMachineRoomNearby
  =======================  =====================================

Clients choose among all of them (L{named}); the broker, asked by request 400, knows the
first two, as Java's does (L{allocate}). C{docs/facts/client.md} 17,
C{docs/facts/broker.md} 19.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import md5
from typing import Any, Final, TypeAlias, TypeVar, final

import attrs

from rocketbroker.errors import ConfigurationError
from rocketbroker.routing.topic_view import MessageQueue

T = TypeVar("T")

#: What works out the queues of one member: of all queues, all members, both sorted, and
#: the id of the member. None is no queue.
Strategy: TypeAlias = Callable[
    [Sequence[MessageQueue], Sequence[str], str], Sequence[MessageQueue] | None
]

#: How many places on the ring one member has, as in Java.
VIRTUAL_NODES: Final = 10


def allocate(
    strategy: str, queues: Sequence[T], members: Sequence[str], member: str
) -> list[T] | None:
    """The queues of one member, by a strategy that a broker knows.

    @param queues: all, sorted.
    @param members: all, sorted.
    @return: no queues for a stranger; None for an unknown strategy, or if there is
        nothing to share or nobody to share it.
    """
    if strategy not in STRATEGIES or not (queues and members and member):
        return None
    return _divided(STRATEGIES[strategy], queues, members, member)


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


#: What a broker knows, by name: queues, place of the member, number of members.
STRATEGIES: Final[dict[str, Callable[[Sequence[Any], int, int], list[Any]]]] = {
    "AVG": averaged,
    "AVG_BY_CIRCLE": by_circle,
}


def _divided(
    divide: Callable[[Sequence[T], int, int], list[T]],
    queues: Sequence[T],
    members: Sequence[str],
    member: str,
) -> list[T]:
    if not _is_member(queues, members, member):
        return []
    return divide(queues, members.index(member), len(members))


def _is_member(queues: Sequence[object], members: Sequence[str], member: str) -> bool:
    """Whether a member is one; a stranger has no queues.

    @raise ValueError: there is nothing to share, or nobody to share it.
    """
    if not member:
        raise ValueError("the id of the member is empty")
    if not queues:
        raise ValueError("there are no queues to share")
    if not members:
        raise ValueError("there are no members to share the queues")
    return member in members


# The strategies of clients. Each raises ValueError where Java's raises
# IllegalArgumentException: the members then keep the queues that they have.


def averagely(
    queues: Sequence[MessageQueue], members: Sequence[str], member: str
) -> list[MessageQueue]:
    """See L{averaged}."""
    return _divided(averaged, queues, members, member)


def averagely_by_circle(
    queues: Sequence[MessageQueue], members: Sequence[str], member: str
) -> list[MessageQueue]:
    """See L{by_circle}."""
    return _divided(by_circle, queues, members, member)


def _virtual_nodes(instance: object, attribute: object, value: int) -> None:
    if value < 0:
        raise ConfigurationError(f"virtual_nodes has to be 0 or more, not {value}")


@final
@attrs.frozen
class ConsistentHash:
    """A ring, on which most queues keep their owner when a member comes or goes.

    A member has several places on it, so that the shares are not too different; a queue
    belongs to the member whose place is next.
    """

    virtual_nodes: int = attrs.field(default=VIRTUAL_NODES, validator=_virtual_nodes)

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], member: str
    ) -> list[MessageQueue]:
        """See L{Strategy}."""
        if not _is_member(queues, members, member):
            return []
        owners: dict[int, str] = {}
        places = Counter[str]()
        for one in members:
            for _ in range(self.virtual_nodes):
                owners[_hashed(f"{one}-{places[one]}")] = one
                places[one] += 1
        if not owners:
            return []
        ring = sorted(owners)
        return [
            queue
            for queue in queues
            if owners[ring[bisect_left(ring, _hashed(_java_text(queue))) % len(ring)]]
            == member
        ]


def _hashed(text: str) -> int:
    """The place of a text on the ring: ConsistentHashRouter.MD5Hash."""
    digest = md5(text.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


def _java_text(queue: MessageQueue) -> str:
    """A queue as Java's MessageQueue.toString writes it."""
    return (
        f"MessageQueue [topic={queue.topic}, brokerName={queue.broker}, "
        f"queueId={queue.queue_id}]"
    )


def _listed(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    return tuple(queues)


@final
@attrs.frozen
class Configured:
    """Queues that the program has chosen, whoever the other members are.

    What nobody names is read by nobody, also queues of the group's retry topic.
    """

    queues: Sequence[MessageQueue] = attrs.field(converter=_listed)

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], member: str
    ) -> list[MessageQueue]:
        """See L{Strategy}."""
        return list(self.queues)


def _named_rooms(rooms: Iterable[str]) -> frozenset[str]:
    return frozenset(rooms)


@final
@attrs.frozen
class MachineRooms:
    """Queues of brokers in certain rooms, the others being read by another group.

    The name of a broker has to be C{room@name}. The rest that cannot be divided goes,
    one by one, to the first members.

    @ivar rooms: whose queues are read.
    """

    rooms: frozenset[str] = attrs.field(converter=_named_rooms)

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], member: str
    ) -> list[MessageQueue]:
        """See L{Strategy}."""
        if not _is_member(queues, members, member):
            return []
        ours = [queue for queue in queues if _room(queue.broker) in self.rooms]
        at, count = members.index(member), len(members)
        size, more = divmod(len(ours), count)
        found = ours[at * size : (at + 1) * size]
        return found + ours[count * size + at :][: at < more]


def _room(broker: str) -> str | None:
    """The room in the name of a broker; Java's split drops what is empty at the end."""
    parts = broker.rstrip("@").split("@")
    return parts[0] if len(parts) == 2 else None


@final
@attrs.frozen
class NearbyRoom:
    """Each room's queues for the members in that room; those of a room without members
    for all.

    @ivar inner: the strategy by which they share them.
    @ivar room_of_queue: says where the broker of a queue stands.
    @ivar room_of_member: says where the member with an id runs.
    """

    inner: Strategy
    room_of_queue: Callable[[MessageQueue], str | None]
    room_of_member: Callable[[str], str | None]

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], member: str
    ) -> list[MessageQueue]:
        """See L{Strategy}."""
        if not _is_member(queues, members, member):
            return []
        near = _by_room(queues, self.room_of_queue)
        present = _by_room(members, self.room_of_member)
        home = self.room_of_member(member) or ""
        found: list[MessageQueue] = []
        if home in near:
            found += self.inner(near.pop(home), present[home], member) or ()
        for room in sorted(near.keys() - present.keys()):
            found += self.inner(near[room], members, member) or ()
        return found


def _by_room(
    things: Iterable[T], room_of: Callable[[T], str | None]
) -> dict[str, list[T]]:
    """
    @raise ValueError: one of them is in no room.
    """
    found: dict[str, list[T]] = {}
    for one in things:
        room = room_of(one)
        if not room:
            raise ValueError(f"no room is known of {one}")
        found.setdefault(room, []).append(one)
    return found


#: The strategies of clients that need no more than a name.
NAMED: Final[dict[str, Strategy]] = {
    "AVG": averagely,
    "AVG_BY_CIRCLE": averagely_by_circle,
    "CONSISTENT_HASH": ConsistentHash(),
}


def named(strategy: str | Strategy) -> Strategy:
    """A strategy by its name; one that is given is taken as it is.

    @raise ConfigurationError: there is none.
    """
    if isinstance(strategy, str) and strategy in NAMED:
        return NAMED[strategy]
    if callable(strategy):
        return strategy
    raise ConfigurationError(
        f"there is no strategy {strategy!r}; there are {', '.join(NAMED)}, and any "
        "function of queues, members and member"
    )

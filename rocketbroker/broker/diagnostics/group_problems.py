# -*- test-case-name: tests.broker.diagnostics.test_group_problems -*-
"""The rules for problems of a group that its members cannot see: pure, from the tables.

Different subscriptions: the broker keeps one set for the whole group, that of the last
heartbeat (docs/facts/broker.md 15.4), while queues are shared among all members.

A client id that is there twice: queues are shared among client ids, so both clients
take the same queues. When a connection is cut, its client comes back by another one,
and the old one stays in the registry for two minutes: that is no second client. So two
connections with one id count only if the older one has sent something since the newer
one came, within one interval of heartbeats, which is half a minute. Members that
broadcast do not share queues, and by default all those of one machine have the same id:
they are left out.

Topics and groups that may not be read: consumers ask again and again, and only their
logs show the reason. A client that pulls without a heartbeat is known by the pulls that
were refused.

A topic that is on no broker: its name may be wrong, and its consumer does not even
pull. A topic that is only not on this broker is no problem: clients send heartbeats to
all brokers that they know, whichever topics these have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final, TypeAlias

import attrs

from rocketbroker.broker.clients.consumers import BROADCASTING, ConsumerGroup
from rocketbroker.broker.clients.members import Member
from rocketbroker.broker.clients.subscription_digest import TOO_LONG, expressions
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import READ, TopicTable
from rocketbroker.broker.pull.denied_pulls import ANY_TOPIC, Refused
from rocketbroker.broker.registration.route_cache import RouteCache

# Kinds of problems, as the request, the page and the metrics name them.
SUBSCRIPTIONS: Final = "subscriptions"
CLIENT_ID: Final = "client-id"
GROUP_DISABLED: Final = "group-disabled"
BROADCAST_DISABLED: Final = "broadcast-disabled"
TOPIC_MISSING: Final = "topic-missing"
TOPIC_UNREADABLE: Final = "topic-unreadable"
TOPIC_FORBIDDEN: Final = "topic-forbidden"

KINDS: Final = (
    SUBSCRIPTIONS,
    CLIENT_ID,
    GROUP_DISABLED,
    BROADCAST_DISABLED,
    TOPIC_MISSING,
    TOPIC_UNREADABLE,
    TOPIC_FORBIDDEN,
)

#: So many different sets of subscriptions of one group are compared, and so many sides
#: of a problem shown; that is enough to read.
MAX_SIDES: Final = 16

#: So many members of each side are named; all are counted.
MAX_NAMED: Final = 5

#: So many problems of one group are found.
MAX_OF_GROUP: Final = 50

#: So many characters of a client's text are repeated.
MAX_SHOWN: Final = 128

#: The expression of a member for a topic that it does not subscribe to.
NOTHING: Final = "(not subscribed)"

#: The client id of a client that pulls and is no member; its language and release are
#: not known either.
UNKNOWN: Final = "(no member)"

LEADS_TO: Final = {
    SUBSCRIPTIONS: (
        "The broker filters for the whole group by what the last heartbeat said, and "
        "queues are shared among all members: messages that some members want are "
        "passed over and count as consumed, or stay where they are."
    ),
    CLIENT_ID: (
        "Queues are shared among client ids: clients with the same one take the same "
        "queues, consume each message of them more than once, and overwrite each "
        "other's offsets. Clients in containers often are all process 1: give each an "
        "instance name."
    ),
    GROUP_DISABLED: (
        "The group may not consume (consumeEnable), or is not there any more: its "
        "pulls are refused and messages pile up."
    ),
    BROADCAST_DISABLED: (
        "The group may not broadcast (consumeBroadcastEnable) and does: its pulls are "
        "refused."
    ),
    TOPIC_MISSING: (
        "No broker has the topic, as far as this one and its name servers know: its "
        "name may be wrong, or it was deleted."
    ),
    TOPIC_UNREADABLE: (
        "The topic may not be read (perm): pulls are refused and messages pile up."
    ),
    TOPIC_FORBIDDEN: (
        "This group is forbidden to read the topic: its pulls are refused and messages "
        "pile up."
    ),
}


@attrs.frozen
class Who:
    """A group's member, as a problem names it.

    @ivar version: the ordinal of its release.
    """

    client_id: str
    address: str
    language: str
    version: int

    def to_json(self) -> dict[str, object]:
        """As lists of connections show it."""
        return {
            "clientId": self.client_id,
            "clientAddr": self.address,
            "language": self.language,
            "version": self.version,
        }


@attrs.frozen
class Side:
    """Members that agree with each other.

    @ivar what: their expression, or their kind.
    @ivar count: how many they are.
    @ivar members: the first of them.
    """

    what: str
    count: int
    members: tuple[Who, ...]

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "what": self.what,
            "count": self.count,
            "members": [who.to_json() for who in self.members],
        }


@attrs.frozen
class Problem:
    """One thing that is wrong.

    @ivar kind: one of L{KINDS}.
    @ivar subject: the topic, client id or group that it is about.
    """

    kind: str
    subject: str
    sides: tuple[Side, ...]


#: The members by topic and expression.
Wishes: TypeAlias = tuple[dict[str, str], list[Member]]


def shown(text: str) -> str:
    """The text of a client, cut to a limit, and such that it can be encoded."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[:MAX_SHOWN]}... ({len(text)} characters)"


def who(member: Member) -> Who:
    """How a member is shown."""
    return Who(
        shown(member.client_id),
        member.connection.peer,
        shown(member.language or ""),
        member.version,
    )


def side(
    what: str, members: Sequence[Member], others: Sequence[Member | str] = ()
) -> Side:
    """Members that have something in common.

    @param others: the clients that were refused: members or addresses.
    """
    those = {member.connection.peer for member in members} if others else set()
    more = [
        Who(UNKNOWN, other, "", 0) if isinstance(other, str) else who(other)
        for other in others
        if (other if isinstance(other, str) else other.connection.peer) not in those
    ]
    named = [*map(who, members[:MAX_NAMED]), *more][:MAX_NAMED]
    return Side(shown(what), len(members) + len(more), tuple(named))


def problems_of(
    name: str,
    group: ConsumerGroup | None,
    topics: TopicTable,
    groups: GroupTable,
    route_cache: RouteCache,
    refused: Refused,
) -> tuple[list[Problem], bool]:
    """The problems of a group.

    @param group: None if it has no members.
    @param refused: whose pulls were refused lately.
    @return: at the most L{MAX_OF_GROUP} problems; and whether to look again: there is
        a client id that is there twice, but perhaps not for long, or a topic that is
        not here.
    """
    if group is None:
        allowed = not_allowed(name, [], [], topics, groups, route_cache, refused)
        return list(islice(allowed, MAX_OF_GROUP)), False
    by_wants: dict[bytes, list[Member]] = {}
    by_client: dict[str, Member] = {}
    twice: dict[str, list[Member]] = {}
    for member in group.members.values():
        if member.digest is not None:
            by_wants.setdefault(member.digest, []).append(member)
        first = by_client.setdefault(member.client_id, member)
        if first is not member:
            twice.setdefault(member.client_id, [first]).append(member)
    wants = [
        (expressions(value), members)
        for value, members in islice(by_wants.items(), MAX_SIDES)
    ]
    if group.message_model == BROADCASTING:
        twice.clear()
    clients = [living(members) for members in twice.values()]
    doubled = (
        Problem(
            CLIENT_ID,
            shown(members[0].client_id),
            (side("connected more than once", members),),
        )
        for members in clients
        if len(members) > 1
    )
    members = list(group.members.values())
    found = chain(
        different(wants),
        doubled,
        not_allowed(name, members, wants, topics, groups, route_cache, refused),
        no_broadcasting(group, groups),
    )
    problems = list(islice(found, MAX_OF_GROUP))
    unsettled = any(len(members) == 1 for members in clients) or any(
        route_cache.may_appear(topic)
        for wanted, _ in wants
        for topic in wanted
        if topics.config(topic) is None and topic != TOO_LONG
    )
    return problems, unsettled


def living(members: list[Member]) -> list[Member]:
    """Those connections of one client id that were heard since the newest came."""
    newest = max(members, key=lambda member: member.joined)
    return [m for m in members if m is newest or m.seen > newest.joined]


def different(
    wants: Sequence[Wishes],
) -> Iterable[Problem]:
    """Topics of which the members of a group want different things."""
    if len(wants) < 2:
        return
    topics = sorted({topic for wanted, _ in wants for topic in wanted})
    if TOO_LONG in topics:
        topics = [TOO_LONG]
    for topic in topics:
        if len({wanted.get(topic, NOTHING) for wanted, _ in wants}) < 2:
            continue
        sides: dict[str, list[Member]] = {}
        for wanted, members in wants:
            sides.setdefault(wanted.get(topic, NOTHING), []).extend(members)
        yield Problem(
            SUBSCRIPTIONS,
            shown(topic),
            tuple(side(what, members) for what, members in sides.items()),
        )


def not_allowed(
    name: str,
    members: Sequence[Member],
    wants: Sequence[Wishes],
    topics: TopicTable,
    groups: GroupTable,
    route_cache: RouteCache,
    refused: Refused,
) -> Iterable[Problem]:
    """The topics that a group asks for and may not have."""
    by_address = {m.connection.peer: m for m in members} if refused else {}

    def refused_at(topic: str) -> list[Member | str]:
        return [by_address.get(peer, peer) for peer in refused.get(topic, ())]

    config = groups.config(name)
    if config is None or not config.consume_enable:
        what = "not there" if config is None else "consumeEnable=false"
        others = refused_at(ANY_TOPIC)
        if members or (config is not None and others):
            yield Problem(GROUP_DISABLED, shown(name), (side(what, members, others),))
    wanted_topics = {topic for wanted, _ in wants for topic in wanted}
    for topic in sorted(wanted_topics.union(refused) - {ANY_TOPIC, TOO_LONG}):
        known = topics.config(topic)
        if known is None:
            if topic not in wanted_topics or route_cache.has(topic) is not False:
                continue
            kind, what = TOPIC_MISSING, "on no broker"
        elif not known.perm & READ:
            kind, what = TOPIC_UNREADABLE, f"perm={known.perm}"
        elif groups.read_forbidden(name, topic):
            kind, what = TOPIC_FORBIDDEN, "forbidden to this group"
        else:
            continue
        those = [m for wanted, each in wants if topic in wanted for m in each]
        yield Problem(kind, shown(topic), (side(what, those, refused_at(topic)),))


def no_broadcasting(group: ConsumerGroup, groups: GroupTable) -> Iterable[Problem]:
    """Whether members broadcast and may not; if they may consume at all."""
    config = groups.config(group.name)
    if group.message_model != BROADCASTING or config is None:
        return
    if config.consume_enable and not config.consume_broadcast_enable:
        what = "consumeBroadcastEnable=false"
        members = list(group.members.values())
        yield Problem(BROADCAST_DISABLED, shown(group.name), (side(what, members),))

# -*- test-case-name: tests.broker.clients.test_consumers -*-
"""The consumers that are online, by group, and their subscriptions.

A member is a connection, not a client: a client that connects twice is two members
until the older connection goes.

Rules: docs/facts/broker.md 15.4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from rocketbroker.broker.clients.members import Member, MemberLog
from rocketbroker.broker.clients.subscription_digest import digest_of
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.json_writer import Written, dumps, quoted

#: The message model whose members each have all queues, without rebalancing.
BROADCASTING: Final = "BROADCASTING"

#: The consume type of push consumers.
PASSIVELY: Final = "CONSUME_PASSIVELY"


@final
class ConsumerGroup:
    """The members of a group and its subscriptions.

    The last heartbeat of any member decides for the whole group.

    @ivar subscriptions: by topic; a value is replaced, never changed.
    @ivar members: by connection; L{add} and L{remove} change them.
    @ivar fingerprint: that of the last heartbeat, None before the first.
    @ivar digest: of the member whose subscriptions were the last to change.
    @ivar revision: moves when a subscription is added, replaced or removed.
    @ivar new_retry_topic: whether its retry topic was made since it has members.
    """

    __slots__ = (
        "_list",
        "consume_from_where",
        "consume_type",
        "digest",
        "fingerprint",
        "members",
        "message_model",
        "name",
        "new_retry_topic",
        "revision",
        "subscriptions",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.consume_type: str | None = None
        self.message_model: str | None = None
        self.consume_from_where: str | None = None
        self.fingerprint: int | None = None
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.members: dict[IConnection, Member] = {}
        self.digest: bytes | None = None
        self.revision = 0
        self.new_retry_topic = False
        self._list: bytes | None = None

    def add(self, member: Member) -> None:
        """Take a member in, or let it take the place of that on its connection."""
        self.members[member.connection] = member
        self._list = None

    def remove(self, connection: IConnection) -> Member | None:
        """Let the member on a connection go; None if there is none."""
        self._list = None
        return self.members.pop(connection, None)

    def client_ids(self) -> list[str]:
        """The members' client ids; one that is connected twice is there once."""
        return list(dict.fromkeys(member.client_id for member in self.members.values()))

    def member_list(self) -> bytes:
        """The client ids as the body that answers request 38.

        Each member asks after each notice; so it is written once for all of them.
        """
        if self._list is None:
            ids = ",".join(map(quoted, self.client_ids()))
            self._list = dumps({"consumerIdList": Written(["[", ids, "]"])})
        return self._list

    def subscribe(self, wanted: list[SubscriptionData]) -> bool:
        """Take over the subscriptions of a heartbeat.

        @return: whether a topic was added or removed; a newer version of one that was
            there replaces it and is no change.
        """
        changed = False
        topics = set()
        for subscription in wanted:
            topics.add(subscription.topic)
            known = self.subscriptions.get(subscription.topic)
            if known is None:
                changed = True
            elif subscription.sub_version <= known.sub_version:
                continue
            self.subscriptions[subscription.topic] = subscription
            self.revision += 1
        for topic in self.subscriptions.keys() - topics:
            del self.subscriptions[topic]
            self.revision += 1
            changed = True
        return changed


#: Called with a group whose members have to rebalance, and the one that alone has to.
Changed: TypeAlias = Callable[[ConsumerGroup, IConnection | None], None]


@final
class ConsumerRegistry:
    """All consumer groups that have members.

    @ivar expired: how many members went silent and were removed.
    @ivar touched: the groups whose members or subscriptions have changed since the
        diagnosis has emptied it.
    @ivar broadcasting: the groups of push consumers that broadcast.
    @ivar generation: moves when subscriptions of any group may have changed.
    """

    def __init__(
        self, seconds: Callable[[], float], log: MemberLog, changed: Changed
    ) -> None:
        """
        @param seconds: the monotonic time.
        """
        self.expired = 0
        self.touched: set[str] = set()
        self.broadcasting: set[str] = set()
        self.generation = 0
        self._log = log
        self._changed = changed
        self._seconds = seconds
        self._groups: dict[str, ConsumerGroup] = {}
        # A tuple is a quarter of a set, and most connections are in one group.
        self._groups_of: dict[IConnection, tuple[str, ...]] = {}

    def group(self, name: str) -> ConsumerGroup | None:
        """The group if it has members."""
        return self._groups.get(name)

    def groups(self) -> list[ConsumerGroup]:
        """All groups with members."""
        return list(self._groups.values())

    def subscription(self, group: str, topic: str) -> SubscriptionData | None:
        """The subscription of a group with members to a topic."""
        found = self._groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def is_subscribed(self, group: str, topic: str) -> bool:
        """Whether a group with members subscribes to a topic."""
        return self.subscription(group, topic) is not None

    def groups_of_topic(self, topic: str) -> list[str]:
        """The groups with members that subscribe to a topic."""
        return [
            group.name
            for group in self._groups.values()
            if topic in group.subscriptions
        ]

    def member(self, group: str, client_id: str) -> Member | None:
        """The newest connection of a client in a group."""
        found = self._groups.get(group)
        members = [] if found is None else list(found.members.values())
        for member in reversed(members):
            if member.client_id == client_id:
                return member
        return None

    def groups_on(self, connection: IConnection) -> Sequence[str]:
        """The groups that a connection is a member of."""
        return self._groups_of.get(connection, ())

    def register(
        self,
        connection: IConnection,
        client_id: str,
        language: str | None,
        version: int,
        data: ConsumerData,
        notify: bool,
        with_subscriptions: bool = True,
    ) -> ConsumerGroup:
        """A heartbeat of one member.

        @param notify: whether the members may be notified.
        @param with_subscriptions: False if the heartbeat left its subscriptions out,
            because the broker knows them.
        """
        group = self._groups.get(data.group_name)
        if group is None:
            group = self._groups[data.group_name] = ConsumerGroup(data.group_name)
        before = group.consume_type, group.message_model, group.revision
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from_where = data.consume_from_where
        if (data.message_model, data.consume_type) == (BROADCASTING, PASSIVELY):
            self.broadcasting.add(group.name)
        else:
            self.broadcasting.discard(group.name)
        changed = self._join(group, connection, client_id, language, version)
        if with_subscriptions:
            changed |= group.subscribe(data.subscription_data_set)
            self._keep_digest(group, group.members[connection], data)
        if before != (group.consume_type, group.message_model, group.revision):
            self.generation += 1
        if changed and notify:
            self._notify(group)
        return group

    def _keep_digest(
        self, group: ConsumerGroup, member: Member, data: ConsumerData
    ) -> None:
        """Keep a member's digest; one copy for all members with the same one."""
        digest = digest_of(data.subscription_data_set)
        if digest == member.digest:
            return
        if digest != group.digest:
            group.digest = digest
        member.digest = group.digest
        self.touched.add(group.name)

    def _join(
        self,
        group: ConsumerGroup,
        connection: IConnection,
        client_id: str,
        language: str | None,
        version: int,
    ) -> bool:
        member = group.members.get(connection)
        now = self._seconds()
        if member is not None and member.client_id == client_id:
            member.seen = now
            return False
        joined = Member(connection, client_id, language, version, now)
        joined.notify_again = group.new_retry_topic
        group.add(joined)
        self.touched.add(group.name)
        groups = self._groups_of.get(connection)
        if groups is None:
            self._groups_of[connection] = (group.name,)
            connection.watch_close(self._closed)
        elif group.name not in groups:
            self._groups_of[connection] = (*groups, group.name)
        self._log.joined("consumer", group.name, joined, len(group.members))
        return member is None

    def retry_topic_made(self, name: str) -> None:
        """Clients can find the retry topic that was made for a group's first members.

        They are notified, and again when they rebalance: see L{heartbeats
        <rocketbroker.broker.clients.heartbeats>}.
        """
        group = self._groups.get(name)
        if group is None:
            return
        group.new_retry_topic = True
        for member in group.members.values():
            member.notify_again = True
        self._notify(group)

    def rebalances(self, group: ConsumerGroup, connection: IConnection) -> None:
        """A client asks for the members of a group, as in each rebalancing."""
        member = group.members.get(connection)
        if member is not None and member.notify_again:
            member.notify_again = False
            self._changed(group, connection)

    def unregister(self, connection: IConnection, name: str, notify: bool) -> None:
        """A member says that it leaves."""
        self._remove(connection, name, notify, "it unregistered")

    def _remove(
        self, connection: IConnection, name: str, notify: bool, reason: str
    ) -> None:
        self._leave(connection, name, notify, reason)
        groups = self._groups_of.get(connection, ())
        if name in groups:
            others = tuple(each for each in groups if each != name)
            self._groups_of[connection] = others

    def _leave(
        self, connection: IConnection, name: str, notify: bool, reason: str
    ) -> None:
        group = self._groups.get(name)
        member = None if group is None else group.remove(connection)
        if group is None or member is None:
            return
        self.touched.add(name)
        self._log.left("consumer", name, member, len(group.members), reason)
        if not group.members:
            del self._groups[name]
            self.broadcasting.discard(name)
            self.generation += 1
        elif notify:
            self._notify(group)

    def _closed(self, connection: IConnection) -> None:
        for name in sorted(self._groups_of.pop(connection, ())):
            self._leave(connection, name, True, "its connection was closed")

    def scan(self, max_silent: float) -> None:
        """Remove and close members that have been silent for too long.

        @param max_silent: in seconds.
        """
        oldest = self._seconds() - max_silent
        for group in self.groups():
            for member in list(group.members.values()):
                if member.seen < oldest:
                    self.expired += 1
                    reason = f"it was silent for {max_silent:.0f} s"
                    self._remove(member.connection, group.name, False, reason)
                    member.connection.close()

    def _notify(self, group: ConsumerGroup) -> None:
        if group.message_model != BROADCASTING:
            self._changed(group, None)

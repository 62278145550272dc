# -*- test-case-name: tests.broker.clients.test_repeated_heartbeats -*-
"""Heartbeats that say again what the last one of their connection has said.

Nearly all heartbeats do. A client sends the same bytes every 30 seconds, but for the
opaque; all that becomes of it is that its members were seen. So a hash of these bytes
is kept with the members, and a heartbeat with the same hash is answered without being
decoded.

What a heartbeat does rests on topics, groups, subscriptions and settings, too: the hash
is of their generations as well. It is kept when the general way has taken a heartbeat
that left nothing to do for a second one like it.

A heartbeat of the second version always goes the general way: its answer depends on
what others of the group have said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.members import Member
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.hot import HEARTBEAT_ANSWER, cut_at_opaque, frame_of


class Elsewhere(Protocol):
    """Lets another process answer the heartbeats of its connections."""

    def remember(self, connection: IConnection, opaque: int) -> bool:
        """The request with that opaque was a heartbeat that may be repeated.

        @return: whether the connection is one of another process, which answers.
        """

    def forget(self, connection: IConnection) -> None:
        """Let the next one come here."""


@final
class RepeatedHeartbeats:
    """Answers repeated heartbeats.

    @ivar taken: how many.
    @ivar elsewhere: other processes that do, too.
    """

    def __init__(
        self,
        topics: TopicTable,
        groups: GroupTable,
        consumers: ConsumerRegistry,
        producers: ProducerRegistry,
    ) -> None:
        self.taken = 0
        self.elsewhere: Elsewhere | None = None
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._producers = producers
        self._generation = 0
        #: The last one that was left to the general way, and its bytes.
        self._left: tuple[IConnection, bytes, tuple[bytes, ...]] | None = None

    def take(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        """Answer a heartbeat if it is a repeated one: a hot responder."""
        parts = cut_at_opaque(header)
        if parts is None:
            return False
        before, opaque, behind = parts
        content = before, behind, body
        if not self._seen(connection, self._hash(content)):
            self._left = connection, opaque, content
            return False
        self.taken += 1
        connection.send_now(frame_of(HEARTBEAT_ANSWER % opaque))
        return True

    def _seen(self, connection: IConnection, heartbeat: int) -> bool:
        """The members were seen, if that was their last heartbeat."""
        members, now = self._members(connection), self._consumers.seconds()
        for member in members:
            if member.heartbeat != heartbeat:
                return False
            member.seen = now
        return bool(members)

    def _members(self, connection: IConnection) -> list[Member]:
        consumers = self._consumers.members_on(connection)
        return consumers + self._producers.members_on(connection)

    def _hash(self, content: tuple[bytes, ...]) -> int:
        topics, groups = self._topics.generation, self._groups.generation
        consumers = self._consumers.generation
        return hash((content, topics, groups, consumers, self._generation))

    def taken_elsewhere(self, count: int, connections: Sequence[IConnection]) -> None:
        """Another process has answered repeated heartbeats of these and of others,
        which are closed now."""
        self.taken += count
        now = self._consumers.seconds()
        for connection in connections:
            for member in self._members(connection):
                member.seen = now

    def remember(
        self,
        connection: IConnection,
        request: Command,
        consumers: set[str],
        producers: set[str],
    ) -> None:
        """The general way has taken a heartbeat of the first version.

        @param consumers: the groups that it names.
        @param producers: the same.
        """
        left, self._left = self._left, None
        if (
            left is None
            or left[0] is not connection
            or int(left[1]) != request.opaque
            or request.flag & ONEWAY
            or consumers != {*self._consumers.groups_on(connection)}
            or producers != {*self._producers.groups_on(connection)}
        ):
            return
        elsewhere = self.elsewhere
        if elsewhere is not None and elsewhere.remember(connection, request.opaque):
            return
        heartbeat = self._hash(left[2])
        for member in self._members(connection):
            member.heartbeat = heartbeat

    def forget(self, connection: IConnection) -> None:
        """Let the next heartbeat of a connection go the general way."""
        for member in self._members(connection):
            member.heartbeat = None
        if self.elsewhere is not None:
            self.elsewhere.forget(connection)

    def forget_all(self) -> None:
        """Let the next one of all connections here go the general way."""
        self._generation += 1

# -*- test-case-name: tests.broker.clients.test_producers -*-
"""The producers that are online, by group.

Rules: docs/facts/broker.md 15.4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from rocketbroker.broker.clients.members import Member, MemberLog
from rocketbroker.remoting.interfaces import IConnection


@final
class ProducerRegistry:
    """All producer groups that have members.

    @ivar expired: how many members went silent and were removed.
    """

    def __init__(self, seconds: Callable[[], float], log: MemberLog) -> None:
        """
        @param seconds: the monotonic time.
        """
        self.expired = 0
        self._log = log
        self._seconds = seconds
        self._groups: dict[str, dict[IConnection, Member]] = {}
        # A tuple is a quarter of a set, and most connections are in one group.
        self._groups_of: dict[IConnection, tuple[str, ...]] = {}
        # Of each client its connections, the newest last.
        self._clients: dict[str, dict[IConnection, None]] = {}

    def names(self) -> list[str]:
        """All groups with members."""
        return list(self._groups)

    def members(self, group: str) -> list[Member]:
        """The members of a group; none if it is unknown."""
        return list(self._groups.get(group, {}).values())

    def connection(self, client_id: str) -> IConnection | None:
        """The newest connection of a client that is in any group; None for none."""
        return next(reversed(self._clients.get(client_id, {})), None)

    def groups_on(self, connection: IConnection) -> Sequence[str]:
        """The groups that a connection is a member of."""
        return self._groups_of.get(connection, ())

    def register(
        self,
        connection: IConnection,
        client_id: str,
        language: str | None,
        version: int,
        group: str,
    ) -> None:
        """A heartbeat of one member."""
        members = self._groups.setdefault(group, {})
        member = members.get(connection)
        now = self._seconds()
        if member is not None and member.client_id == client_id:
            member.seen = now
            return
        joined = Member(connection, client_id, language, version, now)
        members[connection] = joined
        self._log.joined("producer", group, joined, len(members))
        self._clients.setdefault(client_id, {})[connection] = None
        if member is not None:
            self._forget(member)
        groups = self._groups_of.get(connection)
        if groups is None:
            self._groups_of[connection] = (group,)
            connection.watch_close(self._closed)
        elif group not in groups:
            self._groups_of[connection] = (*groups, group)

    def unregister(self, connection: IConnection, group: str) -> None:
        """A member says that it leaves."""
        self._remove(connection, group, "it unregistered")

    def _remove(self, connection: IConnection, group: str, reason: str) -> None:
        self._leave(connection, group, reason)
        groups = self._groups_of.get(connection, ())
        if group in groups:
            others = tuple(each for each in groups if each != group)
            self._groups_of[connection] = others

    def _leave(self, connection: IConnection, group: str, reason: str) -> None:
        members = self._groups.get(group)
        member = None if members is None else members.pop(connection, None)
        if members is None or member is None:
            return
        self._log.left("producer", group, member, len(members), reason)
        if not members:
            del self._groups[group]
        self._forget(member)

    def _forget(self, gone: Member) -> None:
        """A client is no longer in a group; forget it unless it is in another one."""
        for group in self._groups_of.get(gone.connection, ()):
            member = self._groups.get(group, {}).get(gone.connection)
            if member is not None and member.client_id == gone.client_id:
                return
        connections = self._clients.get(gone.client_id, {})
        connections.pop(gone.connection, None)
        if not connections:
            self._clients.pop(gone.client_id, None)

    def _closed(self, connection: IConnection) -> None:
        for group in self._groups_of.pop(connection, ()):
            self._leave(connection, group, "its connection was closed")

    def scan(self, max_silent: float) -> None:
        """Remove and close members that have been silent for too long.

        @param max_silent: in seconds.
        """
        oldest = self._seconds() - max_silent
        for group in self.names():
            for member in self.members(group):
                if member.seen < oldest:
                    self.expired += 1
                    reason = f"it was silent for {max_silent:.0f} s"
                    self._remove(member.connection, group, reason)
                    member.connection.close()

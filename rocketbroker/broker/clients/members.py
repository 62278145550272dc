# -*- test-case-name: tests.broker.clients.test_members -*-
"""One client of a group, and the log of those that come and go."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import final

from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.remoting.cooperative_tasks import only_stopped
from rocketbroker.remoting.interfaces import IConnection, ISlices


@final
class Member:
    """One client of a group, on one connection.

    @ivar language: as the client says it in its commands.
    @ivar version: the ordinal of its release.
    @ivar joined: the monotonic time of its first heartbeat, in seconds.
    @ivar seen: that of its last.
    @ivar digest: of its subscriptions (L{subscription_digest
        <rocketbroker.broker.clients.subscription_digest>}); None if it has sent none.
    @ivar notify_again: whether it is notified when it asks for the members.
    """

    __slots__ = (
        "client_id",
        "connection",
        "digest",
        "joined",
        "language",
        "notify_again",
        "seen",
        "version",
    )

    def __init__(
        self,
        connection: IConnection,
        client_id: str,
        language: str | None,
        version: int,
        seen: float,
    ) -> None:
        self.connection = connection
        self.client_id = client_id
        self.language = language
        self.version = version
        self.joined = seen
        self.seen = seen
        self.digest: bytes | None = None
        self.notify_again = False


@final
class MemberLog:
    """Logs which clients join groups and leave them.

    When a service starts or a network fails, thousands do within a second, and to log
    a line takes longer than all else that a closed connection costs. So lines are
    logged in slices, beside the requests of others; when the broker stops, at once.
    """

    _log = Logger()

    def __init__(self, slices: ISlices) -> None:
        self._slices = slices
        self._lines: deque[str] = deque()
        self._begun = False

    def joined(self, kind: str, group: str, member: Member, count: int) -> None:
        """A client has joined a group.

        @param kind: C{"consumer"} or C{"producer"}.
        @param count: how many members the group has now.
        """
        self._add(
            f"{member.client_id!r:.300} at {member.connection.peer} "
            f"({member.language}) joined {kind} group {group!r:.300}, "
            f"members now: {count}"
        )

    def left(
        self, kind: str, group: str, member: Member, count: int, reason: str
    ) -> None:
        """A client has left a group, and why."""
        self._add(
            f"{member.client_id!r:.300} at {member.connection.peer} left {kind} group "
            f"{group!r:.300}, members now: {count}; {reason}"
        )

    def _add(self, line: str) -> None:
        self._lines.append(line)
        if not self._begun:
            self._begun = True
            self._slices.run(self, self._write()).addErrback(self._dropped)

    def _write(self) -> Iterator[None]:
        """Log all lines. Each is one field: with six it takes twice the time."""
        while self._lines:
            self._log.info("{line}", line=self._lines.popleft())
            yield
        self._begun = False

    def _dropped(self, failure: Failure) -> None:
        """The broker stops: log the rest."""
        only_stopped(failure)
        for _ in self._write():
            pass

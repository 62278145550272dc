# -*- test-case-name: tests.testing.test_replicas -*-
"""Slaves that have as much of the log as a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from rocketbroker.replication.interfaces import IReplica, IReplicaServer

#: haMaxGapNotInSync, unless a test says otherwise.
MAX_GAP = 256 << 20


@implementer(IReplica)
@final
class ScriptedReplica:
    """One slave; see L{IReplica}."""

    def __init__(self, address: str, acked: int, max_gap: int) -> None:
        self.address = address
        self.acked = acked
        self.sent = acked
        self.bytes_per_second = 0
        self.caught_up_ms = 0
        self.problem = ""
        self._max_gap = max_gap

    def is_in_sync(self, end: int) -> bool:
        """See L{IReplica}."""
        return end - self.acked < self._max_gap


@implementer(IReplicaServer)
@final
class ScriptedReplicas:
    """The slaves of one master, without ports; see L{IReplicaServer}.

    @ivar port: where it listens; None as long as nobody asked for it.
    @ivar notices: how often it was told that something was appended.
    """

    def __init__(self, max_gap: int = MAX_GAP) -> None:
        """
        @param max_gap: haMaxGapNotInSync.
        """
        self.replicas: list[ScriptedReplica] = []
        self.strangers: list[str] = []
        self.port: int | None = None
        self.notices = 0
        self._max_gap = max_gap
        self._watching: list[Callable[[], None]] = []

    # What tests ask for.

    def report(self, *positions: int) -> None:
        """There are as many slaves as positions, and these are what they report: in one
        turn, all together."""
        del self.replicas[len(positions) :]
        for number, position in enumerate(positions):
            if number == len(self.replicas):
                address = f"10.0.1.{number + 1}:5678"
                self.replicas.append(ScriptedReplica(address, -1, self._max_gap))
            self.replicas[number].acked = self.replicas[number].sent = position
        for reported in self._watching:
            reported()

    # What a broker asks for.

    def listen(self, port: int) -> int:
        """See L{IReplicaServer}."""
        self.port = port
        return port

    def appended(self) -> None:
        """See L{IReplicaServer}."""
        self.notices += 1

    def push(self) -> None:
        """See L{IReplicaServer}."""

    def watch(self, reported: Callable[[], None]) -> None:
        """See L{IReplicaServer}."""
        self._watching.append(reported)

    def acked(self, copies: int) -> int:
        """See L{IReplicaServer}."""
        positions = sorted((each.acked for each in self.replicas), reverse=True)
        return positions[copies - 2] if len(positions) > copies - 2 else -1

    def in_sync(self, end: int) -> int:
        """See L{IReplicaServer}."""
        return 1 + sum(each.is_in_sync(end) for each in self.replicas)

    def stop(self) -> Deferred[None]:
        """See L{IReplicaServer}."""
        self.replicas.clear()
        return succeed(None)


@final
class ScriptedMembership:
    """Says of hosts whether they are slaves' as a test does; see
    L{rocketbroker.replication.interfaces.Membership}.

    @ivar looks: how often it was told of a stranger.
    """

    def __init__(self, *slaves: str) -> None:
        """
        @param slaves: the hosts of slaves.
        """
        self.serves_strangers = True
        self.looks = 0
        self._slaves = set(slaves)
        self._watching: list[Callable[[bool], object]] = []

    def become(self, *slaves: str, anew: bool = False) -> None:
        """These are the hosts of slaves from now on.

        @param anew: whether other settings say so.
        """
        self._slaves = set(slaves)
        for changed in self._watching:
            changed(anew)

    def is_slave(self, host: str, /) -> bool:
        """Whether it is one of them."""
        return host in self._slaves

    def look_soon(self) -> None:
        """There is a stranger."""
        self.looks += 1

    def watch(self, changed: Callable[[bool], object], /) -> None:
        """Tell C{changed} of other hosts."""
        self._watching.append(changed)

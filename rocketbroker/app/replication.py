# -*- test-case-name: tests.app.test_broker -*-
"""Stand-ins for both sides of replication, until they are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from rocketbroker.replication.interfaces import IMasterLink, IReplica, IReplicaServer


@implementer(IReplicaServer)
@final
class NoReplicas:
    """No slaves; see L{IReplicaServer}."""

    replicas: Sequence[IReplica] = ()

    def listen(self, port: int) -> int:
        """See L{IReplicaServer}."""
        return port

    def appended(self) -> None:
        """See L{IReplicaServer}."""

    def watch(self, reported: Callable[[], None]) -> None:
        """See L{IReplicaServer}."""

    def acked(self, copies: int) -> int:
        """See L{IReplicaServer}."""
        return -1

    def in_sync(self, end: int) -> int:
        """See L{IReplicaServer}."""
        return 1

    def stop(self) -> Deferred[None]:
        """See L{IReplicaServer}."""
        return succeed(None)


@implementer(IMasterLink)
@final
class NoMaster:
    """No master; see L{IMasterLink}."""

    state = "READY"
    master: str | None = None
    problem = "replication is not there yet"
    bytes_per_second = 0
    last_read_ms = 0
    last_write_ms = 0
    received = 0

    def start(self) -> None:
        """See L{IMasterLink}."""

    def follow(self, master: str | None) -> None:
        """See L{IMasterLink}."""
        self.master = master

    def watch(self, received: Callable[[], None]) -> None:
        """See L{IMasterLink}."""

    def stop(self) -> Deferred[None]:
        """See L{IMasterLink}."""
        return succeed(None)

# -*- test-case-name: tests.testing.test_master_link -*-
"""A slave's side of replication that gets what a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from rocketbroker.replication.interfaces import IMasterLink


@implementer(IMasterLink)
@final
class ScriptedLink:
    """A link to a master without a network; see L{IMasterLink}."""

    def __init__(self) -> None:
        self.state = "READY"
        self.master: str | None = None
        self.problem = ""
        self.bytes_per_second = 0
        self.last_read_ms = 0
        self.last_write_ms = 0
        self.received = 0
        self._started = False
        self._watching: list[Callable[[], None]] = []

    # What tests ask for.

    def receive(self, size: int) -> None:
        """So many bytes of the log have come and are stored, by the test."""
        assert self._started, "it does not follow yet"
        self.received += size
        for received in self._watching:
            received()

    # What a broker asks for.

    def start(self) -> None:
        """See L{IMasterLink}."""
        self._started = True
        self.follow(self.master)

    def follow(self, master: str | None) -> None:
        """See L{IMasterLink}."""
        self.master = master
        if self._started:
            self.state = "READY" if master is None else "TRANSFER"

    def watch(self, received: Callable[[], None]) -> None:
        """See L{IMasterLink}."""
        self._watching.append(received)

    def stop(self) -> Deferred[None]:
        """See L{IMasterLink}."""
        self._started = False
        self.state = "SHUTDOWN"
        return succeed(None)

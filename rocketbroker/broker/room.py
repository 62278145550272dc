# -*- test-case-name: tests.broker.test_broker -*-
"""A room: the parts of the broker that belong together, as the broker sees them.

A room is made from the context (L{rocketbroker.broker.context}) and from the rooms
below it, which its constructor names. It makes its own parts. The broker holds its
rooms in order, and tells all of them what happens; what a room has no use for, it
leaves out.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred, succeed

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable


class Responder(Protocol):
    """Answers requests."""

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""


class Room:
    """What a broker asks of each of its rooms; here nothing of it does anything."""

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""

    def register_pulls(self, table: IResponderTable) -> None:
        """Answer what only the main port answers."""

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""

    def load(self) -> None:
        """I{Blocking.} Begin where the last broker was."""

    def start(self) -> None:
        """Begin regular work."""

    def stop_answering(self) -> None:
        """Let nobody wait any more."""

    def stop(self) -> Deferred[None]:
        """End regular work; fires when nothing of it is under way."""
        return succeed(None)

    def save(self) -> Deferred[None]:
        """Write the tables that changed; fires when that is done."""
        return succeed(None)

    def problems(self) -> list[str]:
        """Sentences about what an operator has to mend."""
        return []

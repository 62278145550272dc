# -*- test-case-name: tests.broker.test_broker -*-
"""A room: the parts of the broker that belong together, as the broker sees them.

A room is made from the context (L{rocketbroker.broker.context}) and from the rooms
below it, which its constructor names. It makes its own parts. The broker holds its
rooms in order, and tells all of them what happens; what a room has no use for, it
leaves out.

A start imports what it uses. A room that only answers, and that most brokers need late
or never, is made by the first request for it (L{LateRoom}).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, Protocol, TypeVar, final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.remoting.interfaces import Responder as CodeResponder
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command


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


RoomT = TypeVar("RoomT", bound=Room)


@final
class LateRoom(Room, Generic[RoomT]):
    """A room of responders that is made, and imported, when the first of its requests
    comes.

    To make it must not matter to anything else: nobody waits for what it watches.
    """

    def __init__(
        self,
        make: Callable[[], RoomT],
        codes: Iterable[int],
        running: RunningSettings,
    ) -> None:
        """
        @param make: imports the room and makes it.
        @param codes: the request codes that it answers.
        @param running: the settings in force, which the room obeys from its beginning.
        """
        self._make = make
        self._codes = codes
        self._running = running
        self._room: RoomT | None = None
        self._table = ResponderTable()

    def made(self) -> RoomT:
        """The room; it is made if it is not there."""
        if self._room is None:
            self._room = self._make()
            self._room.configure(self._running.current)
            self._room.register(self._table)
        return self._room

    def responder(self, code: int) -> CodeResponder:
        """What answers a request code; the room is made if it is not there."""
        self.made()
        return self._table.responders[code]

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        for code in self._codes:
            table.register(code, partial(self._respond, code))

    def _respond(self, code: int, connection: IConnection, request: Command) -> Answer:
        return self.responder(code)(connection, request)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        if self._room is not None:
            self._room.configure(settings)

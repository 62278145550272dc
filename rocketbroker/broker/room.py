# -*- test-case-name: tests.broker.test_broker -*-
"""A room: the parts of the broker that belong together, as the broker sees them.

A room is made from the context (L{rocketbroker.broker.context}) and from the rooms
below it, which its constructor names. It makes its own parts. The broker holds its
rooms in order, and tells all of them what happens; what a room has no use for, it
leaves out.

A start imports what it uses. A room that most brokers need late or never is made by the
first request for it (L{LateRoom}).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar, final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    Responder,
)
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command


class Room:
    """What a broker asks of each of its rooms; here nothing of it does anything."""

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""

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


def never() -> bool:
    """No start needs the room."""
    return False


@final
class LateRoom(Room, Generic[RoomT]):
    """A room that is imported and made when the first of its requests comes.

    Nothing else may miss it before. It is told then what it has missed: the settings
    that have changed, the load, the start.

    @ivar codes: the request codes that both ports answer.
    """

    def __init__(
        self,
        make: Callable[[], RoomT],
        running: RunningSettings,
        codes: Iterable[int],
        pull_codes: Iterable[int] = (),
        is_needed: Callable[[], bool] = never,
    ) -> None:
        """
        @param make: imports the room and makes it.
        @param running: the settings in force.
        @param codes: the request codes that the room answers.
        @param pull_codes: those that only the main port answers.
        @param is_needed: whether the start makes the room; asked when the store is
            open.
        """
        self._make = make
        self._running = running
        self.codes = codes
        self._pull_codes = pull_codes
        self._is_needed = is_needed
        self._is_loaded = self._is_started = False
        self._room: RoomT | None = None
        self._own = ResponderTable()
        self._tables: list[IResponderTable] = []
        self._pull_tables: list[IResponderTable] = []

    @property
    def is_made(self) -> bool:
        """Whether the room is there."""
        return self._room is not None

    def made(self) -> RoomT:
        """The room; it is made if it is not there."""
        if self._room is not None:
            return self._room
        room = self._room = self._make()
        room.configure(self._running.current)
        room.register(self._own)
        room.register_pulls(self._own)
        if self._own.hot:
            # Hot responders are found by the ports themselves.
            for table in self._tables:
                room.register(table)
            for table in self._pull_tables:
                room.register_pulls(table)
        if self._is_loaded:
            room.load()
        if self._is_started:
            room.start()
        return room

    def responder(self, code: int) -> Responder:
        """What answers a request code; the room is made if it is not there."""
        self.made()
        return self._own.responders[code]

    def _respond(self, code: int, connection: IConnection, request: Command) -> Answer:
        return self.responder(code)(connection, request)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self._tables.append(table)
        for code in self.codes:
            table.register(code, partial(self._respond, code))

    def register_pulls(self, table: IResponderTable) -> None:
        """Answer what only the main port answers."""
        self._pull_tables.append(table)
        for code in self._pull_codes:
            table.register(code, partial(self._respond, code))

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        if self._room is not None:
            self._room.configure(settings)

    def load(self) -> None:
        """I{Blocking.} Begin where the last broker was, if the start needs it."""
        self._is_loaded = True
        if self._room is not None:
            self._room.load()
        elif self._is_needed():
            self.made()

    def start(self) -> None:
        """Begin regular work."""
        self._is_started = True
        if self._room is not None:
            self._room.start()

    def stop_answering(self) -> None:
        """Let nobody wait any more."""
        if self._room is not None:
            self._room.stop_answering()

    def stop(self) -> Deferred[None]:
        """End regular work; fires when nothing of it is under way."""
        return succeed(None) if self._room is None else self._room.stop()

    def save(self) -> Deferred[None]:
        """Write the tables that changed; fires when that is done."""
        return succeed(None) if self._room is None else self._room.save()

    def problems(self) -> list[str]:
        """Sentences about what an operator has to mend."""
        return [] if self._room is None else self._room.problems()

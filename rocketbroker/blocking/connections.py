# -*- test-case-name: tests.blocking.test_connections -*-
"""The connections of a client: one for each server and each thread that uses it.

A connection belongs to one thread, so threads that share a client never wait for one
another's answers. With one connection for all of them, the thread that reads from the
socket would have to hand answers to the others and pass its task on when it leaves.

A connection of a thread that has ended is closed when another thread opens its first.
A child of a fork makes its own, and leaves those of its parent alone.
"""

from __future__ import annotations

import threading
from typing import final

from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.settings import Settings


@final
class Connections:
    """The connections of a client, made on use. It can be pickled: a copy has none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, dict[str, ServerConnection]] = {}
        self._left: list[object] = []
        settings.machine.watch_fork(self)

    def forked(self) -> None:
        """See L{rocketbroker.config.forks.Forked}."""
        self._left.append(self._open)
        self._open = {}
        self._lock = threading.Lock()  # another thread may have had it

    def __reduce__(self) -> tuple[object, ...]:
        return Connections, (self._settings,)

    def to(self, address: str) -> ServerConnection:
        """The connection of this thread to a server.

        @raise ConfigurationError: it is not an address.
        """
        thread = threading.current_thread()
        mine = self._open.get(thread)
        if mine is None:
            mine = self._enter(thread)
        found = mine.get(address)
        if found is None:
            settings = self._settings
            found = mine[address] = ServerConnection(
                settings.machine,
                address,
                settings.max_frame_bytes,
                settings.tls,
                settings.credentials,
            )
        return found

    def _enter(self, thread: threading.Thread) -> dict[str, ServerConnection]:
        """Make room for a thread's connections, and close those of ended threads."""
        with self._lock:
            mine = self._open[thread] = {}
            ended = [one for one in self._open if not one.is_alive()]
            left = [self._open.pop(one) for one in ended]
        for connections in left:
            for connection in connections.values():
                connection.close()
        return mine

    def close(self) -> None:
        """Close the connections of all threads; the next use opens them again.

        A request under way in another thread fails with C{ConnectionLost}, some of
        them only when their time is over.
        """
        with self._lock:
            left = [*self._open.values()]
            self._open.clear()
        for connections in left:
            for connection in [*connections.values()]:
                connection.close()

# -*- test-case-name: tests.blocking.test_routes -*-
"""One connection for each server that is talked to."""

from __future__ import annotations

from typing import final

from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.settings import Settings


@final
class Connections:
    """The connections of a client, made on use. It can be pickled: a copy has none."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: dict[str, ServerConnection] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Connections, (self._settings,)

    def to(self, address: str) -> ServerConnection:
        """The connection to a server.

        @raise ConfigurationError: it is not an address.
        """
        found = self._open.get(address)
        if found is None:
            found = self._open[address] = ServerConnection(
                self._settings.machine, address, self._settings.most_frame_bytes
            )
        return found

    def close(self) -> None:
        """Close all of them; the next use opens them again."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()

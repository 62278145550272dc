# -*- test-case-name: tests.client.test_connection -*-
"""The connections of one client: one for each server, made on use.

Requests of servers go to L{watch}ers by code; a code without one is refused, as Java's
clients do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

from rocketbroker.client.connection import ServerConnection, Terms
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.waits import together
from rocketbroker.config.addresses import split_address
from rocketbroker.errors import ClientClosed, ConfigurationError, error_of_response
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command, response_to

#: What is wrong with what a child of a fork has of its parent.
FOREIGN: Final = (
    "it was made in the parent of this process; after a fork, a child makes its own"
)

#: Takes a request of a server. It answers with C{connection.respond}, or not at all.
ServerRequest: TypeAlias = Callable[[ServerConnection, Command], None]


@final
class Connections:
    """The connections of one client."""

    def __init__(
        self,
        runtime: Runtime,
        terms: Terms | None = None,
    ) -> None:
        """
        @param terms: C{None}: as they are if nobody says anything.
        """
        self._runtime = runtime
        self._terms = terms or Terms()
        self._open: dict[str, ServerConnection] = {}
        self._watchers: dict[int, ServerRequest] = {}
        self._made: list[Callable[[str], None]] = []
        self._closed = False
        self._left: list[object] = []
        self._foreign = False
        runtime.watch_fork(self)

    def forked(self) -> None:
        """See L{rocketbroker.config.forks.Forked}: they are the parent's, and
        are neither used nor closed here."""
        self._foreign = True
        self._left.append(self._open)
        self._open = {}

    def watch(self, code: int, taker: ServerRequest) -> None:
        """Give requests of servers with this code to C{taker}."""
        self._watchers[code] = taker

    def watch_made(self, callback: Callable[[str], None]) -> None:
        """Call with the address of each server to which a connection was made."""
        self._made.append(callback)

    def to(self, address: str) -> ServerConnection:
        """The connection to a server.

        @raise ConfigurationError: it is not an address.
        @raise ClientClosed: all were closed.
        @raise ConfigurationError: or this is a child of the process that made them.
        """
        found = self._open.get(address)
        if found is None:
            if self._foreign:
                raise ConfigurationError(FOREIGN)
            if self._closed:
                raise ClientClosed("the client was closed")
            host, port = split_address(address)
            found = self._open[address] = ServerConnection(
                self._runtime,
                address,
                host,
                port,
                self._serve,
                self._connected,
                self._terms,
            )
        return found

    async def invoke(self, address: str, command: Command, seconds: float) -> Command:
        """Ask a server; see L{ServerConnection.request}."""
        return await self.to(address).request(command, seconds)

    async def ask(self, address: str, command: Command, seconds: float) -> Command:
        """Ask a server; its successful answer.

        @raise BrokerError: it refused.
        """
        answer = await self.to(address).request(command, seconds)
        if answer.code != ResponseCode.SUCCESS:
            raise error_of_response(answer.code, answer.remark)
        return answer

    async def drop(self, address: str) -> None:
        """Close the connection to a server that is in no route any more."""
        found = self._open.pop(address, None)
        if found is not None:
            await found.close()

    def addresses(self) -> list[str]:
        """The servers there are connections to, or were."""
        return [*self._open]

    async def close(self) -> None:
        """Close all, and make no more."""
        self._closed = True
        left, self._open = self._open, {}
        await together(self._runtime, [one.close() for one in left.values()])

    def _connected(self, connection: ServerConnection) -> None:
        for callback in self._made:
            callback(connection.address)

    def _serve(self, connection: ServerConnection, command: Command) -> None:
        taker = self._watchers.get(command.code)
        if taker is not None:
            taker(connection, command)
        elif not command.is_oneway:
            words = f" request type {command.code} not supported"
            code = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            connection.respond(response_to(command, code, words))

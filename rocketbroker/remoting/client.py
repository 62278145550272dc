# -*- test-case-name: tests.remoting.test_client -*-
"""Requests to servers, over one connection per address; C{docs/facts/remoting.md} 7.

A connection is made when the first request to its address needs it, and again after it
was lost. The time that takes counts against the requests that wait for it. Requests
that the server sends are answered from a responder table, as a server answers them.
"""

from __future__ import annotations

from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Final, cast, final

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IAddress, IConnector, IReactorTCP
from twisted.internet.protocol import ClientFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.errors import ConfigurationError, ConnectionLost, LocalProtocolError
from rocketbroker.remoting.addresses import split_address
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.remoting.protocol import RemotingProtocol, StreamConnection
from rocketbroker.remoting.response_table import TooManyRequests, WaitingRequest
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.tls_transport import TlsTransport
from rocketbroker.remoting.turns import Turns
from rocketbroker.wire.command import Command
from rocketbroker.wire.tls_layer import TlsLayer

#: Oneway requests that may wait for one connection to be made; more are dropped. They
#: hold memory, and no caller waits for them, so nothing else bounds them.
MAX_ONEWAYS_WAITING: Final = 1024


def no_tls() -> None:
    """No connection speaks TLS."""


@final
class _Line(ClientFactory):
    """The one connection to one address: none, being made, or there.

    @ivar connection: while it is there.
    """

    noisy = False

    def __init__(self, client: RemotingClient, address: str) -> None:
        self._client = client
        self._address = address
        self._connector: IConnector | None = None
        self._requests: list[tuple[Command, WaitingRequest]] = []
        self._oneways: list[Command] = []
        self.connection: StreamConnection | None = None

    def request(self, command: Command, waiting: WaitingRequest) -> None:
        """Send it now, or when the connection is made."""
        if self.connection is not None:
            self.connection.request_waiting(command, waiting)
        else:
            self._requests.append((command, waiting))
            self._connect()

    def oneway(self, command: Command) -> bool:
        """Send it now, or when the connection is made; False if too many wait."""
        if self.connection is not None:
            self.connection.oneway(command)
        elif len(self._oneways) >= MAX_ONEWAYS_WAITING:
            return False
        else:
            self._oneways.append(command)
            self._connect()
        return True

    def close(self) -> None:
        """Close the connection, or make none."""
        if self.connection is not None:
            self.connection.close()
        elif self._connector is not None:
            self._connector.disconnect()

    def _connect(self) -> None:
        if self._connector is None:
            self._connector = self._client.connect(self._address, self)

    def buildProtocol(self, addr: IAddress | None) -> RemotingProtocol | TlsTransport:
        """The transport is connected."""
        inner = RemotingProtocol(self._client.group, self._made)
        return self._client.secured(inner, self._refused)

    def _made(self, connection: StreamConnection) -> None:
        self._connector = None
        self.connection = connection
        connection.watch_close(self._closed)
        requests, self._requests = self._requests, []
        for command, waiting in requests:
            if self._client.group.responses.is_open(waiting):
                connection.request_waiting(command, waiting)
        oneways, self._oneways = self._oneways, []
        for command in oneways:
            try:
                connection.oneway(command)
            except LocalProtocolError:
                self._client.oneways_dropped += 1

    def _closed(self, connection: IConnection) -> None:
        self.connection = None
        self._client.forget(self._address)

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        """It could not be connected."""
        self._refused(reason.getErrorMessage())

    def _refused(self, words: str) -> None:
        """There is no connection: fail the requests that waited for it."""
        words = f"cannot connect to {self._address}: {words}"
        self._connector = None
        self._client.forget(self._address)
        self._client.oneways_dropped += len(self._oneways)
        self._oneways.clear()
        requests, self._requests = self._requests, []
        for _, waiting in requests:
            self._client.group.responses.fail(waiting, ConnectionLost(words))


@final
class RemotingClient:
    """The client that sends requests to servers.

    @ivar group: its connections, with their limits and counters.
    @ivar oneways_dropped: requests without an answer that were not sent.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: IReactorTCP,
        options: RemotingClientOptions,
        table: ResponderTable | None = None,
        turns: Turns | None = None,
        limits: ConnectionLimits | None = None,
        tls: Callable[[], SSLContext | None] = no_tls,
        credentials: Credentials | None = None,
    ) -> None:
        """
        @param reactor: connects, tells the time, calls later; a real one, or a
            L{rocketbroker.testing.network.MemoryNetwork}.
        @param options: time-outs and limits.
        @param table: the responders for requests of servers.
        @param turns: calls functions after each delivery of bytes.
        @param limits: instead of those in C{options}.
        @param tls: what a new connection speaks TLS with; C{None}: it does not.
        @param credentials: sign each request; C{None}: nothing does.
        """
        self._tls = tls
        self._credentials = credentials
        self._reactor = reactor
        self._connect_seconds = options.connect_timeout_millis / 1000
        self._lines: dict[str, _Line] = {}
        self._stopping = False
        self.oneways_dropped = 0
        self.group = ConnectionGroup(
            cast(Any, reactor),
            table or ResponderTable(),
            limits or ConnectionLimits.of_client(options),
            turns or Turns(),
        )

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """Send a request and wait for its answer.

        @param address: C{host:port}.
        @param command: gets an opaque of its own here.
        @param timeout: in seconds, connecting included.
        @return: fires with the response, whatever its code; fails with RequestTimeout,
            ConnectionLost, TooManyRequests, ConfigurationError (no such address), or
            LocalProtocolError (it cannot be encoded).
        """
        words = f"request {int(command.code)} to {address}"
        if self._stopping:
            return fail(ConnectionLost(f"stopped: {words}"))
        try:
            split_address(address)
            waiting = self.group.responses.open(address, timeout, words)
        except (ConfigurationError, TooManyRequests) as error:
            return fail(error)
        self._sign(command)
        self._line(address).request(command, waiting)
        return waiting.answer

    def oneway(self, address: str, command: Command) -> None:
        """Send a request that wants no answer; one that cannot be sent is counted."""
        try:
            split_address(address)
            self._sign(command)
            sent = not self._stopping and self._line(address).oneway(command)
        except (ConfigurationError, LocalProtocolError) as error:
            self._log.warn("A oneway request was not sent: {error}", error=error)
            sent = False
        if not sent:
            self.oneways_dropped += 1

    def connection(self, address: str) -> IConnection | None:
        """The connection to an address, if there is one now."""
        line = self._lines.get(address)
        return None if line is None else line.connection

    def close(self, address: str) -> None:
        """Close the connection to an address; requests that wait on it fail."""
        line = self._lines.get(address)
        if line is not None:
            line.close()

    def stop(self) -> Deferred[None]:
        """Close all connections and make no more.

        @return: fires when all are gone.
        """
        self._stopping = True
        for line in list(self._lines.values()):
            line.close()
        self.group.responses.stop()
        return self.group.when_empty()

    def _line(self, address: str) -> _Line:
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = _Line(self, address)
        return line

    def _sign(self, command: Command) -> None:
        if self._credentials is not None:
            command.ext = sign(command.ext, command.body, self._credentials)

    # Called by lines.

    def secured(
        self, inner: RemotingProtocol, refused: Callable[[str], None]
    ) -> RemotingProtocol | TlsTransport:
        """A protocol for a new connection, with TLS below it if that is wanted.

        @param refused: called if the two sides do not come to terms.
        """
        context = self._tls()
        if context is None:
            return inner
        layer = TlsLayer(context, is_server=False)
        clock, seconds = self.group.clock, self._connect_seconds
        return TlsTransport(inner, layer, refused, clock, seconds)

    def connect(self, address: str, line: _Line) -> IConnector:
        """Begin to connect."""
        host, port = split_address(address)
        return self._reactor.connectTCP(host, port, line, self._connect_seconds)

    def forget(self, address: str) -> None:
        """That line is down; the next request makes another."""
        self._lines.pop(address, None)

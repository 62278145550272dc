# -*- test-case-name: tests.remoting.test_plain_port -*-
"""Ports whose connections Twisted serves: that of replication, and that of metrics.

Such a port needs few connections, and anybody may reach it. So it has its rules:

  - It has as many connections as L{few_of} says: descriptors are the store's, too.
  - A connection is I{engaged} while it is of use: that of a slave from its first report
    on, that of a scraper from a whole request to the end of the answer. One that is not
    engaged makes room for the next, and is closed when its patience is over. Of those
    the address that has most gives one up, the one that has been so for longest.
  - A I{spare} connection is of use to its peer only, as that of a stranger who is sent
    the log. It has time, but when there is no other it makes room.

So whoever connects and says nothing, or says it byte by byte, takes no descriptors from
the store, and does not keep others out.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, cast, final

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IListeningPort,
    IReactorFDSet,
    IReactorSocket,
    IReactorTime,
)
from twisted.logger import Logger
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory

from rocketbroker.remoting.counts import Counts
from rocketbroker.remoting.listener import (
    Listener,
    cannot_listen,
    descriptor_limit,
    listening_socket,
)
from rocketbroker.remoting.protocol import place
from rocketbroker.remoting.tls_transport import Contexts, TlsDoors, TlsTransport

#: Of so many descriptors one connection of such a port has one.
FEW_SHARE: Final = 32

#: But it has so many at least, and no use for more than so many.
FEW_LEAST: Final = 8
FEW_MOST: Final = 256

#: Connections that wait to be accepted: as many as at a port of data, unless set.
BACKLOG: Final = 1024

#: The log has one line in this time about connections that were closed.
LOG_SECONDS: Final = 1.0


def few_of(limit: int) -> int:
    """How many connections such a port may have.

    @param limit: the limit of descriptors; negative for none.
    """
    if limit < 0:
        return FEW_MOST
    return max(FEW_LEAST, min(limit // FEW_SHARE, FEW_MOST))


def most_of_one_host(connections: Sequence[PlainConnection]) -> PlainConnection:
    """The first of those whose address has most of them."""
    hosts = [place(cast(Any, each).getPeer())[0] for each in connections]
    counts = Counter(hosts)
    most = max(counts.values())
    places = (at for at, host in enumerate(hosts) if counts[host] == most)
    return connections[next(places)]


def adopter(reactor: Any, factory: Any) -> Callable[..., None]:
    """Return what hands accepted sockets to the reactor, for L{Listener}."""

    def adopt(sock: socket.socket, host: str, port: int) -> None:
        with sock:  # the reactor makes a descriptor of its own
            sock.setblocking(False)
            reactor.adoptStreamConnection(sock.fileno(), sock.family, factory)

    return adopt


def listen_plain(
    reactor: Any,
    factory: Any,
    address: tuple[str, int],
    backlog: int,
    counts: Counts,
    open_connections: Callable[[], int],
    most: int | None = None,
) -> tuple[Listener | IListeningPort, int]:
    """Accept connections for protocols of Twisted.

    A network in memory has no sockets, and listens itself.

    @param open_connections: how many there are that cannot make room for others.
    @param most: how many there may be; C{None}: what descriptors allow.
    @return: what listens, and on which port.
    @raise ConfigurationError: the port cannot be had; one sentence.
    """
    host, port = address
    needed = IReactorSocket, IReactorFDSet
    if not all(each.providedBy(reactor) for each in needed):
        try:
            listening = reactor.listenTCP(port, factory, backlog, host)
        except CannotListenError as error:
            raise cannot_listen(host, port, error.socketError) from error.socketError
        return listening, int(listening.getHost().port)
    sock = listening_socket(host, port, backlog)
    listener = Listener(
        reactor,
        sock,
        adopter(reactor, factory),
        counts,
        descriptor_limit(),
        open_connections,
        most,
    )
    return listener, int(sock.getsockname()[1])


@final
class PlainConnection(ProtocolWrapper):
    """A connection: to the protocol its transport, to the transport its protocol."""

    factory: FewConnections

    def engage(self, is_spare: bool = False) -> None:
        """It is of use from now on.

        @param is_spare: only to its peer, so that it makes room where it must.
        """
        self.factory.engage(self, is_spare)

    def disengage(self) -> None:
        """It is of no use until it says something again."""
        self.factory.disengage(self)


def connection_below(transport: object) -> PlainConnection | None:
    """The connection that a protocol's transport is, or that TLS lies upon.

    @return: C{None}: it is on none of such a port.
    """
    if isinstance(transport, TlsTransport):
        transport = transport.transport
    return transport if isinstance(transport, PlainConnection) else None


@final
class FewConnections(WrappingFactory):
    """The connections of one port.

    @ivar engaged: those that are of use now, and make no room.
    """

    noisy = False
    protocol = PlainConnection
    _log: ClassVar[Logger] = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        factory: Any,
        name: str,
        patience_seconds: float,
        most: int,
    ) -> None:
        """
        @param factory: makes the protocols.
        @param name: of the port, for the log.
        @param patience_seconds: how long a connection may be of no use.
        """
        super().__init__(factory)  # type: ignore[no-untyped-call]
        self.engaged: set[PlainConnection] = set()
        self._clock = clock
        self._name = name
        self._patience_seconds = patience_seconds
        self._most = most
        self._idle: dict[PlainConnection, IDelayedCall] = {}
        self._spare: dict[PlainConnection, None] = {}
        self._closed = 0
        self._telling: IDelayedCall | None = None

    def buildProtocol(  # type: ignore[override]  # factories may return None
        self, addr: IAddress | None
    ) -> PlainConnection | None:
        """A connection was accepted; C{None}: there is no room for it."""
        if len(self.engaged) + len(self._idle) + len(self._spare) >= self._most:
            yielding = [*self._idle] or [*self._spare]
            if not yielding:
                self._note_closed()
                return None
            self._close(most_of_one_host(yielding))
        return cast(PlainConnection, super().buildProtocol(addr))

    def registerProtocol(self, p: PlainConnection) -> None:
        """A connection was made."""
        super().registerProtocol(p)  # type: ignore[no-untyped-call]
        self._wait(p)

    def unregisterProtocol(self, p: PlainConnection) -> None:
        """A connection is gone."""
        super().unregisterProtocol(p)  # type: ignore[no-untyped-call]
        self._forget(p)

    def stopFactory(self) -> None:
        """The port is closed."""
        super().stopFactory()  # type: ignore[no-untyped-call]
        if self._telling is not None:
            self._telling.cancel()
            self._tell()

    def close_all(self) -> None:
        """Close what is of no use, and let the rest end."""
        for each in [*self._idle]:
            self._forget(each)
            cast(Any, each.transport).abortConnection()

    def engage(self, connection: PlainConnection, is_spare: bool) -> None:
        """A connection is of use from now on, or to its peer only."""
        if connection not in self.protocols:
            return
        self._forget(connection)
        if is_spare:
            self._spare[connection] = None
        else:
            self.engaged.add(connection)

    def disengage(self, connection: PlainConnection) -> None:
        """A connection is of no use until it says something again."""
        if connection in self.engaged:
            self.engaged.remove(connection)
            self._wait(connection)

    def _wait(self, connection: PlainConnection) -> None:
        self._idle[connection] = self._clock.callLater(
            self._patience_seconds, self._close, connection
        )

    def _forget(self, connection: PlainConnection) -> None:
        self.engaged.discard(connection)
        self._spare.pop(connection, None)
        call = self._idle.pop(connection, None)
        if call is not None and call.active():
            call.cancel()

    def _close(self, connection: PlainConnection) -> None:
        self._forget(connection)
        self._note_closed()
        cast(Any, connection.transport).abortConnection()

    def _note_closed(self) -> None:
        self._closed += 1
        if self._telling is None:
            self._telling = self._clock.callLater(LOG_SECONDS, self._tell)

    def _tell(self) -> None:
        self._telling = None
        closed, self._closed = self._closed, 0
        self._log.info(
            "Closed {closed} connections to the port of {name} that were of no use: it "
            "has {most} at most, and each has {seconds} s to say what it wants.",
            closed=closed,
            name=self._name,
            most=self._most,
            seconds=round(self._patience_seconds),
        )


@final
class PlainPort:
    """A listening port whose connections Twisted serves.

    @ivar connections: its connections.
    @ivar counts: how many were refused.
    """

    def __init__(
        self,
        reactor: Any,
        factory: Any,
        name: str,
        patience_seconds: float,
        tls: Contexts | None = None,
    ) -> None:
        """
        @param reactor: listens, and tells the time.
        @param factory: makes the protocols.
        @param name: of the port, for the log.
        @param patience_seconds: how long a connection may be of no use.
        @param tls: what clients speak TLS with; C{None}: they do not.
        """
        self._reactor = reactor
        if tls is not None:
            factory = TlsDoors(factory, tls, reactor, patience_seconds)
        self._most = few_of(descriptor_limit())
        self.counts = Counts()
        self.connections = FewConnections(
            reactor, factory, name, patience_seconds, self._most
        )
        self._listening: Listener | IListeningPort | None = None

    def listen(self, host: str, port: int) -> int:
        """Accept connections from now on; also before the reactor runs.

        @return: the port.
        @raise ConfigurationError: the port cannot be had; one sentence.
        """
        connections = self.connections
        self._listening, found = listen_plain(
            self._reactor,
            connections,
            (host, port),
            BACKLOG,
            self.counts,
            lambda: len(connections.engaged),
            self._most,
        )
        connections.doStart()  # type: ignore[no-untyped-call]
        return found

    def stop(self) -> Deferred[None]:
        """Accept no more connections; idempotent."""
        listening, self._listening = self._listening, None
        if listening is None:
            return maybeDeferred(lambda: None)
        self.connections.close_all()
        self.connections.doStop()  # type: ignore[no-untyped-call]
        if isinstance(listening, Listener):
            return maybeDeferred(listening.stop)
        return maybeDeferred(listening.stopListening).addCallback(lambda _: None)

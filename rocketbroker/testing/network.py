# -*- test-case-name: tests.testing.test_network -*-
"""A network in memory: servers and clients of one test, without ports and time.

L{MemoryNetwork} stands where the reactor stands: it tells the time (a
C{twisted.internet.task.Clock}), listens and connects. Nothing moves by itself: bytes,
new connections and their ends travel when the test says so, by C{settle()} (all that
happens without time passing) or by C{advance(seconds)}::

    network = MemoryNetwork()
    server = RemotingServer(network, RemotingServerOptions(), table)
    port = server.listen(0)
    client = RemotingClient(network, RemotingClientOptions())
    answer = client.invoke(f"127.0.0.1:{port}", Command(105), 3.0)
    network.settle()
    self.successResultOf(answer)

All hosts are one: only the port decides who answers.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, Final, cast

from twisted.internet import error
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.internet.interfaces import (
    IAddress,
    IConnector,
    IConsumer,
    IDelayedCall,
    IListeningPort,
    IProtocol,
    IPushProducer,
    IReactorTCP,
    ITCPTransport,
)
from twisted.internet.protocol import ClientFactory, ServerFactory
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from zope.interface import implementer

#: Steps after which a network that still has something to do goes round in circles.
MAX_STEPS: Final = 100000

_LOCAL: Final = "127.0.0.1"

#: Twisted's, which have no types.
_errors: Final[Any] = error
_failure: Final[Any] = Failure


@implementer(ITCPTransport, IConsumer, IPushProducer)
class MemoryTransport:
    """One end of a connection.

    @ivar protocol: whom it delivers to.
    @ivar other: the other end.
    @ivar disconnecting: whether it ends when what was written is delivered.
    """

    bufferSize = 65536

    def __init__(
        self, network: MemoryNetwork, here: IPv4Address, there: IPv4Address
    ) -> None:
        self._network = network
        self._here = here
        self._there = there
        self._unsent = bytearray()
        self._producer: Any = None
        self._is_pulled = False
        self._producer_paused = False
        self._reading = True
        self.disconnecting = False
        self.connected = True
        self.protocol: IProtocol | None = None
        self.other: MemoryTransport

    # ITransport, as far as protocols of ours use it.

    def write(self, data: bytes) -> None:
        """Send, when the network moves."""
        if not self.connected or self.disconnecting:
            return
        self._unsent += data
        producer = self._producer
        if self._is_pulled:
            self._producer_paused = True
        elif producer is not None and len(self._unsent) > self.bufferSize:
            self._producer_paused = True
            producer.pauseProducing()
        self._network.soon()

    def writeSequence(self, data: Any) -> None:
        """Send all of them."""
        self.write(b"".join(data))

    def loseConnection(self) -> None:
        """Close, when all is delivered."""
        self.disconnecting = True
        self._network.soon()

    def loseWriteConnection(self) -> None:
        """Half a connection is no connection in this protocol: as loseConnection."""
        self.loseConnection()

    def abortConnection(self) -> None:
        """Close at once; what was not delivered is lost."""
        self._unsent.clear()
        self.disconnecting = True
        self._network.ending(self, ConnectionAborted())

    def getPeer(self) -> IPv4Address:
        """The other end's address."""
        return self._there

    def getHost(self) -> IPv4Address:
        """This end's address."""
        return self._here

    def getTcpNoDelay(self) -> bool:
        """There is no delay in memory."""
        return True

    def setTcpNoDelay(self, enabled: bool) -> None:
        """There is no delay in memory."""

    def getTcpKeepAlive(self) -> bool:
        """Nothing is kept alive."""
        return False

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Nothing is kept alive."""

    # IConsumer and IPushProducer.

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Pause it when too much is unsent; or resume it whenever nothing is."""
        if not self.connected:
            producer.stopProducing()
            return
        self._producer = producer
        self._is_pulled = not streaming
        if self._is_pulled:
            producer.resumeProducing()

    def unregisterProducer(self) -> None:
        """It writes no more."""
        self._producer = None
        self._is_pulled = self._producer_paused = False

    def pauseProducing(self) -> None:
        """Deliver nothing to this end."""
        self._reading = False

    def resumeProducing(self) -> None:
        """Deliver again."""
        self._reading = True
        self._network.soon()

    def stopProducing(self) -> None:
        """Nobody wants what would be delivered."""
        self.loseConnection()

    # What the network calls.

    def move(self, max_bytes: int | None) -> bool:
        """Deliver at most C{max_bytes} that were written; whether anything moved."""
        if not self.connected:
            return False
        if self._unsent and self.other.connected and self.other._reading:
            data = bytes(self._unsent[:max_bytes])
            del self._unsent[: len(data)]
            if self._producer_paused and not self._unsent:
                self._producer_paused = False
                if self._producer is not None:
                    self._producer.resumeProducing()
            if not self.other.disconnecting:
                assert self.other.protocol is not None
                self.other.protocol.dataReceived(data)
            return True
        if self.disconnecting and not self._unsent:
            self._network.ending(self, ConnectionDone())
            return True
        return False

    def end(self, reason: Exception) -> None:
        """It is over."""
        if self.connected:
            self.connected = False
            producer, self._producer = self._producer, None
            if producer is not None:
                producer.stopProducing()
            if self.protocol is not None:
                self.protocol.connectionLost(_failure(reason))


@implementer(IListeningPort)
class MemoryPort:
    """Somebody listens."""

    def __init__(
        self, network: MemoryNetwork, port: int, factory: ServerFactory, interface: str
    ) -> None:
        self._network = network
        self._address = IPv4Address("TCP", interface or "0.0.0.0", port)
        self.factory = factory

    def startListening(self) -> None:
        """It does already."""

    def stopListening(self) -> None:
        """Accept nobody any more."""
        self._network.ports.pop(self._address.port, None)

    def getHost(self) -> IPv4Address:
        """Where."""
        return self._address


@implementer(IConnector)
class MemoryConnector:
    """One attempt to connect."""

    def __init__(
        self, network: MemoryNetwork, there: IPv4Address, factory: ClientFactory
    ) -> None:
        self._network = network
        self._there = there
        self._factory = factory
        self._waiting: IDelayedCall | None = None
        self.transport: MemoryTransport | None = None

    def connect(self) -> None:
        """Try, when the network moves."""
        self._waiting = self._network.callLater(0, self._arrive)

    def wait(self, seconds: float) -> None:
        """Nobody says anything, not even no."""
        self._waiting = self._network.callLater(
            seconds, self.fail, _errors.TimeoutError()
        )

    def stopConnecting(self) -> None:
        """Do not try any more."""
        self.fail(_errors.UserError())

    def disconnect(self) -> None:
        """Stop, wherever it is."""
        if self.transport is not None:
            self.transport.loseConnection()
        else:
            self.stopConnecting()

    def getDestination(self) -> IAddress:
        """Where to."""
        return self._there

    def fail(self, reason: Exception) -> None:
        """It did not work."""
        if self._waiting is not None and self._waiting.active():
            self._waiting.cancel()
        self._waiting = None
        self._factory.clientConnectionFailed(self, _failure(reason))

    def _arrive(self) -> None:
        self._waiting = None
        port = self._network.ports.get(self._there.port)
        if port is None:
            self.fail(_errors.ConnectionRefusedError())
            return
        self.transport = self._network.join(self._there, self._factory, port.factory)


@implementer(IReactorTCP)
class MemoryNetwork(Clock):
    """A reactor whose network is in memory.

    @ivar ports: who listens, by port.
    @ivar silent: ports that do not even refuse: attempts to connect time out.
    @ivar max_bytes: how many bytes arrive at once; C{None} for all there are. With 1
        every frame arrives in pieces.
    @ivar transports: both ends of all connections.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ports: dict[int, MemoryPort] = {}
        self.silent: set[int] = set()
        self.max_bytes: int | None = None
        self.transports: list[MemoryTransport] = []
        self._next_port = 40000
        self._moving: IDelayedCall | None = None
        self._steps = 0

    def listenTCP(
        self,
        port: int,
        factory: ServerFactory,
        backlog: int = 50,
        interface: str = "",
    ) -> IListeningPort:
        """Accept connections to a port; 0 for any that is free."""
        if port == 0:
            port = self._free_port()
        if port in self.ports:
            taken = OSError(errno.EADDRINUSE, "Address already in use")
            raise _errors.CannotListenError(interface, port, taken)
        listening = self.ports[port] = MemoryPort(self, port, factory, interface)
        return cast(IListeningPort, listening)

    def connectTCP(
        self,
        host: str,
        port: int,
        factory: ClientFactory[Any],
        timeout: float = 30,
        bindAddress: tuple[str, int] | None = None,
    ) -> IConnector:
        """Connect to a port, when the network moves."""
        connector = MemoryConnector(self, IPv4Address("TCP", host, port), factory)
        if port in self.silent:
            connector.wait(timeout)
        else:
            connector.connect()
        return cast(IConnector, connector)

    def callLater(
        self,
        delay: float,
        callable: Callable[..., object],
        *args: object,
        **kw: object,
    ) -> IDelayedCall:
        """Call when that much time has passed."""
        if delay <= 0:
            self._steps += 1
            assert self._steps < MAX_STEPS, "the network does not come to rest"
        return super().callLater(delay, callable, *args, **kw)

    def advance(self, amount: float) -> None:
        """Let time pass, and all happen that happens until then."""
        self._steps = 0
        super().advance(amount)

    def settle(self) -> None:
        """Let all happen that happens without time passing."""
        self.advance(0)

    def break_all(self, port: int) -> None:
        """Cut all connections to a port, as a network does."""
        for transport in list(self.transports):
            if transport.getPeer().port == port:
                self.ending(transport, ConnectionAborted())

    # What its parts call.

    def join(
        self, there: IPv4Address, client: ClientFactory, server: ServerFactory
    ) -> MemoryTransport:
        """Connect a client with a server; the client's end."""
        here = IPv4Address("TCP", _LOCAL, self._free_port())
        near = MemoryTransport(self, here, there)
        far = MemoryTransport(self, there, here)
        near.other, far.other = far, near
        self.transports += (near, far)
        far.protocol = cast(IProtocol, server.buildProtocol(here))
        near.protocol = cast(IProtocol, client.buildProtocol(there))
        far.protocol.makeConnection(cast(Any, far))
        near.protocol.makeConnection(cast(Any, near))
        return near

    def ending(self, transport: MemoryTransport, reason: Exception) -> None:
        """A connection ends: tell both ends, when the network moves."""
        self.callLater(0, self._end, transport, reason)

    def soon(self) -> None:
        """There is something to move."""
        if self._moving is None:
            self._moving = self.callLater(0, self._move)

    def _end(self, transport: MemoryTransport, reason: Exception) -> None:
        for end in (transport, transport.other):
            if end in self.transports:
                self.transports.remove(end)
            end.end(reason)

    def _move(self) -> None:
        self._moving = None
        moved = False
        for transport in list(self.transports):
            moved = transport.move(self.max_bytes) or moved
        if moved:
            self.soon()

    def _free_port(self) -> int:
        self._next_port += 1
        return self._next_port

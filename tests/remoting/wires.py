"""Wires of the hub and of the memory network: connections under test."""

from __future__ import annotations

import socket
from select import select
from typing import Any, cast

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory, Protocol, ServerFactory
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure

from rocketbroker.remoting.command_channel import CommandChannel
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.protocol import RemotingProtocol, StreamConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.tls_port import TlsPort
from rocketbroker.remoting.tls_transport import TlsDoor
from rocketbroker.remoting.turns import Turns
from rocketbroker.testing.contracts.wire import Wire
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire.tls_layer import TlsLayer
from tests.remoting.certificates import MadeContexts, client_context, server_context


class HubWire(Wire):
    """A connection of a hub; the peer is the other end of a socket pair."""

    def __init__(self, table: ResponderTable, limits: ConnectionLimits) -> None:
        self.reactor = MemoryReactorClock()
        self.hub = Hub(cast(Any, self.reactor))
        self.group = ConnectionGroup(
            cast(Any, self.reactor), table, limits, self.hub.turns
        )
        self._paused = False
        self._ended = False
        self._received = bytearray()
        self.peer, self.connection = self.another()

    def another(self) -> tuple[socket.socket, CommandChannel]:
        """One more connection of the same hub and group, and its peer."""
        ours, peer = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        peer.setblocking(False)
        return peer, self.hub.adopt(ours, self.group, "127.0.0.1", 5678)

    def reconnect(self) -> None:
        """Another connection in the place of the first."""
        self.peer.close()
        self.peer, self.connection = self.another()
        self._ended = False

    def step(self) -> None:
        """Turns, and what is due, until nothing happens."""
        while True:
            self.reactor.advance(0)
            self._read()
            if select([self.hub], [], [], 0)[0]:
                self.hub.doRead()
            elif not self._due():
                return

    def _due(self) -> bool:
        now = self.reactor.seconds()
        return any(c.getTime() <= now for c in self.reactor.getDelayedCalls())

    def _read(self) -> None:
        while not self._paused and not self._ended:
            try:
                data = self.peer.recv(1 << 20)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            self._ended = not data
            self._received += data

    def feed(self, data: bytes) -> None:
        """Through the socket."""
        self.feed_raw(data)

    def feed_raw(self, data: bytes) -> None:
        """Through the socket, as far as it takes it, with turns in between."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.peer.send(rest) :]
            except BlockingIOError:
                self.step()
            except BrokenPipeError:
                break
        self.step()

    def taken(self) -> bytes:
        """What came through the socket."""
        return self.taken_raw()

    def taken_raw(self) -> bytes:
        """The same."""
        self.step()
        data = bytes(self._received)
        self._received.clear()
        return data

    def ended(self) -> bool:
        """Whether the socket is at its end."""
        self.step()
        return self._ended

    def hang_up(self) -> None:
        """Close the peer's end."""
        self.peer.close()
        self._ended = True
        self.step()

    def pass_time(self, seconds: float) -> None:
        """By the reactor's clock."""
        self.step()
        self.reactor.advance(seconds)
        self.step()

    def pause(self) -> None:
        """Leave it in the socket."""
        self._paused = True

    def resume(self) -> None:
        """Take it from the socket."""
        self._paused = False
        self.step()

    def end(self) -> None:
        """Close both ends and the epoll."""
        self.hub.shut()
        self.peer.close()


class TlsPeer:
    """The peer's side of TLS, over a wire."""

    def __init__(self, wire: HubWire | NetworkWire) -> None:
        self._wire = wire
        self._layer = TlsLayer(client_context(), is_server=False)
        self._plain = bytearray()

    def converse(self, data: bytes = b"") -> None:
        """Read and write until neither has anything to say."""
        while True:
            self._plain += self._layer.receive(data)
            outgoing = self._layer.outgoing()
            if outgoing:
                self._wire.feed_raw(outgoing)
            data = self._wire.taken_raw()
            if not data and not outgoing:
                return

    def feed(self, data: bytes) -> None:
        """Say something."""
        view = memoryview(data)
        while view:
            view = view[self._layer.send(view) :]
        self._wire.feed_raw(self._layer.outgoing())

    def taken(self) -> bytes:
        """What was said to it."""
        self.converse(self._wire.taken_raw())
        data = bytes(self._plain)
        self._plain.clear()
        return data


class TlsWire(HubWire):
    """The same by TLS, beginning with the handshake."""

    def __init__(self, table: ResponderTable, limits: ConnectionLimits) -> None:
        super().__init__(table, limits)
        self.group.tls = TlsPort(
            cast(Any, self.reactor), MadeContexts(server_context()), False
        )
        self._tls = TlsPeer(self)
        self._tls.converse()

    def feed(self, data: bytes) -> None:
        """Through TLS."""
        self._tls.feed(data)

    def taken(self) -> bytes:
        """What came through TLS."""
        return self._tls.taken()


class _Peer(Protocol):
    """Collects."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.ended = False

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.ended = True


class _Once(ServerFactory):
    """Serves with the protocol under test."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        return self._protocol


class _Dial(ClientFactory):
    """Connects the peer."""

    def __init__(self, peer: _Peer) -> None:
        self._peer = peer

    def buildProtocol(self, addr: IAddress | None) -> _Peer:
        return self._peer


class NetworkWire(Wire):
    """A connection on a transport of the memory network."""

    def __init__(self, table: ResponderTable, limits: ConnectionLimits) -> None:
        self.network = MemoryNetwork()
        self.group = ConnectionGroup(self.network, table, limits, Turns())
        protocol = RemotingProtocol(self.group)
        self._peer = _Peer()
        self.network.listenTCP(1000, _Once(self.server(protocol)))
        self.network.connectTCP("127.0.0.1", 1000, _Dial(self._peer))
        self.network.settle()
        self.begin()
        assert isinstance(protocol.connection, StreamConnection)
        self.connection = protocol.connection

    def server(self, protocol: RemotingProtocol) -> Protocol:
        """What listens."""
        return protocol

    def begin(self) -> None:
        """The peer has connected."""

    @property
    def _transport(self) -> Any:
        return self._peer.transport

    def feed(self, data: bytes) -> None:
        """Through the transport."""
        self.feed_raw(data)

    def feed_raw(self, data: bytes) -> None:
        """The same."""
        self._transport.write(data)
        self.network.settle()

    def taken(self) -> bytes:
        """What came through the transport."""
        return self.taken_raw()

    def taken_raw(self) -> bytes:
        """The same."""
        self.network.settle()
        data = bytes(self._peer.received)
        self._peer.received.clear()
        return data

    def ended(self) -> bool:
        """Whether the transport said so."""
        self.network.settle()
        return self._peer.ended

    def hang_up(self) -> None:
        """Close the peer's end."""
        self._transport.loseConnection()
        self.network.settle()

    def pass_time(self, seconds: float) -> None:
        """By the network's clock."""
        self.network.settle()
        self.network.advance(seconds)
        self.network.settle()

    def pause(self) -> None:
        """Stop the transport from delivering."""
        self._transport.pauseProducing()

    def resume(self) -> None:
        """Let it deliver."""
        self._transport.resumeProducing()
        self.network.settle()

    def end(self) -> None:
        """Nothing is left of it anyway."""


class TlsNetworkWire(NetworkWire):
    """The same by TLS, beginning with the handshake."""

    def server(self, protocol: RemotingProtocol) -> Protocol:
        """A door, behind which it is."""
        port = TlsPort(self.network, MadeContexts(server_context()), True)
        return TlsDoor(protocol, port, self.network, 60.0)

    def begin(self) -> None:
        """The handshake."""
        self._tls = TlsPeer(self)
        self._tls.converse()

    def feed(self, data: bytes) -> None:
        """Through TLS."""
        self._tls.feed(data)
        self.network.settle()

    def taken(self) -> bytes:
        """What came through TLS."""
        return self._tls.taken()

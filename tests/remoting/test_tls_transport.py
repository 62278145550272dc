"""Clients of servers that speak TLS, on transports of Twisted."""

from __future__ import annotations

import ssl

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.errors import ConnectionLost
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from rocketbroker.wire.tls_layer import TlsLayer
from tests.remoting.certificates import client_context, server_context


class TlsServer(Protocol):
    """Answers each request with its body, by TLS."""

    def __init__(self) -> None:
        self.layer = TlsLayer(server_context())
        self.connection = Connection()

    def dataReceived(self, data: bytes) -> None:
        for command in self.connection.receive(self.layer.receive(data)):
            self.layer.send(encode(response_to(command, body=command.body)))
        self.push()

    def push(self) -> None:
        assert self.transport is not None
        self.transport.write(self.layer.outgoing())


class Silent(Protocol):
    """Says nothing."""


class Servers(ServerFactory):
    """Keeps the last connection."""

    def __init__(self, kind: type[Protocol]) -> None:
        self.kind = kind
        self.last: Protocol | None = None

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        self.last = self.kind()
        return self.last


class TlsTransportTests(SynchronousTestCase):
    """Over the memory network."""

    def serve(
        self, kind: type[Protocol], context: ssl.SSLContext | None = None
    ) -> Servers:
        self.network = MemoryNetwork()
        servers = Servers(kind)
        self.network.listenTCP(1000, servers)
        made = context or client_context()
        self.client = RemotingClient(
            self.network, RemotingClientOptions(), tls=lambda: made
        )
        return servers

    def test_requests(self) -> None:
        """Large ones, too, and several at once."""
        self.serve(TlsServer)
        bodies = [b"one", bytes(200_000), b"three"]
        waiting = [
            self.client.invoke("127.0.0.1:1000", Command(105, body=body), 10)
            for body in bodies
        ]
        self.network.settle()
        found = [self.successResultOf(each).body for each in waiting]
        self.assertEqual(found, bodies)
        self.client.stop()
        self.network.settle()

    def test_closedByServer(self) -> None:
        """A goodbye ends the connection; the next request makes another."""
        servers = self.serve(TlsServer)
        self.client.invoke("127.0.0.1:1000", Command(105), 10)
        self.network.settle()
        last = servers.last
        assert isinstance(last, TlsServer)
        assert last.transport is not None
        last.transport.write(last.layer.close())
        self.network.settle()
        self.assertIsNone(self.client.connection("127.0.0.1:1000"))
        again = self.client.invoke("127.0.0.1:1000", Command(105, body=b"again"), 10)
        self.network.settle()
        self.assertEqual(self.successResultOf(again).body, b"again")

    def test_notTrusted(self) -> None:
        """The requests that wait fail, with the reason."""
        context = ssl.create_default_context()
        context.check_hostname = False
        self.serve(TlsServer, context)
        waiting = self.client.invoke("127.0.0.1:1000", Command(105), 10)
        self.network.settle()
        failure = self.failureResultOf(waiting, ConnectionLost)
        self.assertIn("certificate is not trusted", failure.getErrorMessage())

    def test_silentServer(self) -> None:
        """A handshake that does not end fails the requests, and is given up."""
        self.serve(Silent)
        waiting = self.client.invoke("127.0.0.1:1000", Command(105), 100)
        self.network.settle()
        self.assertNoResult(waiting)
        self.network.advance(3)
        self.network.settle()
        failure = self.failureResultOf(waiting, ConnectionLost)
        self.assertIn("no handshake within 3 s", failure.getErrorMessage())

    def test_brokenRecord(self) -> None:
        """Bytes that are no record end the connection, and fail what waits."""
        servers = self.serve(TlsServer)
        self.client.invoke("127.0.0.1:1000", Command(105), 10)
        self.network.settle()
        assert servers.last is not None
        assert servers.last.transport is not None
        waiting = self.client.invoke("127.0.0.1:1000", Command(105), 10)
        servers.last.transport.write(b"no record at all")
        self.network.settle()
        self.failureResultOf(waiting, ConnectionLost)
        self.assertIsNone(self.client.connection("127.0.0.1:1000"))

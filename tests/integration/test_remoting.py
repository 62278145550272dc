"""The remoting server and client over real sockets, on the real reactor."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.errors import ConfigurationError, ConnectionLost
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.listener import connections_of, descriptor_limit
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.turns import Turns
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.frames import encode

reactor: Any = installed
LOCAL = "127.0.0.1"


class TransportTests(TestCase):
    """With Twisted's transports."""

    def hub(self) -> Hub | Turns:
        """What serves the connections."""
        return Turns()

    def setUp(self) -> None:
        """A server that echoes."""
        self.connections: list[IConnection] = []
        self.table = ResponderTable()
        self.table.register(105, self.echo)
        self.turns = self.hub()
        options = RemotingServerOptions(bind_address=LOCAL)
        self.server = RemotingServer(reactor, options, self.table, self.turns)
        self.port = self.server.listen(0)
        self.address = f"{LOCAL}:{self.port}"
        self.client = RemotingClient(reactor, RemotingClientOptions())

    def tearDown(self) -> Deferred[None]:  # type: ignore[override]  # trial waits
        """All is closed."""
        return Deferred.fromCoroutine(self.stop())

    async def stop(self) -> None:
        await self.client.stop()
        await self.server.stop()
        if isinstance(self.turns, Hub):
            self.turns.shut()

    def echo(self, connection: IConnection, command: Command) -> Answer:
        self.connections.append(connection)
        return response_to(command, body=command.body)

    async def test_echo(self) -> None:
        """Small bodies and large ones come back."""
        for size in (0, 1, 100_000, 10_000_000):
            body = bytes(size)
            answer = await self.client.invoke(self.address, Command(105, {}, body), 20)
            self.assertEqual(answer.body, body)

    async def test_peer(self) -> None:
        """The server sees the client's address."""
        await self.client.invoke(self.address, Command(105), 20)
        (connection,) = self.connections
        here = self.client.connection(self.address)
        assert here is not None
        self.assertTrue(connection.peer.startswith(f"{LOCAL}:"))
        self.assertEqual(here.peer, self.address)

    async def test_inUse(self) -> None:
        """A port in use is one sentence."""
        options = RemotingServerOptions(bind_address=LOCAL)
        other = RemotingServer(reactor, options, self.table, self.turns)
        error = self.assertRaises(ConfigurationError, other.listen, self.port)
        self.assertEqual(
            str(error), f"Cannot listen on {self.address}: the port is in use."
        )

    async def test_refused(self) -> None:
        """Nobody listens: ConnectionLost."""
        await self.server.stop()
        with self.assertRaises(ConnectionLost):
            await self.client.invoke(self.address, Command(105), 20)

    async def test_garbage(self) -> None:
        """Garbage closes its connection; others go on."""

        def send_garbage() -> bytes:
            with socket.create_connection((LOCAL, self.port), 20) as peer:
                peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
                return peer.recv(100)

        self.assertEqual(await deferToThread(send_garbage), b"")
        await self.client.invoke(self.address, Command(105), 20)
        self.assertEqual(self.server.group.counts.broken, 1)

    async def test_slowReader(self) -> None:
        """One that sends and does not read is not read, and loses nothing."""
        request = encode(Command(105, body=bytes(100_000)))
        wanted = 200 * len(encode(response_to(Command(0), body=bytes(100_000))))

        def receive() -> int:
            received = 0
            while received < wanted and (data := peer.recv(1 << 20)):
                received += len(data)
            return received

        with socket.create_connection((LOCAL, self.port), 20) as peer:
            sent = deferToThread(peer.sendall, request * 200)
            while not self.server.group.counts.congestions:
                await deferLater(reactor, 0.01)
            self.assertFalse(sent.called)
            self.assertEqual(await deferToThread(receive), wanted)
            await sent

    async def test_fromServer(self) -> None:
        """A server asks its client."""
        self.client.group.table.register(
            40, lambda connection, command: response_to(command, body=b"yes")
        )
        await self.client.invoke(self.address, Command(105), 20)
        answer = await self.connections[0].request(Command(40), 20)
        self.assertEqual(answer.body, b"yes")


class HubTests(TransportTests):
    """With the hub."""

    def hub(self) -> Hub | Turns:
        """One epoll for all."""
        return Hub(reactor)

    def test_connectionsLimit(self) -> None:
        """Its port says how many connections there may be."""
        limit = connections_of(descriptor_limit())
        self.assertEqual(self.server.group.max_connections, limit)

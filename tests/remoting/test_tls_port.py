"""TLS at ports of the hub: handshakes that fail, last, or are too many; enforcing."""

from __future__ import annotations

import socket
from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.tls_port import MAX_HANDSHAKES, TlsPort
from rocketbroker.remoting.tls_socket import HANDSHAKE_BYTES
from rocketbroker.remoting.tls_transport import HANDSHAKE_SECONDS
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from rocketbroker.wire.tls_layer import TlsError, TlsLayer
from tests.remoting.certificates import MadeContexts, client_context, server_context
from tests.remoting.wires import HubWire

REQUEST = encode(Command(105, body=b"ask"))
PROXY = b"PROXY TCP4 9.8.7.6 127.0.0.1 1234 10911\r\n"


class TlsPortTests(SynchronousTestCase):
    """Over socket pairs."""

    def setUp(self) -> None:
        """A port at which TLS may be spoken, and a connection."""
        table = ResponderTable()
        table.register(105, lambda _, command: response_to(command, body=b"said"))
        self.wire = HubWire(table, ConnectionLimits(proxies="127.0.0.1"))
        self.serve(server_context())
        self.client = TlsLayer(client_context(), is_server=False)

    def serve(self, context: Any, is_enforcing: bool = False) -> None:
        clock = cast(Any, self.wire.reactor)
        self.port = TlsPort(clock, MadeContexts(context), is_enforcing)
        self.wire.group.tls = self.port

    def enforce(self) -> None:
        """A connection of a port that wants TLS."""
        self.serve(server_context(), is_enforcing=True)
        self.wire.reconnect()

    def tearDown(self) -> None:
        """No descriptor is left open."""
        self.wire.end()

    def hello(self) -> bytes:
        self.client.receive()
        return self.client.outgoing()

    def shake(self, first: bytes) -> None:
        """The handshake, beginning with some bytes."""
        while not self.client.is_open:
            self.wire.feed(first)
            self.client.receive(self.wire.taken())
            first = self.client.outgoing()
        self.wire.feed(first)

    def ask(self) -> bytes:
        self.client.send(REQUEST)
        self.wire.feed(self.client.outgoing())
        (answer,) = Connection().receive(self.client.receive(self.wire.taken()))
        return bytes(answer.body or b"")

    def test_permissive(self) -> None:
        """Both are served; nobody is counted as one who shakes hands afterwards."""
        self.shake(self.hello())
        self.assertEqual(self.ask(), b"said")
        self.assertEqual((self.port.opened, self.port.shaking), (1, {}))
        peer, _ = self.wire.another()
        self.addCleanup(peer.close)
        peer.sendall(REQUEST)
        self.wire.step()
        self.assertTrue(peer.recv(100))

    def test_byteByByte(self) -> None:
        """The handshake comes in pieces of a byte."""
        for byte in self.hello():
            self.wire.feed(bytes([byte]))
        self.client.receive(self.wire.taken())
        self.shake(self.client.outgoing())
        self.assertEqual(self.ask(), b"said")

    def test_proxyFirst(self) -> None:
        """The header of a proxy comes first: in one piece with the hello, and alone;
        where TLS is enforced, too."""
        for is_enforcing in (False, True):
            for pieces in ((PROXY + self.hello(),), (PROXY, self.hello())):
                with self.subTest(is_enforcing=is_enforcing, pieces=len(pieces)):
                    self.serve(server_context(), is_enforcing)
                    self.wire.reconnect()
                    for piece in pieces[:-1]:
                        self.wire.feed(piece)
                    self.shake(pieces[-1])
                    self.assertEqual(self.ask(), b"said")
                    self.assertEqual(self.wire.connection.peer, "9.8.7.6:1234")
                self.client = TlsLayer(client_context(), is_server=False)

    def test_enforcing(self) -> None:
        """A plain request ends the connection; TLS is served."""
        self.enforce()
        self.wire.feed(REQUEST)
        self.assertTrue(self.wire.ended())
        self.assertEqual(self.wire.group.counts.frames_in, 0)
        self.wire.reconnect()
        self.shake(self.hello())
        self.assertEqual(self.ask(), b"said")

    def test_plainBehindProxy(self) -> None:
        """The header of a proxy opens no way to plain requests: neither in one piece
        with them, nor when they come later."""
        for pieces in ((PROXY + REQUEST,), (PROXY, REQUEST), (PROXY[:9], PROXY[9:])):
            with self.subTest(pieces=pieces):
                self.enforce()
                for piece in pieces:
                    self.wire.feed(piece)
                self.wire.feed(REQUEST)
                self.assertTrue(self.wire.ended())
                self.assertEqual(self.wire.group.counts.frames_in, 0)

    def test_noTls(self) -> None:
        """Where there is no TLS, a hello breaks off, as other protocols do."""
        self.wire.group.tls = None
        self.wire.feed(self.hello())
        self.assertTrue(self.wire.ended())

    def test_noCertificate(self) -> None:
        """The connection ends, and the log says why, once."""
        self.serve(None)
        self.wire.feed(self.hello())
        self.assertTrue(self.wire.ended())
        self.assertEqual(self.port.shaking, {})

    def test_garbageBehindHello(self) -> None:
        """Bytes that are no TLS end the handshake with an alert."""
        self.wire.feed(self.hello() + b"\x17\x03\x03\x00\x05hello" * 3)
        self.assertTrue(self.wire.ended())
        with self.assertRaises(TlsError):
            self.client.receive(self.wire.taken())
            self.client.receive(b"")
        self.assertEqual(self.port.shaking, {})

    def test_garbageWhenOpen(self) -> None:
        """A changed record ends an open connection."""
        self.shake(self.hello())
        self.client.send(REQUEST)
        record = bytearray(self.client.outgoing())
        record[-1] ^= 1
        self.wire.feed(bytes(record))
        self.assertTrue(self.wire.ended())
        self.assertEqual(self.wire.group.counts.frames_in, 0)

    def test_longHandshake(self) -> None:
        """Who sends too much before the handshake is over is cut off."""
        self.wire.feed(self.hello())
        head = b"\x16\x03\x03\x40\x00\x0b\xff\xff\xff"  # a certificate without an end
        self.wire.feed(head + bytes(HANDSHAKE_BYTES))
        self.assertTrue(self.wire.ended())

    def test_slowHandshake(self) -> None:
        """A handshake that does not end is ended."""
        self.wire.feed(self.hello()[:100])
        self.wire.pass_time(HANDSHAKE_SECONDS - 1)
        self.assertFalse(self.wire.ended())
        self.wire.pass_time(1)
        self.assertTrue(self.wire.ended())
        self.assertEqual(self.port.shaking, {})

    def test_manyHandshakes(self) -> None:
        """Beyond the bound the oldest of the address that has most of them ends."""
        hello = self.hello()[:100]
        peers: list[socket.socket] = []
        for _ in range(MAX_HANDSHAKES + 1):
            peer, _ = self.wire.another()
            self.addCleanup(peer.close)
            peer.sendall(hello)
            peers.append(peer)
        self.wire.step()
        self.assertEqual(len(self.port.shaking), MAX_HANDSHAKES)
        self.assertEqual(peers[0].recv(1), b"")
        with self.assertRaises(BlockingIOError):
            peers[1].recv(1)

    def test_closeNotify(self) -> None:
        """A client that says goodbye is served first, and then gone."""
        self.shake(self.hello())
        self.client.send(REQUEST)
        self.wire.feed(self.client.outgoing() + self.client.close())
        self.assertEqual(self.wire.group.counts.frames_in, 1)
        self.wire.hang_up()
        self.assertTrue(self.wire.connection.closed)

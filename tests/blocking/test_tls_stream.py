"""The client that blocks, by TLS, over real sockets."""

from __future__ import annotations

import contextlib
import pickle
import socket
import ssl
import threading
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.certificates import context_of, self_signed
from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.machine import ThisMachine
from rocketbroker.blocking.settings import Settings
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConnectionLost
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from tests.missing import needs


@needs("cryptography")
class TlsStreamTests(SynchronousTestCase):
    """A server in a thread, which answers with what it gets."""

    def setUp(self) -> None:
        """It listens."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        self.paths = [str(folder / name) for name in ("a.crt", "a.key")]
        for path, text in zip(self.paths, self_signed(["127.0.0.1"]), strict=True):
            Path(path).write_bytes(text)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"
        context = context_of(self.paths[0], self.paths[1], [])
        thread = threading.Thread(target=self.serve, args=(context,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.stop)

    def stop(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()

    def serve(self, context: ssl.SSLContext) -> None:
        """One connection after another, until nobody listens any more."""
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self.listening.accept()
                with contextlib.suppress(OSError), plain:
                    self.answer(context.wrap_socket(plain, server_side=True))

    @staticmethod
    def answer(sock: ssl.SSLSocket) -> None:
        incoming = Connection()
        with sock:
            while data := sock.recv(65536):
                for command in incoming.receive(data):
                    sock.sendall(encode(response_to(command, body=command.body)))

    def connection(self, tls: ClientTls | None) -> ServerConnection:
        found = ServerConnection(ThisMachine(), self.address, tls=tls)
        self.addCleanup(found.close)
        return found

    def test_requests(self) -> None:
        """Of any size, and more than the system takes at once."""
        connection = self.connection(ClientTls(ca_path=self.paths[0]))
        bodies = [b"one", bytes(3_000_000), b"three"]
        tickets = [connection.submit(Command(1, {}, body), 30.0) for body in bodies[:1]]
        found = [connection.collect(ticket).body for ticket in tickets]
        for body in bodies[1:]:
            ticket = connection.submit(Command(1, {}, body), 30.0)
            found.append(connection.collect(ticket).body)
        self.assertEqual(found, bodies)
        self.assertEqual(connection.connects, 1)

    def test_whomItTrusts(self) -> None:
        """Nobody has signed the certificate: so it is named, or not looked at."""
        refusing = self.connection(ClientTls())
        with self.assertRaisesRegex(ConnectionLost, "is not trusted"):
            refusing.submit(Command(1), 30.0)
        trusting = self.connection(ClientTls(verify=False))
        ticket = trusting.submit(Command(1, {}, b"x"), 30.0)
        self.assertEqual(trusting.collect(ticket).body, b"x")

    def test_settingsTravel(self) -> None:
        """To executors, with the paths and without what was made of them."""
        tls = ClientTls(ca_path=self.paths[0])
        tls.context()
        copy = pickle.loads(pickle.dumps(Settings("a:1", tls=tls)))
        self.assertEqual(copy.tls, tls)


class SilentServerTests(SynchronousTestCase):
    """A server that accepts and says nothing."""

    def test_handshake(self) -> None:
        """It takes no longer than a request may."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = f"127.0.0.1:{listening.getsockname()[1]}"
            connection = ServerConnection(ThisMachine(), address, tls=ClientTls())
            with self.assertRaisesRegex(ConnectionLost, "no handshake in time"):
                connection.submit(Command(1), 0.05)

"""The client by TLS, on Twisted with a network in memory."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.certificates import context_of, self_signed
from rocketbroker.client.connection import Terms
from rocketbroker.client.connections import Connections
from rocketbroker.client.runtimes.on_twisted import TwistedRuntime
from rocketbroker.client.settings import ClientSettings
from rocketbroker.config.certificates import ClientTls
from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.errors import ConfigurationError, ConnectionLost, RequestTimeout
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.tls_port import TlsPort
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire.command import Command, response_to
from tests.missing import needs
from tests.remoting.certificates import MadeContexts

T = TypeVar("T")


class Silent(Protocol):
    """Says nothing."""


class SilentServers(ServerFactory):
    """Makes these."""

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """One for each connection."""
        return Silent()


@needs("cryptography")
class TlsLinkTests(SynchronousTestCase):
    """A server that enforces TLS."""

    def setUp(self) -> None:
        """It answers with what it gets."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        self.paths = [str(folder / name) for name in ("a.crt", "a.key")]
        for path, text in zip(self.paths, self_signed(["127.0.0.1"]), strict=True):
            Path(path).write_bytes(text)
        self.network = MemoryNetwork()
        self.runtime = TwistedRuntime(cast(Any, self.network))
        table = ResponderTable()
        table.register(1, lambda _, command: response_to(command, body=command.body))
        options = RemotingServerOptions()
        server = RemotingServer(cast(Any, self.network), options, table)
        contexts = MadeContexts(context_of(self.paths[0], self.paths[1], []))
        server.group.tls = TlsPort(self.network, contexts, is_enforcing=True)
        self.port = server.listen(0)

    def connections(self, tls: ClientTls | None) -> Connections:
        return Connections(self.runtime, Terms(tls=tls))

    def finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        done = Deferred.fromCoroutine(coroutine)
        for _ in range(1000):
            self.network.advance(0.001)
        return self.successResultOf(done)

    def problem(self, tls: ClientTls | None, port: int | None = None) -> str:
        """Why a request fails."""
        address = f"127.0.0.1:{port or self.port}"
        asking = self.connections(tls).ask(address, Command(1), 0.5)
        failed = Deferred.fromCoroutine(asking)
        for _ in range(1000):
            self.network.advance(0.001)
        errors = ConnectionLost, RequestTimeout
        return str(self.failureResultOf(failed, *errors).getErrorMessage())

    def test_requests(self) -> None:
        """Of any size; and again after the connection was lost; nothing is left."""
        connections = self.connections(ClientTls(ca_path=self.paths[0]))
        address = f"127.0.0.1:{self.port}"

        async def ask(body: bytes) -> bytes:
            return (await connections.ask(address, Command(1, {}, body), 0.5)).body

        for body in (b"one", bytes(100_000)):
            self.assertEqual(self.finish(ask(body)), body)
        self.network.break_all(self.port)
        self.network.settle()
        self.assertEqual(self.finish(ask(b"two")), b"two")
        self.assertEqual(connections.to(address).connects, 2)
        self.finish(connections.close())
        self.assertEqual(self.network.transports, [])
        self.assertEqual(self.network.getDelayedCalls(), [])

    def test_whomItTrusts(self) -> None:
        """Nobody has signed the certificate: so it is named, or not looked at."""
        self.assertIn("is not trusted", self.problem(ClientTls()))
        other = str(Path(self.mktemp()).absolute())
        Path(other).write_bytes(self_signed(["other"])[0])
        self.assertIn("is not trusted", self.problem(ClientTls(ca_path=other)))
        connections = self.connections(ClientTls(verify=False))
        asking = connections.ask(f"127.0.0.1:{self.port}", Command(1, {}, b"x"), 0.5)
        self.assertEqual(self.finish(asking).body, b"x")

    def test_withoutTls(self) -> None:
        """The server closes the connection."""
        self.assertIn("is gone", self.problem(None))

    def test_silentServer(self) -> None:
        """A handshake does not take longer than the request may."""
        self.network.listenTCP(7, SilentServers())
        self.assertIn("took no request in time", self.problem(ClientTls(), 7))
        self.assertEqual(self.network.transports, [])

    def test_fileThatGoes(self) -> None:
        """A file that was in order and is not any more fails the next connection."""
        tls = ClientTls(ca_path=self.paths[0])
        tls.context()
        Path(self.paths[0]).unlink()
        self.assertIn("cannot be read: No such file", self.problem(tls))

    def test_settings(self) -> None:
        """What cannot work is said before anybody connects; passwords are not shown."""
        for words, problem in (
            ({"tls_ca": "/a"}, "go with tls=True"),
            ({"tls_verify": False}, "go with tls=True"),
            ({"tls": True, "tls_key": "/a"}, "go together"),
            ({"tls": True, "tls_ca": "/nowhere"}, "/nowhere cannot be read"),
            ({"tls": True, "tls_ca": self.paths[1]}, "no certificates in PEM"),
        ):
            with self.assertRaisesRegex(ConfigurationError, problem):
                ClientSettings(**cast(Any, words))
        settings = ClientSettings(
            tls=True,
            tls_certificate=self.paths[0],
            tls_key=self.paths[1],
            tls_key_password="opensesame",
        )
        self.assertNotIn("opensesame", f"{settings} {settings.tls_terms()}")

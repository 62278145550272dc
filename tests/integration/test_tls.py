"""TLS at real ports: with the official Java client, workers, and certificates."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker import aio, threads
from rocketbroker.app.certificates import self_signed
from rocketbroker.blocking import Client, Message, Producer, Settings
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import RocketbrokerError
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from scripts.lab.javaclient import JavaClient, JavaError
from scripts.lab.servers import Cluster
from tests.integration.javacase import fresh
from tests.missing import needs
from tests.remoting.certificates import client_context

VERSION = "5.3.3"

#: Sends by the face for Twisted, in a process of its own.
TWISTED = """
from twisted.internet.task import react
from rocketbroker.deferred import connect

async def main(reactor):
    async with connect(reactor, {names!r}, tls=True, tls_ca={ca!r}) as session:
        await session.send("Faces", "deferred")

react(main)
"""

#: Request 105 for a topic that is not there.
QUESTION = encode(Command(105, {"topic": "none"}))


def port_of(address: str) -> int:
    """The port of C{host:port}."""
    return int(address.rpartition(":")[2])


def is_answered(address: str, context: ssl.SSLContext | None) -> bool:
    """Whether a request to an address is answered."""
    sock = socket.create_connection(("127.0.0.1", port_of(address)), 30)
    try:
        if context is not None:
            sock = context.wrap_socket(sock)
        with sock:
            sock.sendall(QUESTION)
            return bool(Connection().receive(sock.recv(4096)))
    except (ssl.SSLError, ConnectionError):
        return False
    finally:
        sock.close()


@needs("cryptography")
class TlsTests(SynchronousTestCase):
    """A cluster, and clients with TLS and without."""

    def setUp(self) -> None:
        """Nothing runs."""
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()

    def cluster(self, **settings: object) -> Cluster:
        """One whose servers both have these settings."""
        cluster = Cluster(**settings)
        cluster.namesrv.set(**settings)
        self.addCleanup(cluster.stop)
        return cluster.start()

    def java(self, cluster: Cluster, **properties: object) -> JavaClient:
        """The official client, with properties of the system."""
        words = [f"-D{key}={text}" for key, text in properties.items()]
        folder = self.folder / fresh("java")
        folder.mkdir()
        prefix = ["env", f"JAVA_TOOL_OPTIONS={' '.join(words)}"]
        java = JavaClient(VERSION, cluster.names, folder, prefix)
        self.addCleanup(java.stop)
        return java

    def certificate(self, name: str) -> tuple[Path, Path]:
        """A certificate and its key."""
        paths = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        for path, content in zip(paths, self_signed([name, "127.0.0.1"]), strict=True):
            path.write_bytes(content)
        return paths

    def test_javaWithoutSettings(self) -> None:
        """The ports speak both from the start on, with a certificate of their own: what
        a client sends by TLS another gets without, and the other way round."""
        for workers in ("0", "2"):
            with self.subTest(workers=workers):
                cluster = self.cluster(workers=workers)
                secure = self.java(cluster, **{"tls.enable": "true"})
                plain = self.java(cluster)
                for sender, receiver in ((secure, plain), (plain, secure)):
                    topic = fresh("Secured")
                    sender("producer", name=topic, group=topic)
                    sender.send(topic, topic, b"first")  # makes the topic
                    receiver("consumer", name=topic, group=topic, topic=topic)
                    for number in range(20):
                        sender.send(topic, topic, b"%d" % number + bytes(10_000))
                    self.assertEqual(len(receiver.received(topic, 21)), 21)

    def test_javaWithCertificates(self) -> None:
        """Both sides show certificates that the other trusts, broker and name server
        among themselves, too; whoever has none is not served."""
        server, server_key = self.certificate("server")
        client, client_key = self.certificate("client")
        clients = {
            "tls.test.mode.enable": "false",
            "tls.client.certPath": client,
            "tls.client.keyPath": client_key,
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": server,
        }
        cluster = self.cluster(
            **clients,
            **{
                "tls.server.mode": "enforcing",
                "tls.server.need.client.auth": "require",
                "tls.server.certPath": server,
                "tls.server.keyPath": server_key,
                "tls.server.authClient": "true",
                "tls.server.trustCertPath": client,
            },
        )
        java = self.java(cluster, **{"tls.enable": "true"}, **clients)
        topic = fresh("Certified")
        java("producer", name=topic, group=topic)
        java.send(topic, topic, b"known")
        java("consumer", name=topic, group=topic, topic=topic)
        self.assertEqual(len(java.received(topic, 1)), 1)
        for address in (cluster.names, cluster.address):
            self.assertFalse(is_answered(address, None))
            context = client_context()
            self.assertFalse(is_answered(address, context))
            context.load_cert_chain(server, server_key)  # not whom it trusts
            self.assertFalse(is_answered(address, context))
            context = client_context()
            context.load_cert_chain(client, client_key)
            self.assertTrue(is_answered(address, context))
        stranger = self.java(cluster, **{"tls.enable": "true"})
        stranger("producer", name=topic, group=topic)
        with self.assertRaises(JavaError):
            stranger.send(topic, topic, b"unknown")

    def test_ourClients(self) -> None:
        """All faces, and the client that blocks; the certificate is named to them."""
        server, key = self.certificate("server")
        cluster = self.cluster(
            **{
                "tls.server.mode": "enforcing",
                "tls.test.mode.enable": "false",
                "tls.server.certPath": server,
                "tls.server.keyPath": key,
            }
        )
        names, ca = cluster.names, str(server)
        with threads.connect(names, tls=True, tls_ca=ca) as session:
            session.send("Faces", "threads")

        async def send() -> None:
            async with aio.connect(names, tls=True, tls_ca=ca) as client:
                await client.send("Faces", "aio")
            os.environ["ROCKETMQ_CLIENT_TLS"] = "true"
            os.environ["ROCKETMQ_CLIENT_TLS_VERIFY"] = "false"
            try:
                async with aio.connect(names) as client:
                    await client.send("Faces", "environment")
            finally:
                del os.environ["ROCKETMQ_CLIENT_TLS"]
                del os.environ["ROCKETMQ_CLIENT_TLS_VERIFY"]

        asyncio.run(send())
        with Client(Settings(names, tls=ClientTls(ca_path=ca))) as blocking:
            Producer(blocking).send(Message("Faces", b"blocking" * 300_000))
        program = TWISTED.format(names=names, ca=ca)
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        with (
            threads.connect(names, tls=True, tls_ca=ca) as session,
            session.consumer("Faces", group="G", start="earliest") as messages,
        ):
            found = {next(messages).body[:8] for _ in range(5)}
        wanted = {b"threads", b"aio", b"environm", b"blocking", b"deferred"}
        self.assertEqual(found, wanted)
        with (
            threads.connect(names, tls=True, patience=1) as session,
            self.assertRaises(RocketbrokerError),
        ):
            session.send("Faces", "not trusted")

    def test_renewed(self) -> None:
        """A new certificate is shown to those who come; who is there stays."""
        server, key = self.certificate("server")
        cluster = self.cluster(
            **{
                "tls.test.mode.enable": "false",
                "tls.server.certPath": server,
                "tls.server.keyPath": key,
            }
        )
        address = ("127.0.0.1", port_of(cluster.address))

        def connected() -> ssl.SSLSocket:
            with socket.create_connection(address, 30) as sock:
                return client_context().wrap_socket(sock)

        with connected() as before:
            first = before.getpeercert(binary_form=True)
            for old, new in zip((server, key), self.certificate("new"), strict=True):
                os.replace(new, old)
            while True:
                with connected() as after:
                    if after.getpeercert(binary_form=True) != first:
                        break
            before.sendall(QUESTION)
            self.assertTrue(Connection().receive(before.recv(4096)))

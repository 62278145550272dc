"""The guard of the pages of the metrics port, behind TLS and without."""

from __future__ import annotations

import ssl
from pathlib import Path

from twisted.internet.defer import succeed
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.certificates import context_of, self_signed
from rocketbroker.app.tls import PortContexts
from rocketbroker.files.secret_file import SecretFile
from rocketbroker.metrics.page_guard import PageGuard
from rocketbroker.metrics.problems import ProblemsResource
from rocketbroker.metrics.samples import Samples
from rocketbroker.metrics.site import metrics_site
from rocketbroker.remoting.plain_port import PlainPort
from rocketbroker.remoting.refusal_log import AddressRefusals
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.tls_layer import TlsLayer
from tests.missing import needs
from tests.remoting.certificates import MadeContexts, client_context

PATIENCE = 60.0


class Client(Protocol):
    """Asks for a page; by TLS if there is a context."""

    def __init__(self, request: bytes, context: ssl.SSLContext | None) -> None:
        self.request = request
        self.heard = b""
        self.layer = None if context is None else TlsLayer(context, is_server=False)

    def connectionMade(self) -> None:
        assert self.transport is not None
        if self.layer is None:
            self.transport.write(self.request)
        else:
            self.dataReceived(b"")

    def dataReceived(self, data: bytes) -> None:
        assert self.transport is not None
        if self.layer is None:
            self.heard += data
            return
        was_open = self.layer.is_open
        self.heard += self.layer.receive(data)
        if self.layer.is_open and not was_open:
            self.layer.send(self.request)
        self.transport.write(self.layer.outgoing())


class Clients(ClientFactory):
    """Makes one."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def buildProtocol(self, addr: IAddress | None) -> Client:
        return self.client


@needs("cryptography")
class PageGuardTests(SynchronousTestCase):
    """L{PageGuard}, at a port."""

    def setUp(self) -> None:
        """A port, and files for it."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.network = MemoryNetwork()

    def serve(
        self,
        token: str = "",
        takes_certificates: bool = False,
        tls: PortContexts | None = None,
    ) -> None:
        """Listen on port 1000."""
        secret = None
        if token:
            path = self.folder / "token"
            path.write_text(token)
            secret = SecretFile(str(path), "metricsBearerTokenFile")
        refusals = AddressRefusals(self.network.seconds)
        site = metrics_site(
            lambda names: succeed(Samples({}, names)),
            at_once,
            lambda: None,
            lambda: ["something to mend"],
            lambda: None,
            {b"problems": ProblemsResource(lambda: {"problems": [], "leftOut": 0})},
            PageGuard(secret, takes_certificates, refusals),
        )
        port = PlainPort(self.network, site, "metrics", PATIENCE, tls)
        port.listen("", 1000)
        self.addCleanup(port.stop)

    def ask(
        self,
        path: str,
        header: str = "",
        context: ssl.SSLContext | None = None,
        method: str = "GET",
    ) -> tuple[bytes, bytes]:
        """Head and body of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n"
        client = Client(head.encode(), context)
        self.network.connectTCP("127.0.0.1", 1000, Clients(client))
        self.network.settle()
        assert client.transport is not None
        client.transport.loseConnection()
        self.network.settle()
        answer, _, body = client.heard.partition(b"\r\n\r\n")
        return answer, body

    def status(self, path: str, header: str = "") -> bytes:
        """The status of the answer to a plain request."""
        return self.ask(path, header)[0].split(b" ")[1]

    def test_tokenOpensPages(self) -> None:
        """Nothing else does: not another, none, the start of it, or another scheme."""
        self.serve("s3cret")
        for page in ("/metrics", "/problems", "/healthz"):
            for right in ("Bearer s3cret", "bearer  s3cret"):
                header = f"Authorization: {right}\r\n"
                self.assertEqual(self.status(page, header), b"200")
            for wrong in (
                "Bearer s3cre",
                "Bearer",
                "Basic s3cret",
                "s3cret",
                "Bearer x",
            ):
                header = f"Authorization: {wrong}\r\n"
                self.assertEqual(self.status(page, header), b"401")
            head, body = self.ask(page)
            self.assertIn(b"WWW-Authenticate: Bearer", head)
            self.assertEqual(
                body, b"This page wants a bearer token or a client's certificate.\n"
            )
            self.assertEqual(self.ask(page, method="HEAD")[1], b"")

    def test_probesStayOpen(self) -> None:
        """Whether the server lives and is ready, and no more than that."""
        self.serve("s3cret")
        for page in ("/healthz/live", "/healthz/ready"):
            head, body = self.ask(page)
            self.assertIn(b"200 OK", head)
            self.assertEqual(body, b"ok\n")
        self.assertEqual(self.status("/healthz/other"), b"404")
        self.assertEqual(self.status("/other"), b"404")

    def test_oneLineForAnAddress(self) -> None:
        """However often it asks; the line does not have what it showed."""
        self.serve("s3cret")
        with capturedLogs() as events:
            for _ in range(3):
                self.ask("/metrics", "Authorization: Bearer guessed\r\n")
                self.network.advance(2)
        lines = [formatEvent(event) for event in events]
        lines = [line for line in lines if "refused" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn("127.0.0.1 asks for pages of metrics without", lines[0])
        self.assertNotIn("guessed", lines[0])

    def certificate(self, name: str) -> tuple[str, str]:
        """The paths of a certificate and its key."""
        paths = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        for path, content in zip(paths, self_signed([name]), strict=True):
            path.write_bytes(content)
        return str(paths[0]), str(paths[1])

    def contexts(self, is_enforcing: bool, trusted: str) -> PortContexts:
        """What a port speaks TLS with that asks for certificates and wants none."""
        context = context_of(*self.certificate("server"), [])
        context.load_verify_locations(trusted)
        context.verify_mode = ssl.CERT_OPTIONAL
        return PortContexts(MadeContexts(context), is_enforcing)

    def test_certificateOpensPages(self) -> None:
        """Or the token, by TLS and without; who has neither sees none."""
        known = self.certificate("known")
        self.serve("s3cret", True, self.contexts(False, known[0]))
        with_certificate = client_context()
        with_certificate.load_cert_chain(*known)
        head, _ = self.ask("/metrics", context=with_certificate)
        self.assertIn(b"200 OK", head)
        head, _ = self.ask("/metrics", context=client_context())
        self.assertIn(b"401", head)
        token = "Authorization: Bearer s3cret\r\n"
        head, _ = self.ask("/metrics", token, client_context())
        self.assertIn(b"200 OK", head)
        self.assertEqual(self.status("/metrics", token), b"200")

    def test_enforcedTlsClosesPlain(self) -> None:
        """Probes, too, have to speak it."""
        self.serve("s3cret", False, self.contexts(True, self.certificate("x")[0]))
        self.assertEqual(self.ask("/healthz/live"), (b"", b""))
        head, _ = self.ask("/healthz/live", context=client_context())
        self.assertIn(b"200 OK", head)

    def test_answeredConnectionIsEngaged(self) -> None:
        """Below TLS, too: it is closed once it has been of no use for long enough."""
        self.serve("s3cret", False, self.contexts(True, self.certificate("x")[0]))
        client = Client(
            b"GET /healthz/live HTTP/1.1\r\nHost: x\r\n\r\n", client_context()
        )
        self.network.connectTCP("127.0.0.1", 1000, Clients(client))
        self.network.settle()
        self.network.advance(PATIENCE - 1)
        assert client.transport is not None and client.layer is not None
        client.layer.send(client.request)
        client.transport.write(client.layer.outgoing())
        self.network.settle()
        self.network.advance(2)  # the first time-out would be over
        client.layer.send(client.request)
        client.transport.write(client.layer.outgoing())
        self.network.settle()
        self.assertEqual(client.heard.count(b"200 OK"), 3)

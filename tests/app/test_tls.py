"""TLS of a server, as its settings say."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any, cast

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.certificates import (
    WATCH_SECONDS,
    NoCryptographyError,
    own_context,
    self_signed,
    write_own,
)
from rocketbroker.app.tls import OwnContexts, ServerTls
from rocketbroker.config.tls import TlsOptions
from rocketbroker.errors import ConfigurationError
from rocketbroker.testing.threads import Threads
from rocketbroker.wire.tls_layer import TlsError, TlsLayer
from tests.missing import needs
from tests.remoting.certificates import converse


@needs("cryptography")
class OwnContextsTests(SynchronousTestCase):
    """A certificate of its own."""

    def setUp(self) -> None:
        """It has not been made."""
        self.threads = Threads()
        self.error: Exception | None = None

    def make(self) -> ssl.SSLContext:
        if self.error is not None:
            raise self.error
        return own_context([], write_own)

    def test_madeOnce(self) -> None:
        """All who come meanwhile get the same, and all who come later."""
        contexts = OwnContexts(self.threads, self.make)
        waiting = [contexts.get() for _ in range(3)]
        self.assertNoResult(waiting[0])
        self.assertEqual(len(self.threads.waiting), 1)
        self.threads.run()
        first, *others = map(self.successResultOf, waiting)
        self.assertEqual([*others, self.successResultOf(contexts.get())], [first] * 3)

    def test_triedAgain(self) -> None:
        """One that could not be made is made for the next client."""
        self.error = ConfigurationError("no room")
        contexts = OwnContexts(self.threads, self.make)
        waiting = [contexts.get(), contexts.get()]
        self.threads.run()
        for each in waiting:
            self.failureResultOf(each, ConfigurationError)
        self.error = None
        later = contexts.get()
        self.threads.run()
        self.successResultOf(later)

    def test_withoutCryptography(self) -> None:
        """The error says what to install."""
        contexts = OwnContexts(self.threads, self.make, lambda: False)
        failure = self.failureResultOf(contexts.get(), NoCryptographyError)
        self.assertIn("pip install 'rocketbroker[tls]'", failure.getErrorMessage())


@needs("cryptography")
class ServerTlsTests(SynchronousTestCase):
    """L{ServerTls}."""

    def setUp(self) -> None:
        """Certificates of a server and a client; nobody has signed them."""
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        for name in ("server", "client"):
            self.write(name)
        self.clock = Clock()
        self.threads = Threads()

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def write(self, name: str) -> None:
        for ending, content in zip(("crt", "key"), self_signed([name]), strict=True):
            path = self.folder / f"{name}.{ending}"
            new = path.with_suffix(".new")
            new.write_bytes(content)
            os.replace(new, path)

    def options(self, **words: object) -> TlsOptions:
        return TlsOptions(
            test_mode_enable=False,
            server_cert_path=self.path("server.crt"),
            server_key_path=self.path("server.key"),
            client_cert_path=self.path("client.crt"),
            client_key_path=self.path("client.key"),
            **cast(Any, words),
        )

    def tls(self, options: TlsOptions, is_client: bool = True) -> ServerTls:
        tls = ServerTls(self.clock, options, is_client, self.threads)
        tls.start()
        self.addCleanup(tls.stop)
        return tls

    def talk(self, server: TlsOptions, client: TlsOptions) -> bytes | None:
        """The certificate of a client that a server has seen.

        @raise TlsError: they do not come to terms.
        """
        port = self.tls(server).port
        context = self.tls(client).client_context()
        assert port is not None
        assert context is not None
        one = TlsLayer(self.successResultOf(port.contexts.get()))
        other = TlsLayer(context, is_server=False)
        converse(other, one)
        return one.peer_certificate()

    def test_certificates(self) -> None:
        """A client is asked for one only where it is to be checked, and then it must be
        trusted; the client checks that of the server where it is told to."""
        plain = self.options()
        trusted = {"server_auth_client": True, "server_trust_cert_path": ""}
        trusted["server_trust_cert_path"] = self.path("client.crt")
        checking = self.options(**trusted, server_need_client_auth="require")
        self.assertIsNone(self.talk(plain, plain))
        self.assertIsNotNone(self.talk(checking, plain))
        nothing = TlsOptions(enable="true")
        self.assertIsNone(self.talk(plain, nothing))
        with self.assertRaises(TlsError):
            self.talk(checking, nothing)
        asking = self.options(**trusted, server_need_client_auth="optional")
        self.assertIsNone(self.talk(asking, nothing))
        trusted["server_trust_cert_path"] = self.path("server.crt")
        with self.assertRaises(TlsError):
            self.talk(
                self.options(**trusted, server_need_client_auth="optional"), plain
            )
        good = self.options(
            client_auth_server=True, client_trust_cert_path=self.path("server.crt")
        )
        bad = self.options(
            client_auth_server=True, client_trust_cert_path=self.path("client.crt")
        )
        self.talk(plain, good)
        with self.assertRaises(TlsError):
            self.talk(plain, bad)

    def test_renewed(self) -> None:
        """Files are looked at again and again, in a thread; bad ones change nothing."""
        tls = self.tls(self.options())
        assert tls.port is not None
        get = tls.port.contexts.get
        first, client = self.successResultOf(get()), tls.client_context()
        self.write("server")
        self.write("client")
        self.clock.advance(WATCH_SECONDS)
        self.threads.run()
        second = self.successResultOf(get())
        self.assertNotEqual(first, second)
        self.assertNotEqual(tls.client_context(), client)
        Path(self.path("server.key")).write_bytes(b"none")
        self.clock.advance(WATCH_SECONDS)
        self.threads.run()
        self.assertIs(self.successResultOf(get()), second)

    def test_modes(self) -> None:
        """Disabled: there is no port with TLS."""
        off = TlsOptions(server_mode="disabled")
        self.assertIsNone(self.tls(off, is_client=False).port)
        self.assertIsNone(self.tls(off, is_client=False).client_context())
        for mode in ("permissive", "enforcing"):
            port = self.tls(TlsOptions(server_mode=mode)).port
            assert port is not None
            self.assertEqual(port.is_enforcing, mode == "enforcing")

    def test_badFiles(self) -> None:
        """They refuse the start."""
        Path(self.path("server.key")).write_bytes(b"none")
        with self.assertRaisesRegex(ConfigurationError, "no certificate and its key"):
            self.tls(self.options())

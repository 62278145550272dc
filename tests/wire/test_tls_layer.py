"""TLS between two buffers in memory."""

from __future__ import annotations

import ssl

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.tls_layer import RECORD_BYTES, TlsError, TlsLayer
from tests.remoting.certificates import client_context, converse, server_context


class TlsLayerTests(SynchronousTestCase):
    """A server and a client."""

    def setUp(self) -> None:
        """Neither has said anything."""
        self.server = TlsLayer(server_context())
        self.client = TlsLayer(client_context(), is_server=False)

    def test_bothWays(self) -> None:
        """What one says the other hears."""
        converse(self.client, self.server)
        self.assertTrue(self.client.is_open and self.server.is_open)
        data = bytes(range(256)) * 100
        self.assertGreater(len(data), RECORD_BYTES)
        self.assertEqual(self.client.send(data), len(data))
        self.server.send(b"well")
        self.assertEqual(converse(self.client, self.server)[1], data)
        self.assertEqual(self.client.receive(self.server.outgoing()), b"")
        self.assertIsNotNone(self.client.peer_certificate())
        self.assertIsNone(self.server.peer_certificate())

    def test_goodbye(self) -> None:
        """The end is told, behind what was said."""
        converse(self.client, self.server)
        self.client.send(b"last")
        data = self.client.outgoing() + self.client.close()
        self.assertEqual(self.server.receive(data), b"last")
        self.assertTrue(self.server.has_ended)

    def test_notTrusted(self) -> None:
        """A client that wants a certificate that somebody has signed says so."""
        context = ssl.create_default_context()
        client = TlsLayer(context, is_server=False, server_name="localhost")
        with self.assertRaisesRegex(TlsError, "is not trusted: self.signed"):
            converse(client, self.server)

    def test_noTls(self) -> None:
        """Other bytes are no TLS."""
        with self.assertRaisesRegex(TlsError, "TLS: "):
            self.server.receive(b"GET / HTTP/1.0")

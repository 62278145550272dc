"""Other protocols, by their first bytes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.other_protocols import ForeignProtocol

#: How clients of other protocols begin.
PREFACES = (
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "a gRPC client: "),
    (bytes.fromhex("16030100a5010000a10303"), "a TLS client: "),
    (bytes.fromhex("16030300a5010000a10303"), "a TLS client: "),
    (b"GET / HTTP/1.1\r\n", "an HTTP client: "),
    (b"HEAD /healthz HTTP/1.1\r\n", "an HTTP client: "),
    (b"POST / HTTP/1.1\r\n", "an HTTP client: "),
)


class ForeignTests(SynchronousTestCase):
    """What is raised for what is no frame."""

    def test_prefaces(self) -> None:
        """They are named, with the advice for their users."""
        for preface, name in PREFACES:
            error = self.assertRaises(ForeignProtocol, Connection().receive, preface)
            self.assertTrue(str(error).startswith(name), error)
            self.assertIn("speaks the remoting protocol only; ", str(error))

    def test_others(self) -> None:
        """Anything else is a frame of a wrong length."""
        for data, words in (
            (b"\0\0\0\3", "a frame of length 3"),
            (b"\xff" * 4, "a frame of length -1"),
            (b"\x02\0\0\0", "a frame of 33554436 bytes, the most is 16777216"),
        ):
            error = self.assertRaises(RemoteProtocolError, Connection().receive, data)
            self.assertNotIsInstance(error, ForeignProtocol)
            self.assertEqual(str(error), words)

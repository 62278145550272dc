"""The header that a proxy puts before a connection."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.proxy_header import ProxyHeader, proxy_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"

#: As HAProxy writes them: version 1, version 2 with IPv4 and with a further field.
LINE = b"PROXY TCP4 203.0.113.7 10.0.0.1 56324 10911\r\n"
V4 = SIGNATURE + bytes.fromhex("2111000ccb0071070a000001dc042a9f")
V4_MORE = SIGNATURE + bytes.fromhex("21110010cb0071070a000001dc042a9f04000141")
V6 = (
    SIGNATURE
    + bytes.fromhex("21210024")
    + bytes.fromhex("20010db8000000000000000000000007" * 2)
    + bytes.fromhex("dc042a9f")
)


class ProxyHeaderTests(SynchronousTestCase):
    """Both versions, whole, in pieces, and wrong."""

    def test_source(self) -> None:
        """The client's address and port, and how long the header is."""
        line6 = b"PROXY TCP6 2001:db8::7 2001:db8::1 56324 10911\r\n"
        for data, host in (
            (LINE, "203.0.113.7"),
            (line6, "2001:db8::7"),
            (V4, "203.0.113.7"),
            (V4_MORE, "203.0.113.7"),
            (V6, "2001:db8::7"),
        ):
            expected = ProxyHeader(len(data), host, 56324)
            self.assertEqual(proxy_header(data), expected)
            self.assertEqual(proxy_header(data + b"\0\0\0\x20 more"), expected)
            for size in range(len(data)):
                self.assertIsNone(proxy_header(data[:size]), data[:size])

    def test_noSource(self) -> None:
        """A proxy's own connection, and one of an unknown kind, tell no address."""
        for data in (
            b"PROXY UNKNOWN\r\n",
            b"PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n",
            SIGNATURE + bytes.fromhex("20000000"),
            SIGNATURE + bytes.fromhex("2100000411223344"),
        ):
            self.assertEqual(proxy_header(data), ProxyHeader(len(data)))

    def test_none(self) -> None:
        """A frame is no such header."""
        for data in (b"\0\0\0\x30\0\0\0\x20{", b"GET / HTTP", b"\r\nx", b"PROXX"):
            self.assertEqual(proxy_header(data), ProxyHeader(0))

    def test_wrong(self) -> None:
        """What begins as one and is none is refused, at the latest after its longest
        line."""
        for data in (
            b"PROXY " + b"x" * 101,
            b"PROXY\x20\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            b"PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 x 2\r\n",
            b"PROXY TCP4 \xff 1.2.3.4 1 2\r\n",
            SIGNATURE + bytes.fromhex("11110000"),
            SIGNATURE + bytes.fromhex("22110000"),
            SIGNATURE + bytes.fromhex("2111000bcb0071070a000001dc042a"),
        ):
            with self.assertRaises(RemoteProtocolError, msg=data) as caught:
                proxy_header(data)
            self.assertIn("header of the PROXY protocol", str(caught.exception))

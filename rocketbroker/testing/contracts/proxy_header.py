# -*- test-case-name: tests.remoting.test_proxy -*-
"""The contract of a proxy's header before a connection's first frame."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.logger import capturedLogs, formatEvent

from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.contracts.case import Contract
from rocketbroker.testing.contracts.wire import Wire
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.frames import encode

ECHO = 105


def echo(connection: IConnection, command: Command) -> Answer:
    """The request's answer."""
    return response_to(command)


class ProxyContract(Contract):
    """The suite of connections that read the header of the PROXY protocol.

    @cvar WIRE: makes a connection and its peer.
    """

    WIRE: Callable[[ResponderTable, ConnectionLimits], Wire]

    def begin(self) -> None:
        """A connection that is new."""
        table = ResponderTable()
        table.register(ECHO, echo)
        self.w: Wire = self.WIRE(table, ConnectionLimits())
        self.addCleanup(self.w.end)

    def test_proxy(self) -> None:
        """A proxy's header before the first frame, whole or in pieces, says which
        address logs and tables show; messages keep the proxy's."""
        line = b"PROXY TCP4 203.0.113.7 10.0.0.1 56324 10911\r\n"
        request = encode(Command(ECHO, opaque=1))
        for cuts in ([], [1, 2, 5, len(line) - 1], [len(line)], [len(line) + 3]):
            self.begin()
            host = self.w.connection.peer_host
            data = line + request + request
            for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                self.w.feed(data[begin:end])
            self.assertEqual(len(self.w.commands()), 2, cuts)
            self.assertEqual(self.w.connection.peer, "203.0.113.7:56324")
            self.assertEqual(self.w.connection.peer_host, host)

    def test_headerOfStrangerIsRefusedAtFirstBytes(self) -> None:
        """Who is not among the proxies speaks for nobody; the log says so once."""
        line = b"PROXY TCP4 203.0.113.7 10.0.0.1 56324 10911\r\n"
        binary = b"\r\n\r\n\0\r\nQUIT\n" + bytes.fromhex("20000000")
        request = encode(Command(ECHO, opaque=1))
        for data in (line + request, binary + request):
            self.begin()
            self.change(self.w, "10.0.0.0/8,::1")
            peer = self.w.connection.peer
            with capturedLogs() as events:
                self.w.feed(data)
            self.assertTrue(self.w.ended())
            self.assertEqual(self.w.connection.peer, peer)
            self.assertEqual(self.w.connection.group.counts.broken, 1)
            self.assertEqual(
                [formatEvent(each) for each in events],
                [
                    f"Closed {peer}: a header of the PROXY protocol, from an address "
                    "that is not in rocketbrokerProxyProtocolFrom."
                ],
            )

    def test_listOfProxiesChangesForNewConnections(self) -> None:
        """A network that holds the peer's address is enough."""
        for proxies in ("127.0.0.0/8", "10.0.0.1; 127.0.0.1", "0.0.0.0/0"):
            self.begin()
            self.change(self.w, "")
            self.change(self.w, proxies)
            self.w.feed(b"PROXY UNKNOWN\r\n" + encode(Command(ECHO, opaque=1)))
            self.assertEqual(len(self.w.commands()), 1)

    def change(self, wire: Wire, proxies: str) -> None:
        """Let these be the proxies from now on."""
        group = wire.connection.group
        group.limits = attrs.evolve(group.limits, proxies=proxies)

    def test_proxyOwn(self) -> None:
        """A proxy that asks for itself is its own client."""
        self.begin()
        peer = self.w.connection.peer
        self.w.feed(b"\r\n\r\n\0\r\nQUIT\n" + bytes.fromhex("20000000"))
        self.w.feed(encode(Command(ECHO, opaque=1)))
        self.assertEqual(len(self.w.commands()), 1)
        self.assertEqual(self.w.connection.peer, peer)

    def test_proxyWrong(self) -> None:
        """A header that is wrong, or comes again, or behind a frame, is broken off."""
        line = b"PROXY UNKNOWN\r\n"
        request = encode(Command(ECHO, opaque=1))
        for data in (b"PROXY TCP9\r\n", line + line, line + request + line):
            self.begin()
            self.w.feed(data)
            self.assertTrue(self.w.ended(), data)
            self.assertEqual(self.w.connection.group.counts.broken, 1)
        self.begin()
        self.w.feed(request + line)
        self.assertTrue(self.w.ended())

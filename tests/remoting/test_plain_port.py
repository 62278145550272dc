"""Ports whose connections Twisted serves: few, and of use."""

from __future__ import annotations

import socket
from typing import Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory, Protocol, ServerFactory
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.counts import Counts
from rocketbroker.remoting.listener import Listener
from rocketbroker.remoting.plain_port import (
    FEW_MOST,
    LOG_SECONDS,
    FewConnections,
    PlainPort,
    adopter,
    few_of,
    listen_plain,
)
from rocketbroker.testing.network import MemoryNetwork

PATIENCE = 20.0


class Served(Protocol):
    """Is of use as long as the peer says so, and repeats what it says."""

    def dataReceived(self, data: bytes) -> None:
        """The peer says something."""
        connection: Any = self.transport
        if data == b"engage":
            connection.engage()
        elif data == b"spare":
            connection.engage(is_spare=True)
        elif data == b"disengage":
            connection.disengage()
        connection.write(data)


class Peer(Protocol):
    """Who has connected."""

    is_gone = False
    heard = b""

    def dataReceived(self, data: bytes) -> None:
        """An answer."""
        self.heard += data

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It was closed."""
        self.is_gone = True


class Dialling(ClientFactory):
    """Connects one peer."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def buildProtocol(self, addr: IAddress | None) -> Peer:
        """It has connected."""
        return self.peer


class FewConnectionsTests(SynchronousTestCase):
    """A port with three connections at most."""

    def setUp(self) -> None:
        """It listens."""
        self.network = MemoryNetwork()
        factory: Any = ServerFactory.forProtocol(Served)
        factory.noisy = False
        self.connections = FewConnections(
            cast(Any, self.network), factory, "tests", PATIENCE, 3
        )
        self.connections.doStart()
        self.network.listenTCP(1, cast(Any, self.connections))

    def connect(self, *words: bytes) -> Peer:
        """A peer that says this."""
        peer = Peer()
        self.network.connectTCP("localhost", 1, Dialling(peer))
        self.network.settle()
        for each in words:
            self.say(peer, each)
        return peer

    def say(self, peer: Peer, word: bytes) -> None:
        """Let a peer say something."""
        assert peer.transport is not None
        peer.transport.write(word)
        self.network.settle()

    def test_whoSaysNothingIsClosedAfterPatience(self) -> None:
        """However many bytes come: they do not make a connection one of use."""
        peer = self.connect(b"x")
        self.network.advance(PATIENCE / 2)
        self.say(peer, b"y")
        self.assertEqual((peer.is_gone, peer.heard), (False, b"xy"))
        self.network.advance(PATIENCE / 2)
        self.assertTrue(peer.is_gone)

    def test_connectionOfUseStays(self) -> None:
        """As long as it is; then it has the patience again."""
        peer = self.connect(b"engage")
        self.network.advance(10 * PATIENCE)
        self.assertFalse(peer.is_gone)
        self.say(peer, b"disengage")
        self.network.advance(PATIENCE - 1)
        self.assertFalse(peer.is_gone)
        self.network.advance(1)
        self.assertTrue(peer.is_gone)

    def test_oldestOfNoUseMakesRoom(self) -> None:
        """A newcomer takes the place of who has been of no use for longest."""
        peers = [self.connect(), self.connect(b"engage"), self.connect()]
        self.say(peers[1], b"disengage")
        newcomer = self.connect(b"hello")
        self.assertEqual([p.is_gone for p in peers], [True, False, False])
        self.assertEqual(newcomer.heard, b"hello")
        self.connect()
        self.assertEqual([p.is_gone for p in peers], [True, False, True])

    def test_spareConnectionStaysUntilRoomIsNeeded(self) -> None:
        """It has time, makes room after those of no use, and may be of use later."""
        peers = [self.connect(b"spare"), self.connect(b"spare"), self.connect()]
        self.connect(b"engage")
        self.assertEqual([p.is_gone for p in peers], [False, False, True])
        self.network.advance(2 * PATIENCE)
        self.connect(b"engage")
        self.assertEqual([p.is_gone for p in peers[:2]], [True, False])
        self.say(peers[1], b"engage")
        self.assertIsNone(self.connections.buildProtocol(None))
        self.assertFalse(peers[1].is_gone)

    def test_addressWithMostMakesRoom(self) -> None:
        """A crowd of one address does not push out who has just come from another."""
        transports = []
        for host in ("10.0.0.9", "10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1"):
            transport = StringTransport(peerAddress=IPv4Address("TCP", host, 5))
            connection = self.connections.buildProtocol(None)
            assert connection is not None
            connection.makeConnection(transport)
            transports.append(transport)
        gone = [each.disconnected for each in transports]
        self.assertEqual(gone, [False, True, True, False, False])

    def test_newcomerDoesNotCloseConnectionsOfUse(self) -> None:
        """When all are of use there is no room."""
        peers = [self.connect(b"engage") for _ in range(3)]
        self.assertIsNone(self.connections.buildProtocol(None))
        self.assertEqual(len(self.connections.engaged), 3)
        self.assertEqual([p.is_gone for p in peers], [False] * 3)

    def test_goneConnectionsLeaveNothing(self) -> None:
        """Neither a place nor a timer."""
        for word in (b"hello", b"engage"):
            peer = self.connect(word)
            assert peer.transport is not None
            peer.transport.loseConnection()
            self.network.settle()
        self.assertEqual(self.connections.engaged, set())
        self.assertEqual(self.network.getDelayedCalls(), [])

    def test_closedConnectionIsOfNoUseAnyMore(self) -> None:
        """What it had still said does not count."""
        self.connect()
        (connection,) = self.connections.protocols
        self.network.advance(PATIENCE)
        connection.engage()
        connection.disengage()
        self.assertEqual(self.connections.engaged, set())

    def test_logHasOneLineInSecond(self) -> None:
        """However many are closed."""
        with capturedLogs() as events:
            for _ in range(10):
                self.connect()
            self.network.advance(LOG_SECONDS)
            self.connect()
            self.connections.doStop()
        self.assertEqual(
            [formatEvent(each) for each in events],
            [
                f"Closed {count} connections to the port of tests that were of no use: "
                "it has 3 at most, and each has 20 s to say what it wants."
                for count in (7, 1)
            ],
        )


class PlainPortTests(SynchronousTestCase):
    """Listening, in memory and with sockets."""

    def test_stopClosesConnectionsOfNoUse(self) -> None:
        """And accepts none any more."""
        network = MemoryNetwork()
        port = PlainPort(
            network, cast(Any, ServerFactory.forProtocol(Served)), "tests", PATIENCE
        )
        number = port.listen("", 0)
        peer = Peer()
        network.connectTCP("localhost", number, Dialling(peer))
        network.settle()
        self.successResultOf(port.stop())
        self.successResultOf(port.stop())
        network.settle()
        self.assertTrue(peer.is_gone)
        self.assertEqual((network.ports, network.getDelayedCalls()), ({}, []))

    def test_portInUseIsOneSentence(self) -> None:
        """With the cause behind it."""
        network = MemoryNetwork()
        factory: Any = ServerFactory.forProtocol(Served)
        PlainPort(network, factory, "tests", PATIENCE).listen("", 80)
        second = PlainPort(network, factory, "tests", PATIENCE)
        error = self.assertRaises(ConfigurationError, second.listen, "", 80)
        self.assertEqual(str(error), "Cannot listen on :80: the port is in use.")
        self.assertIsInstance(error.__cause__, OSError)

    def test_socketsAreAcceptedAsThoseOfData(self) -> None:
        """Where there are sockets, the same listener accepts them."""
        reactor = MemoryReactorClock()
        factory: Any = ServerFactory.forProtocol(Served)
        listening, port = listen_plain(
            reactor, factory, ("127.0.0.1", 0), 5, Counts(), lambda: 0, 1
        )
        assert isinstance(listening, Listener)
        self.addCleanup(listening.stop)
        self.assertEqual(reactor.getReaders(), [listening])
        self.assertGreater(port, 0)

    def test_acceptedSocketGoesToReactor(self) -> None:
        """As one that does not block; ours is closed, as the reactor has its own."""
        reactor = MemoryReactorClock()
        factory: Any = ServerFactory.forProtocol(Served)
        ours, peer = socket.socketpair()
        self.addCleanup(peer.close)
        number = ours.fileno()
        adopter(reactor, factory)(ours, "1.2.3.4", 5)
        self.assertEqual(
            reactor.adoptedStreamConnections, [(number, socket.AF_UNIX, factory)]
        )
        self.assertEqual((ours.fileno(), ours.gettimeout()), (-1, 0.0))

    def test_limitFollowsDescriptors(self) -> None:
        """A small share, but some, and no more than anybody needs."""
        found = [few_of(each) for each in (64, 1024, 1 << 20, -1)]
        self.assertEqual(found, [8, 32, FEW_MOST, FEW_MOST])

"""The memory network keeps what a reactor's network promises."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet import error
from twisted.internet.interfaces import (
    IAddress,
    IConnector,
    IConsumer,
    IListeningPort,
    IReactorTCP,
    IReactorTime,
    ITCPTransport,
)
from twisted.internet.protocol import ClientFactory, Protocol, ServerFactory
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.testing.network import MemoryNetwork


class Noting(Protocol):
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.made = 0
        self.lost: list[type[BaseException]] = []

    def connectionMade(self) -> None:
        self.made += 1

    def dataReceived(self, data: bytes) -> None:
        self.heard.append(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        assert reason is not None and reason.type is not None
        self.lost.append(reason.type)


class Serving(ServerFactory):
    """Serves with one protocol."""

    def __init__(self, protocol: Noting) -> None:
        self._protocol = protocol

    def buildProtocol(self, addr: IAddress | None) -> Noting:
        return self._protocol


class Dialling(ClientFactory):
    """Connects one protocol, or notes why not."""

    def __init__(self, protocol: Noting) -> None:
        self._protocol = protocol
        self.failed: list[type[BaseException]] = []

    def buildProtocol(self, addr: IAddress | None) -> Noting:
        return self._protocol

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        assert reason.type is not None
        self.failed.append(reason.type)


class NetworkTests(SynchronousTestCase):
    """Two protocols and what is between them."""

    def setUp(self) -> None:
        """Connected on port 80."""
        self.network = MemoryNetwork()
        self.far, self.near = Noting(), Noting()
        self.listening = self.network.listenTCP(80, Serving(self.far))
        self.network.connectTCP("127.0.0.1", 80, Dialling(self.near))

    def transport(self, protocol: Noting) -> Any:
        return protocol.transport

    def test_interfaces(self) -> None:
        """Its parts are what Twisted's own are."""
        verifyObject(IReactorTCP, self.network)
        verifyObject(IReactorTime, self.network)
        verifyObject(IListeningPort, self.listening)
        verifyObject(IConnector, self.network.connectTCP("", 1, Dialling(Noting())))
        self.network.settle()
        verifyObject(ITCPTransport, self.transport(self.near))

    def test_nothingByItself(self) -> None:
        """Nothing happens before the test says so."""
        self.assertEqual((self.near.made, self.far.made), (0, 0))
        self.network.settle()
        self.assertEqual((self.near.made, self.far.made), (1, 1))
        self.transport(self.near).write(b"hello")
        self.assertEqual(self.far.heard, [])
        self.network.settle()
        self.assertEqual(self.far.heard, [b"hello"])

    def test_addresses(self) -> None:
        """Each end's host is the other one's peer."""
        self.network.settle()
        near, far = self.transport(self.near), self.transport(self.far)
        self.assertEqual(near.getHost(), far.getPeer())
        self.assertEqual(far.getHost(), near.getPeer())
        self.assertEqual(near.getPeer().port, 80)

    def test_pieces(self) -> None:
        """A network may deliver in pieces."""
        self.network.max_bytes = 2
        self.network.settle()
        self.transport(self.near).writeSequence([b"hel", b"lo"])
        self.network.settle()
        self.assertEqual(self.far.heard, [b"he", b"ll", b"o"])

    def test_pulled(self) -> None:
        """A pull producer is asked for more at once, and whenever all has moved."""

        class Pulled:
            asked: list[int]
            stopped = 0

            def resumeProducing(self) -> None:
                self.asked.append(len(far.heard))
                if len(self.asked) < 3:
                    transport.write(b"ab")

            def stopProducing(self) -> None:
                self.stopped += 1

        self.network.settle()
        far, transport, producer = self.far, self.transport(self.near), Pulled()
        producer.asked = []
        self.network.max_bytes = 1
        cast(IConsumer, transport).registerProducer(cast(Any, producer), False)
        self.assertEqual(producer.asked, [0])
        self.network.settle()
        self.assertEqual(producer.asked, [0, 1, 3])
        transport.abortConnection()
        self.network.settle()
        self.assertEqual(producer.stopped, 1)

    def test_loseConnection(self) -> None:
        """A close delivers what was written before it; both ends hear of it once."""
        self.network.settle()
        self.transport(self.near).write(b"bye")
        self.transport(self.near).loseConnection()
        self.transport(self.near).write(b"too late")
        self.network.settle()
        self.assertEqual(self.far.heard, [b"bye"])
        self.assertEqual(self.near.lost, [error.ConnectionDone])
        self.assertEqual(self.far.lost, [error.ConnectionDone])

    def test_abort(self) -> None:
        """An abort delivers nothing more."""
        self.network.settle()
        self.transport(self.near).write(b"bye")
        self.transport(self.near).abortConnection()
        self.network.settle()
        self.assertEqual(self.far.heard, [])
        self.assertEqual(self.near.lost, [error.ConnectionAborted])

    def test_refused(self) -> None:
        """A port where nobody listens refuses."""
        dialling = Dialling(Noting())
        self.network.connectTCP("127.0.0.1", 81, dialling)
        self.network.settle()
        self.assertEqual(dialling.failed, [error.ConnectionRefusedError])

    def test_silent(self) -> None:
        """A silent one lets the attempt time out."""
        self.network.silent.add(80)
        dialling = Dialling(Noting())
        self.network.connectTCP("127.0.0.1", 80, dialling, timeout=3)
        self.network.advance(2.9)
        self.assertEqual(dialling.failed, [])
        self.network.advance(0.1)
        self.assertEqual(dialling.failed, [error.TimeoutError])

    def test_stopListening(self) -> None:
        """Nobody is accepted any more; who is there stays."""
        self.network.settle()
        self.listening.stopListening()
        dialling = Dialling(Noting())
        self.network.connectTCP("127.0.0.1", 80, dialling)
        self.network.settle()
        self.assertEqual(dialling.failed, [error.ConnectionRefusedError])
        self.assertEqual(self.near.lost, [])

    def test_inUse(self) -> None:
        """A port can be listened on once."""
        with self.assertRaises(error.CannotListenError):
            self.network.listenTCP(80, Serving(Noting()))

    def test_breakAll(self) -> None:
        """Connections can be cut, as a network does it."""
        self.network.settle()
        self.network.break_all(80)
        self.network.settle()
        self.assertEqual(self.near.lost, [error.ConnectionAborted])
        self.assertEqual(self.far.lost, [error.ConnectionAborted])

    def test_restless(self) -> None:
        """A network that never comes to rest is a failure, not a hang."""

        def again() -> None:
            self.network.callLater(0, again)

        again()
        self.assertRaises(AssertionError, self.network.settle)

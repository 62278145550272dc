"""Tests of L{rocketbroker.workers.relayed_socket}: the states of a relayed socket."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.hubconnection import IN
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.workers import relayed_socket
from rocketbroker.workers.link_frames import Kind, LinkDecoder, Reason
from rocketbroker.workers.relayed_socket import (
    INBOX_BYTES,
    RelayedSocket,
    SocketInput,
    SocketState,
)
from tests.machines import MachineContract
from tests.workers.relaywire import RelayWire


class Link:
    """A link that keeps what is written.

    @ivar kinds: of the frames that went to the worker.
    """

    is_full = False

    def __init__(self) -> None:
        self.kinds: list[Kind] = []
        self.waiting: set[RelayedSocket] = set()
        self.unserved: set[RelayedSocket] = set()
        self.done: list[RelayedSocket] = []

    def write(self, data: bytes) -> None:
        """Keep a frame."""
        self.kinds += [Kind(frame.kind) for frame in LinkDecoder().receive(data)]

    def write_data(self, connection_id: int, data: bytes) -> None:
        """Keep that there were bytes."""
        self.kinds.append(Kind.DATA)

    def wait(self, sock: RelayedSocket) -> None:
        """It waits for room."""
        self.waiting.add(sock)

    def unread(self, sock: RelayedSocket) -> None:
        """It has bytes."""
        self.unserved.add(sock)

    def closed(self, sock: RelayedSocket) -> None:
        """It is closed."""
        self.done.append(sock)


class SocketStateTests(MachineContract, SynchronousTestCase):
    """The states of a relayed socket."""

    MODULE, TABLE = "rocketbroker.workers.relayed_socket", relayed_socket.TRANSITIONS
    STATES, INPUTS = SocketState, SocketInput

    def setUp(self) -> None:
        """A link."""
        self.link = Link()

    def machine(self, state: SocketState) -> RelayedSocket:
        """One that has come there."""
        sock = RelayedSocket(self.link, 7)
        sock.state = state
        return sock

    def state(self, machine: RelayedSocket) -> SocketState:
        """Where it is."""
        return machine.state

    def test_workerPausesWhileMuchWaits(self) -> None:
        """It hears once that too much waits, and once that it was received."""
        sock = self.machine(SocketState.OPEN)
        for _ in range(3):
            sock.deliver(bytes(INBOX_BYTES))
        self.assertEqual(self.link.kinds, [Kind.PAUSE])
        self.assertEqual(len(sock.recv(1)), 3 * INBOX_BYTES)
        self.assertEqual(self.link.kinds, [Kind.PAUSE, Kind.RESUME])

    def test_workerPausesWhileTheHubWantsNothing(self) -> None:
        """What was received does not let the worker read before the hub wants more."""
        sock = self.machine(SocketState.OPEN)
        sock.deliver(bytes(INBOX_BYTES + 1))
        sock.rearm(0)
        sock.recv(1)
        self.assertEqual(self.link.kinds, [Kind.PAUSE])
        sock.rearm(IN)
        self.assertEqual(self.link.kinds, [Kind.PAUSE, Kind.RESUME])

    def test_workerHearsOfAnOpenConnectionOnly(self) -> None:
        """Behind the end nothing goes to the worker, whatever the hub does."""
        for state in (SocketState.HUNG_UP, SocketState.GIVEN_UP):
            sock = self.machine(state)
            sock.deliver(bytes(INBOX_BYTES + 1))
            self.assertTrue(sock.is_readable)
            self.assertEqual(sock.send(b"nobody reads it"), 15)
            sock.rearm(0)
            sock.recv(1)
            sock.rearm(IN)
            sock.close()
            self.assertIs(sock.state, SocketState.CLOSED)
        self.assertEqual(self.link.kinds, [])
        sock = self.machine(SocketState.PAUSED)
        sock.close()
        self.assertEqual(self.link.kinds, [Kind.CLOSE])

    def test_endIsReadBehindTheLastByte(self) -> None:
        """An end that is the client's doing is read as any socket's end is."""
        sock = self.machine(SocketState.OPEN)
        self.assertRaises(BlockingIOError, sock.recv, 1)
        sock.deliver(b"last")
        sock.end(Reason.LOST)
        self.assertEqual((sock.recv(1), sock.recv(1)), (b"last", b""))


class CountedEndTests(SynchronousTestCase):
    """Connections that the worker has closed."""

    def test_endThatWasCountedIsNoLoss(self) -> None:
        """Not even if the worker dies before the hub has seen the end."""
        wire = RelayWire(ResponderTable(), ConnectionLimits())
        self.addCleanup(wire.end)
        (sock,) = wire.link.sockets.values()
        sock.end(Reason.IDLE)
        sock.end(Reason.LOST)
        self.assertRaises(BlockingIOError, sock.recv, 1)
        self.assertTrue(wire.connection.closed)
        self.assertEqual((wire.group.counts.idle, wire.group.counts.lost), (1, 0))

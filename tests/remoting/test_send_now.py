"""Answers that leave before the end of a turn."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.buffers import LARGE_ANSWER_BYTES
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.hubconnection import HubConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from tests.remoting.wires import HubWire


def frame(number: int, size: int = 0) -> bytes:
    """A frame with a body of so many bytes."""
    return encode(Command(0, opaque=number, body=bytes(size)))


class SendNowTests(SynchronousTestCase):
    """L{HubConnection.send_now}."""

    def setUp(self) -> None:
        """A peer that reads when it is told to."""
        self.wire = HubWire(ResponderTable(), ConnectionLimits())
        self.addCleanup(self.wire.end)
        assert isinstance(self.wire.connection, HubConnection)
        self.connection = self.wire.connection

    def opaques(self) -> list[int]:
        """Of the frames that have come since."""
        return [each.opaque for each in self.wire.commands()]

    def test_atOnce(self) -> None:
        """They are there before the turn has ended, and counted."""
        seen: list[bytes] = []

        def work() -> None:
            self.connection.send_now(frame(1) + frame(2), 2)
            seen.append(self.wire.peer.recv(1000))
            self.assertEqual(self.connection.unsent, 0)

        self.wire.hub.within(work)
        self.assertEqual(seen, [frame(1) + frame(2)])
        counts = self.wire.group.counts
        self.assertEqual(counts.frames_out, 2)
        self.assertEqual(counts.bytes_out, len(seen[0]))

    def test_behindOthers(self) -> None:
        """They wait for what was sent before."""

        def work() -> None:
            self.connection.send(frame(1))
            self.connection.send_now(frame(2))
            self.assertEqual(self.connection.unsent, len(frame(1) + frame(2)))

        self.wire.hub.within(work)
        self.assertEqual(self.opaques(), [1, 2])

    def test_outsideTurn(self) -> None:
        """Outside of a turn, too."""
        self.connection.send_now(frame(1))
        self.assertEqual(self.wire.peer.recv(1000), frame(1))

    def test_large(self) -> None:
        """Large ones wait for the end of the turn, where memory is counted."""

        def work() -> None:
            self.connection.send_now(frame(1, LARGE_ANSWER_BYTES))
            self.assertGreater(self.connection.unsent, LARGE_ANSWER_BYTES)

        self.wire.hub.within(work)
        self.assertEqual(self.opaques(), [1])

    def test_full(self) -> None:
        """What the system does not take, or only in part, follows when it does."""
        self.wire.pause()
        for number in range(100):
            self.connection.send_now(frame(number, 3000))
        self.assertGreater(self.connection.unsent, 0)
        self.wire.resume()
        self.assertEqual(self.opaques(), [*range(100)])
        self.assertEqual(self.connection.unsent, 0)
        sent = sum(len(frame(number, 3000)) for number in range(100))
        self.assertEqual(self.wire.group.counts.bytes_out, sent)
        self.assertEqual(self.wire.group.counts.frames_out, 100)

    def test_peerGone(self) -> None:
        """The connection of a peer that is gone is closed at the end of the turn, and
        nobody is called before."""
        closed: list[object] = []
        self.connection.watch_close(closed.append)
        self.wire.peer.close()

        def work() -> None:
            self.connection.send_now(frame(1))
            self.assertEqual(closed, [])

        self.wire.hub.within(work)
        self.assertEqual(closed, [self.connection])
        self.assertEqual(self.wire.group.counts.lost, 1)

    def test_closed(self) -> None:
        """A closed connection takes nothing."""
        self.wire.hub.within(self.connection.abort)
        self.connection.send_now(frame(1))
        self.assertEqual((self.connection.unsent, self.wire.taken()), (0, b""))

    def test_closing(self) -> None:
        """Nor does one that is closed at the end of this turn."""

        def work() -> None:
            self.connection.send(frame(1))
            self.connection.close()
            self.connection.send_now(frame(2))

        self.wire.hub.within(work)
        self.assertEqual(self.opaques(), [1])
        peer, other = self.wire.another()
        self.addCleanup(peer.close)

        def alone() -> None:
            other.close()
            other.send_now(frame(3))

        self.wire.hub.within(alone)
        self.assertEqual(peer.recv(1000), b"")

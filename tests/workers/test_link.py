"""Frames and sockets through a link."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.workers.link import JOINED_BYTES, LinkStream, link_pair
from rocketbroker.workers.link_frames import Kind, LinkFrame, link_frame


class LinkTests(SynchronousTestCase):
    """Two ends of one link."""

    def setUp(self) -> None:
        """Both ends."""
        self.here, self.there = (LinkStream(end) for end in link_pair())
        self.addCleanup(self.here.close)
        self.addCleanup(self.there.close)

    def all_read(self) -> list[LinkFrame]:
        """What the other end reads until all is sent."""
        found: list[LinkFrame] = []
        while True:
            self.here.flush()
            found += self.there.read()
            if not self.here.unsent and self.there.received == self.here.sent:
                return found

    def test_frames(self) -> None:
        """Frames arrive in order, short ones and those that fill the kernel."""
        sent = [
            LinkFrame(Kind.DATA, number, bytes([number]) * size)
            for number, size in enumerate((0, 1, JOINED_BYTES, 3 << 20, 5, 5, 900_000))
        ]
        for frame in sent:
            self.here.write(link_frame(*frame))
        self.assertTrue(self.all_read() == sent)
        self.assertEqual(self.here.sent, self.there.received)

    def test_later(self) -> None:
        """Nothing is sent before the flush."""
        self.here.write(link_frame(Kind.STOP))
        self.assertEqual(self.there.read(), [])
        self.here.flush()
        self.assertEqual(self.there.read(), [LinkFrame(Kind.STOP, 0, b"")])

    def test_sockets(self) -> None:
        """Sockets come with their frames, in order, whatever is written in between."""
        peers = []
        for number in range(20):
            ours, peer = socket.socketpair()
            self.addCleanup(peer.close)
            peers.append(peer)
            self.here.write(link_frame(Kind.DATA, 99, b"x" * 50_000 * (number % 3)))
            self.here.write(link_frame(Kind.OPEN, number, b"a"), ours)
        opened = [f.connection for f in self.all_read() if f.kind == Kind.OPEN]
        self.assertEqual(opened, list(range(20)))
        for number, peer in enumerate(peers):
            with self.there.passed_socket() as passed:
                passed.send(bytes([number]))
            self.assertEqual(peer.recv(9), bytes([number]))
            self.assertEqual(peer.recv(9), b"")

    def test_end(self) -> None:
        """When the other end is gone, what is written is dropped, sockets too."""
        self.there.close()
        self.assertEqual(self.here.read(), [])
        self.assertTrue(self.here.is_broken)
        ours, peer = socket.socketpair()
        self.addCleanup(peer.close)
        self.here.write(link_frame(Kind.OPEN, 1), ours)
        self.here.flush()
        self.assertEqual(peer.recv(1), b"")
        self.assertEqual(self.here.unsent, 0)

    def test_endWhileSending(self) -> None:
        """Sockets that wait to be sent are closed when the other end goes."""
        ours, peer = socket.socketpair()
        self.addCleanup(peer.close)
        self.here.write(link_frame(Kind.OPEN, 1), ours)
        self.there.close()
        self.here.flush()
        self.assertTrue(self.here.is_broken)
        self.assertEqual(peer.recv(1), b"")

    def test_garbage(self) -> None:
        """Bytes that are no frames are an error."""
        self.here.write(b"GET / HTTP/1.1\r\n")
        self.here.flush()
        with self.assertRaises(RemoteProtocolError):
            self.there.read()

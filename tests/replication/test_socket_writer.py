"""Tests of L{rocketbroker.replication.socket_writer}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.replication.socket_writer import SocketWriter


class Socket:
    """One that takes so many bytes at once, and then is full."""

    def __init__(self) -> None:
        self.taken = b""
        self.room = 0

    def send(self, data: bytes) -> int:
        if not self.room:
            raise BlockingIOError
        size = min(self.room, len(data))
        self.taken += data[:size]
        self.room -= size
        return size


class SocketTransport(StringTransport):
    """A transport that has a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.socket = Socket()

    def getHandle(self) -> Socket:
        return self.socket

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        register: Callable[[Any, bool], None] = super().registerProducer
        register(producer, streaming)
        if not streaming:
            producer.resumeProducing()


class OutletTests(SynchronousTestCase):
    """Bytes go to the socket, or by way of the transport."""

    def setUp(self) -> None:
        self.transport = SocketTransport()
        self.drained = 0
        self.outlet = SocketWriter(cast(Any, self.transport), self.was_drained)

    def was_drained(self) -> None:
        self.drained += 1

    def test_direct(self) -> None:
        """What the socket takes is given to it at once."""
        self.transport.socket.room = 9
        self.outlet.write(b"abc")
        self.outlet.write(b"def")
        self.assertEqual(self.transport.socket.taken, b"abcdef")
        self.assertEqual((self.transport.value(), self.outlet.is_busy), (b"", False))

    def test_rest(self) -> None:
        """What it does not take goes through the transport; until that has sent it,
        the outlet is busy."""
        self.transport.socket.room = 2
        self.outlet.write(b"abc")
        self.assertTrue(self.outlet.is_busy)
        self.assertEqual(self.transport.socket.taken, b"ab")
        self.assertEqual(self.transport.value(), b"c")
        cast(Any, self.transport.producer).resumeProducing()
        self.assertEqual((self.drained, self.outlet.is_busy), (1, False))
        self.assertIs(self.transport.producer, None)
        self.transport.socket.room = 9
        self.outlet.write(b"d")
        self.assertEqual(self.transport.socket.taken, b"abd")

    def test_again(self) -> None:
        """Who writes when it is drained may make it busy again."""
        outlet = self.outlet = SocketWriter(
            cast(Any, self.transport), lambda: outlet.write(b"more")
        )
        outlet.write(b"abc")
        cast(Any, self.transport.producer).resumeProducing()
        self.assertEqual(self.transport.value(), b"abcmore")
        self.assertTrue(outlet.is_busy)

    def test_full(self) -> None:
        """A socket that takes nothing is no error."""
        self.outlet.write(b"abc")
        self.assertEqual(self.transport.value(), b"abc")

    def test_over(self) -> None:
        """A connection that ends takes the rest with it."""
        self.outlet.write(b"abc")
        self.outlet.stopProducing()
        self.assertEqual((self.drained, self.outlet.is_busy), (0, True))

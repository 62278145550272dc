"""Tests of one connection."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode


class ConnectionTests(SynchronousTestCase):
    """Bytes in, commands out."""

    def test_byteByByte(self) -> None:
        """A command comes out with its last byte."""
        frame = encode(Command(105, {"topic": "T1"}, b"xx"))
        connection = Connection()
        counts = [len(connection.receive(frame[i : i + 1])) for i in range(len(frame))]
        self.assertEqual(counts, [0] * (len(frame) - 1) + [1])

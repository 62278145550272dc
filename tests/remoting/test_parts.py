"""Frames that are sent in parts: the parts belong to others, and may change later."""

from __future__ import annotations

from itertools import pairwise

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.buffers import LARGE_ANSWER_BYTES
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.hubconnection import LARGE_BODY, MAX_PARTS, HubConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from tests.remoting.wires import HubWire

SIZES = 10, LARGE_BODY - 1, LARGE_BODY, LARGE_ANSWER_BYTES, 2 * LARGE_ANSWER_BYTES


class PartsTests(SynchronousTestCase):
    """L{HubConnection.send_parts}."""

    def setUp(self) -> None:
        """Bodies come from here."""
        self.wire = HubWire(
            ResponderTable(), ConnectionLimits(high_water=500_000, low_water=100_000)
        )
        self.addCleanup(self.wire.end)
        assert isinstance(self.wire.connection, HubConnection)
        self.connection = self.wire.connection
        self.content = bytearray(b"a" * 200_000)

    def send(self, size: int, pieces: int = 2) -> None:
        """Send a frame with a body in so many pieces."""
        frame = encode(Command(0, opaque=size, body=b"a" * size))
        ends = [size * n // pieces for n in range(pieces + 1)]
        with memoryview(self.content) as content:
            body = [content[a:b] for a, b in pairwise(ends)]
        self.connection.send_parts(frame[: len(frame) - size], body, size)

    def change(self) -> None:
        """Let all parts change."""
        self.content[:] = b"b" * len(self.content)

    def check(self, *sizes: int) -> None:
        """Frames with these bodies have come, and nothing is left."""
        found = [(each.opaque, each.body) for each in self.wire.commands()]
        self.assertEqual(found, [(size, b"a" * size) for size in sizes])
        self.assertEqual(self.connection.unsent, 0)

    def test_outsideTurn(self) -> None:
        """What is sent outside a turn may change at once."""
        for size in SIZES:
            self.send(size)
        self.change()
        self.check(*SIZES)

    def test_turn(self) -> None:
        """All goes out at the end of a turn, with one write, in order."""

        def work() -> None:
            for size in SIZES:
                self.send(size)
            self.connection.send(encode(Command(0, opaque=1, body=b"a")))

        self.wire.hub.within(work)
        self.change()
        self.check(*SIZES, 1)
        self.assertEqual(self.wire.group.counts.frames_out, len(SIZES) + 1)

    def test_manyParts(self) -> None:
        """They may be more than the system takes at once."""
        size = LARGE_BODY + MAX_PARTS
        self.wire.hub.within(lambda: self.send(size, MAX_PARTS + 1))
        self.change()
        self.check(size)

    def test_rest(self) -> None:
        """What the system does not take is copied, also of what is sent later."""
        self.wire.pause()
        for _ in range(2):
            self.wire.hub.within(lambda: self.send(200_000))
        self.assertGreater(self.connection.unsent, 0)
        self.assertFalse(self.connection.congested)
        self.change()
        self.wire.resume()
        self.check(200_000, 200_000)

    def test_congested(self) -> None:
        """So it is when the connection becomes congested by it."""
        self.wire.pause()
        count = 0

        def work() -> None:
            nonlocal count
            while not self.connection.congested:
                self.send(100_000)
                count += 1

        self.wire.hub.within(work)
        self.change()
        self.assertEqual(count, self.wire.group.limits.high_water // 100_000)
        self.wire.resume()
        self.check(*[100_000] * count)

    def test_closed(self) -> None:
        """A closed connection takes nothing."""
        self.wire.hub.within(self.connection.abort)
        self.wire.hub.within(lambda: self.send(5000))
        self.assertEqual(self.connection.unsent, 0)

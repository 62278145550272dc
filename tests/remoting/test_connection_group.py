"""What connections of one server or client share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.remoting.connection_group import (
    HIGH_WATER,
    LOW_WATER,
    MAX_FOREIGNERS,
    ConnectionGroup,
    ConnectionLimits,
)
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.turns import Turns
from rocketbroker.testing.contracts.wire import Wire
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.frames import MAX_BYTES, encode
from tests.examples import examples
from tests.remoting.wires import HubWire, NetworkWire


class ForeignerTests(SynchronousTestCase):
    """Clients that speak another protocol."""

    def test_named(self) -> None:
        """They are closed, and the log names the first of each address."""
        for make in (HubWire, NetworkWire):
            wire = make(ResponderTable(), ConnectionLimits())
            group, peer = wire.connection.group, wire.connection.peer
            with capturedLogs() as events:
                wire.feed(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            self.assertTrue(wire.ended())
            self.assertEqual(group.counts.broken, 1)
            self.assertEqual(
                [formatEvent(event) for event in events],
                [
                    f"Closed {peer}: a gRPC client: rocketbroker speaks the remoting "
                    "protocol only; use a client of the remoting protocol."
                ],
            )
            wire.end()

    def test_again(self) -> None:
        """Another connection from the same address is closed without a line, unless
        its protocol is another."""
        wire = HubWire(ResponderTable(), ConnectionLimits())
        wire.feed(b"GET / HTTP/1.1\r\n\r\n")
        for data, lines in ((b"POST / HTTP/1.1\r\n", 0), (b"\x16\x03\x01\0", 1)):
            peer, connection = wire.another()
            with capturedLogs() as events:
                peer.send(data)
                wire.step()
            self.assertTrue(connection.closed)
            self.assertEqual(len(events), lines)
            peer.close()
        wire.end()

    def test_bounded(self) -> None:
        """Each is new once; beyond the bound all are forgotten."""
        group = ConnectionGroup(Clock(), ResponderTable(), ConnectionLimits(), Turns())
        for number in range(MAX_FOREIGNERS):
            address = number.to_bytes(4, "big")
            self.assertTrue(group.is_new_foreigner(address, "a"))
            self.assertFalse(group.is_new_foreigner(address, "a"))
        self.assertTrue(group.is_new_foreigner(bytes(4), "b"))
        self.assertTrue(group.is_new_foreigner(bytes(4), "a"))


class LimitsTests(SynchronousTestCase):
    """From options."""

    def test_ofServer(self) -> None:
        """A server's; RocketMQ's 0 for water marks means ours."""
        limits = ConnectionLimits.of_server(RemotingServerOptions())
        self.assertEqual((limits.high_water, limits.low_water), (HIGH_WATER, LOW_WATER))
        self.assertEqual((limits.requests, limits.idle_seconds), (4096, 120))
        limits = ConnectionLimits.of_server(
            RemotingServerOptions(
                write_buffer_high_water_mark=2000,
                write_buffer_low_water_mark=1000,
                server_channel_max_idle_time_seconds=7,
                server_async_semaphore_value=5000,
            )
        )
        self.assertEqual(limits.requests, 5000)
        self.assertEqual((limits.high_water, limits.low_water), (2000, 1000))
        self.assertEqual(limits.idle_seconds, 7)

    def test_ofClient(self) -> None:
        """A client's."""
        limits = ConnectionLimits.of_client(RemotingClientOptions())
        self.assertEqual((limits.requests, limits.idle_seconds), (65535, 120))

    def test_lowAboveHigh(self) -> None:
        """A low mark above the high one would never let anybody be read again."""
        options = RemotingServerOptions(
            write_buffer_high_water_mark=1000, write_buffer_low_water_mark=2000
        )
        self.assertEqual(ConnectionLimits.of_server(options).low_water, 1000)

    def test_frameBytes(self) -> None:
        """No frame may be longer than the protocol's."""
        self.assertRaises(ValueError, ConnectionLimits, frame_bytes=MAX_BYTES + 1)


def echo(connection: IConnection, command: Command) -> Answer:
    """Say it again."""
    return response_to(command, body=command.body)


def table() -> ResponderTable:
    """Answers some of the codes that mutated frames have."""
    responders = ResponderTable()
    for code in (1, 10, 105, 310):
        responders.register(code, echo)
    responders.register_hot(310, lambda connection, header, body: False)
    return responders


FRAME = encode(Command(310, {"b": "T"}, b"body", opaque=7))


class GarbageTests(SynchronousTestCase):
    """Whatever comes, nothing but the protocol's own ways of saying no."""

    def feed(self, wire: Wire, pieces: list[bytes]) -> None:
        """Feed it, and see that nothing was logged and nobody is left half open."""
        try:
            for piece in pieces:
                wire.feed(piece)
            wire.commands()
            self.assertEqual(wire.connection.closed, wire.ended())
            self.assertEqual(wire.connection.group.counts.failed, 0)
            self.assertEqual(self.flushLoggedErrors(), [])
        finally:
            wire.end()

    @examples()
    @given(st.lists(st.binary(max_size=40), max_size=5))
    def test_anything(self, pieces: list[bytes]) -> None:
        """Any bytes, on both kinds of connection."""
        self.feed(HubWire(table(), ConnectionLimits()), pieces)
        self.feed(NetworkWire(table(), ConnectionLimits()), pieces)

    @examples()
    @given(
        st.integers(0, len(FRAME) - 1),
        st.integers(0, 255),
        st.integers(0, 2 * len(FRAME)),
    )
    def test_mutated(self, at: int, byte: int, cut: int) -> None:
        """A frame with one wrong byte, before a right one, cut somewhere."""
        data = FRAME[:at] + bytes([byte]) + FRAME[at + 1 :] + FRAME
        pieces = [data[:cut], data[cut:]]
        self.feed(HubWire(table(), ConnectionLimits()), pieces)
        self.feed(NetworkWire(table(), ConnectionLimits()), pieces)

"""Tests of one connection."""

from __future__ import annotations

from struct import pack

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.command import BINARY, JSON, Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import MAX_BYTES, decode, encode
from tests.examples import examples
from tests.wire.strategies import INT16, commands, parts
from tests.wire.vectors import vectors

FRAME = encode(Command(105, {"topic": "T1"}, b"xx", opaque=7))
NEXT = encode(Command(34, None, b"yyy", opaque=8), BINARY)


class ConnectionTests(SynchronousTestCase):
    """Bytes in, commands out."""

    def opaques(self, connection: Connection, data: bytes) -> list[int]:
        """The opaques of the commands that come out."""
        return [command.opaque for command in connection.receive(data)]

    def test_whole(self) -> None:
        """A whole frame is a command; nothing is left."""
        connection = Connection()
        self.assertEqual(self.opaques(connection, FRAME), [7])
        self.assertEqual(connection.held, 0)

    def test_byteByByte(self) -> None:
        """A command comes out with its last byte."""
        connection = Connection()
        data = FRAME + NEXT
        found = []
        for index in range(len(data)):
            opaques = self.opaques(connection, data[index : index + 1])
            found += [(index + 1, opaque) for opaque in opaques]
        self.assertEqual(found, [(len(FRAME), 7), (len(data), 8)])
        self.assertEqual(connection.held, 0)

    def test_leftOver(self) -> None:
        """What is behind a whole frame is kept, however much it is."""
        for size in range(len(NEXT)):
            connection = Connection()
            self.assertEqual(self.opaques(connection, FRAME + NEXT[:size]), [7])
            self.assertEqual(connection.held, size)
            self.assertEqual(self.opaques(connection, NEXT[size:] + FRAME[:5]), [8])
            self.assertEqual(connection.held, 5)
            self.assertEqual(self.opaques(connection, FRAME[5:] + FRAME), [7, 7])

    def test_nothing(self) -> None:
        """No bytes are no commands."""
        connection = Connection()
        self.assertEqual(connection.receive(b""), [])
        connection.receive(FRAME[:9])
        self.assertEqual(connection.receive(b""), [])

    def test_kinds(self) -> None:
        """Bytes may come in any form that gives them."""
        for form in (bytes, bytearray, memoryview):
            connection = Connection()
            commands = connection.receive(form(FRAME[:50]))
            commands += connection.receive(form(FRAME[50:]))
            self.assertEqual([command.body for command in commands], [b"xx"])

    def test_longest(self) -> None:
        """The limit counts the first word; a frame of just the limit is taken."""
        connection = Connection(len(FRAME))
        self.assertEqual(self.opaques(connection, FRAME), [7])
        with self.assertRaises(RemoteProtocolError):
            Connection(len(FRAME) - 1).receive(FRAME[:4])

    def test_lengths(self) -> None:
        """A length that no frame can have is refused with its last byte."""
        for length in (-1, -(1 << 31), 0, 3, MAX_BYTES - 3, 0x7FFFFFFF):
            connection = Connection()
            first = pack(">i", length)
            self.assertEqual(connection.receive(first[:3]), [])
            with self.assertRaises(RemoteProtocolError):
                connection.receive(first[3:])
        self.assertEqual(Connection().receive(pack(">i", MAX_BYTES - 4)), [])

    def test_noProtocol(self) -> None:
        """What speaks another protocol is refused with its first bytes."""
        for data in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            b"\r\n\r\n\0\r\nQUIT\n",
        ):
            with self.assertRaises(RemoteProtocolError):
                Connection().receive(data)

    def test_poisoned(self) -> None:
        """After one mistake nothing is read any more, however good it is."""
        connection = Connection()
        bad = pack(">ii", 6, 2) + b"[]"
        with self.assertRaises(RemoteProtocolError):
            connection.receive(bad)
        self.assertEqual(connection.before_error, [])
        self.assertEqual(connection.held, 0)
        for data in (FRAME, b""):
            with self.assertRaises(RemoteProtocolError):
                connection.receive(data)

    def test_beforeTheMistake(self) -> None:
        """The commands before the mistake in the same bytes can still be served."""
        bad = pack(">ii", 4, 0x02000000)
        for cut in range(len(FRAME)):
            connection = Connection()
            connection.receive(FRAME[:cut])
            with self.assertRaises(RemoteProtocolError):
                connection.receive(FRAME[cut:] + NEXT + bad)
            self.assertEqual([c.opaque for c in connection.before_error], [7, 8])

    def test_bodiesAreCopies(self) -> None:
        """A command does not hold the bytes that it was read from."""
        data = bytearray(FRAME)
        (command,) = Connection().receive(data)
        data[-1] = 0
        self.assertEqual(command.body, b"xx")
        data += b"more"

    def test_vectors(self) -> None:
        """Captured frames, each cut at every byte, in one stream with its neighbour."""
        for vector in vectors():
            frame = vector.frame
            expected = parts(decode(frame[4:]))
            for cut in range(len(frame) + 1):
                connection = Connection()
                found = connection.receive(frame[:cut])
                found += connection.receive(frame[cut:] + frame[: cut // 2])
                self.assertEqual([parts(command) for command in found], [expected])
                self.assertEqual(connection.held, cut // 2)

    def test_vectorsByteByByte(self) -> None:
        """All captured frames in one stream, which comes byte by byte."""
        stream = b"".join(vector.frame for vector in vectors())
        connection = Connection()
        found = []
        for index in range(len(stream)):
            found += connection.receive(stream[index : index + 1])
        self.assertEqual(
            [parts(command) for command in found],
            [parts(decode(vector.frame[4:])) for vector in vectors()],
        )
        self.assertEqual(connection.held, 0)


class PropertyTests(SynchronousTestCase):
    """Any frames in any pieces."""

    @examples()
    @given(
        st.lists(
            st.tuples(commands(INT16, least=1), st.sampled_from([JSON, BINARY])),
            max_size=5,
        ),
        st.lists(st.integers(0, 400), max_size=10),
    )
    def test_pieces(self, sent: list[tuple[Command, int]], sizes: list[int]) -> None:
        """Cuts change nothing."""
        stream = b"".join(encode(command, kind) for command, kind in sent)
        connection = Connection()
        found = []
        for size in sizes:
            found += connection.receive(stream[:size])
            stream = stream[size:]
        found += connection.receive(stream)
        self.assertEqual(
            [parts(command) for command in found],
            [parts(command) for command, _ in sent],
        )

    @examples()
    @given(st.lists(st.binary(max_size=40), max_size=5))
    def test_anyBytes(self, pieces: list[bytes]) -> None:
        """Any bytes are waited for or refused; once refused, always refused."""
        connection = Connection(1000)
        refused = False
        for piece in pieces:
            try:
                connection.receive(piece)
                self.assertFalse(refused)
            except RemoteProtocolError:
                refused = True
            self.assertLess(connection.held, 1000)

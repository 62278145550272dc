# -*- test-case-name: tests.blocking.test_machine -*-
"""The contract of streams: what the blocking client reads from and writes to."""

from __future__ import annotations

from rocketbroker.blocking.machine import Stream
from rocketbroker.errors import ConnectionLost
from rocketbroker.testing.contracts.case import Contract
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode

REQUEST = encode(Command(105, opaque=7))
ANSWER = encode(answer(opaque=7))


class StreamContract(Contract):
    """The suite of L{Stream}, whose other side answers L{REQUEST} with L{ANSWER}.

    A test class makes a stream with L{make}, and moves the other side.
    """

    def make(self) -> Stream:
        """
        @return: a new stream.
        """
        raise AssertionError("a test class makes its own stream")

    def let_answer(self) -> None:
        """The other side has got the request: let it answer."""

    def hang_up(self) -> None:
        """Let the other side close."""
        raise AssertionError("a test class moves its own other side")

    def receive_all(self, stream: Stream, size: int) -> bytes:
        """C{size} bytes, in however many reads."""
        data = b""
        while len(data) < size:
            data += stream.receive() or b""
        return data

    def test_quiet(self) -> None:
        """What is quiet cannot be read, and can be written if that is asked."""
        stream = self.make()
        self.assertIsNone(stream.receive())
        self.assertEqual(stream.wait(False, 0), (False, False))
        self.assertEqual(stream.wait(True, 0), (False, True))
        self.assertEqual(stream.wait(False, 0), (False, False))
        stream.close()

    def test_sendReceive(self) -> None:
        """What is sent is answered, and the answer can be read."""
        stream = self.make()
        rest = memoryview(REQUEST)
        while rest:
            rest = rest[stream.send(rest) :]
        self.let_answer()
        readable = stream.wait(False, 1).readable
        data = self.receive_all(stream, len(ANSWER))
        self.assertTrue(readable)
        self.assertEqual(data, ANSWER)
        self.assertEqual(stream.wait(False, 0), (False, False))
        stream.close()

    def test_hungUp(self) -> None:
        """When the other side closes, there is nothing to read, at once."""
        stream = self.make()
        self.hang_up()
        readable = stream.wait(False, 1).readable
        self.assertTrue(readable)
        self.assertEqual(stream.receive(), b"")
        stream.close()
        stream.close()

    def test_broken(self) -> None:
        """Sending to nobody, and using what is closed, says that it is lost."""
        stream = self.make()
        self.hang_up()
        self.assertRaises(ConnectionLost, stream.send, memoryview(REQUEST))
        stream.close()
        self.assertRaises(ConnectionLost, stream.receive)

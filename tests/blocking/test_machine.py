"""Streams, real and scripted, and the machine they come from."""

from __future__ import annotations

import pickle
import socket

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.machine import (
    Selected,
    Stream,
    TcpStream,
    ThisMachine,
    reason,
)
from rocketbroker.errors import ConnectionLost
from rocketbroker.testing.contracts.streams import ANSWER, REQUEST, StreamContract
from rocketbroker.testing.scripted import ScriptedMachine, answer


class ScriptedStreamTests(StreamContract, SynchronousTestCase):
    """The double."""

    def make(self) -> Stream:
        """One to a server that answers everything."""
        self.machine = ScriptedMachine({"a:1": lambda command: answer()})
        return self.machine.connect("a", 1, 1.0)

    def hang_up(self) -> None:
        """The server does."""
        self.machine.streams[-1].hung_up = True

    def test_nobody(self) -> None:
        """Who is not in the script cannot be reached."""
        machine = ScriptedMachine({})
        self.assertRaises(ConnectionLost, machine.connect, "a", 1, 1.0)

    def test_clock(self) -> None:
        """Time passes by sleeping and by waiting in vain."""
        stream = self.make()
        before = self.machine.monotonic()
        stream.wait(False, 2.0)
        self.machine.sleep(0.5)
        self.assertEqual(self.machine.monotonic(), before + 2.5)


class TcpStreamTests(StreamContract, SynchronousTestCase):
    """The real one, over a pair of sockets."""

    def make(self) -> Stream:
        """One whose other side is in our hands."""
        mine, self.other = socket.socketpair()
        self.addCleanup(self.other.close)
        mine.setblocking(False)
        return self.stream(mine)

    def stream(self, mine: socket.socket) -> Stream:
        """The stream on a socket."""
        return TcpStream(mine)

    def let_answer(self) -> None:
        """Take the request and answer."""
        self.assertEqual(self.other.recv(65536), REQUEST)
        self.other.sendall(ANSWER)

    def hang_up(self) -> None:
        """Close the other side."""
        self.other.close()

    def test_full(self) -> None:
        """When the other side does not read, nothing more is taken."""
        stream = self.make()
        piece = memoryview(bytes(65536))
        while stream.send(piece):
            pass
        self.assertEqual(stream.wait(True, 0), (False, False))
        stream.close()

    def test_closedWhileWaiting(self) -> None:
        """Who waits for what another thread closes does not wait any more."""
        stream = self.make()
        stream.close()
        self.assertTrue(stream.wait(False, 1).readable)


class SelectedStreamTests(TcpStreamTests):
    """The same where there is no C{poll}."""

    def stream(self, mine: socket.socket) -> Stream:
        """One that waits by C{select}."""
        return TcpStream(mine, Selected)


class MachineTests(SynchronousTestCase):
    """Addresses, identity."""

    def test_reasonsAreTheSystemsWords(self) -> None:
        """Users read no notation of Python."""
        for problem, text in (
            (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
            (TimeoutError("timed out"), "no answer in time"),
            (TimeoutError(110, "Connection timed out"), "Connection timed out"),
            (socket.gaierror(-2, "Name not known"), "Name not known"),
            (UnicodeError("label too long"), "no host has such a name"),
            (OSError("odd"), "odd"),
        ):
            self.assertEqual(reason(problem), text)

    def test_identity(self) -> None:
        """An address, this process, and a number that differs from time to time."""
        first, second = ThisMachine().identity(), ThisMachine().identity()
        self.assertEqual(len(first.address), 4)
        self.assertEqual(first[:2], second[:2])
        self.assertNotEqual(first.token, second.token)

    def test_unreachable(self) -> None:
        """What cannot be the name of a host is a lost connection, and no surprise."""
        for host in ("x" * 70, "a..b"):
            with self.assertRaises(ConnectionLost):
                ThisMachine().connect(host, 0, 0.01)

    def test_travels(self) -> None:
        """The machine can be pickled."""
        self.assertIsInstance(pickle.loads(pickle.dumps(ThisMachine())), ThisMachine)

"""The reactor of servers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from socket import socketpair

from twisted.internet.abstract import FileDescriptor
from twisted.internet.testing import MemoryReactorClock
from twisted.python import context
from twisted.python.log import ILogContext
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.reactor import (
    SWITCH_SECONDS,
    ServerReactor,
    switch_soon,
    watch_timers,
)
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.turns import TIMERS, Turns

#: What a process prints that may install the reactor of servers.
PROGRAM = """
{before}
from rocketbroker.app.reactor import server_reactor
print(type(server_reactor()).__name__)
"""


class Interpreter:
    """Tells how long a thread may hold it."""

    def __init__(self) -> None:
        self.seconds = 0.005

    def setswitchinterval(self, seconds: float, /) -> None:
        """See C{sys.setswitchinterval}."""
        self.seconds = seconds


class SwitchTests(SynchronousTestCase):
    """L{switch_soon}."""

    def test_threadsHoldTheInterpreterForShort(self) -> None:
        """Threads hold the interpreter for a part of a millisecond only."""
        interpreter = Interpreter()
        switch_soon(interpreter)
        self.assertEqual(interpreter.seconds, SWITCH_SECONDS)
        self.assertLess(SWITCH_SECONDS, 0.001)


class Reader(FileDescriptor):
    """The end of a pipe that keeps what comes out."""

    def __init__(self, reactor: object, descriptor: int) -> None:
        super().__init__(reactor)  # type: ignore[arg-type]
        self.descriptor = descriptor
        self.read: list[bytes] = []

    def fileno(self) -> int:
        """The descriptor."""
        return self.descriptor

    def doRead(self) -> None:
        """Keep what there is."""
        self.read.append(os.read(self.descriptor, 100))


class ReactorTests(SynchronousTestCase):
    """L{ServerReactor}, one that is no process's reactor."""

    def setUp(self) -> None:
        """A reactor; what it opens is closed at the end."""
        self.reactor = ServerReactor()
        self.addCleanup(self.close)

    def close(self) -> None:
        """Close the descriptors of the reactor."""
        for reader in self.reactor.removeAll():
            reader.connectionLost(None)
        self.reactor._poller.close()

    def test_timeOfDayDoesNotCount(self) -> None:
        """It counts with the clock that nobody sets."""
        self.assertIs(self.reactor.seconds, time.monotonic)

    def test_timersAreTimed(self) -> None:
        """The time that the timers of a round take is told to all who watch."""
        first, second = Turns(), Turns()
        watch_timers(self.reactor, first)
        watch_timers(self.reactor, second)
        called: list[int] = []
        self.reactor.callLater(0, called.append, 1)
        self.reactor.runUntilCurrent()
        self.assertEqual(called, [1])
        for turns in (first, second):
            self.assertIn(TIMERS, turns.longest)

    def test_timersOfAnotherKindAreNotTimed(self) -> None:
        """A reactor of another kind tells nothing."""
        turns = Turns()
        watch_timers(MemoryReactorClock(), turns)
        self.assertEqual(turns.longest, {})

    def test_hubHasTurnWhenReadable(self) -> None:
        """A hub has a turn when one of its sockets is readable, and no context of the
        log is made for it."""
        hub = Hub(self.reactor)
        self.addCleanup(hub.shut)
        ours, theirs = socketpair()
        for end in (ours, theirs):
            self.addCleanup(end.close)
        hub.sockets.register(ours.fileno())
        hub.watch()
        told: list[str] = []
        hub.watch_turn_end(lambda: told.append(context.get(ILogContext)["system"]))
        theirs.send(b"x")
        self.reactor.doIteration(5)
        self.assertEqual(hub.turn_count, 1)
        self.assertEqual(told, ["-"])

    def test_otherReaderIsCalledAsUsual(self) -> None:
        """Readers that are no hub are called as Twisted calls them."""
        ours, theirs = os.pipe()
        for descriptor in (ours, theirs):
            self.addCleanup(os.close, descriptor)
        reader = Reader(self.reactor, ours)
        self.reactor.addReader(reader)
        self.addCleanup(self.reactor.removeReader, reader)
        os.write(theirs, b"x")
        self.reactor.doIteration(5)
        self.assertEqual(reader.read, [b"x"])

    def test_nothingReadyEndsWithTimeout(self) -> None:
        """Where nothing comes, the call ends after its time."""
        self.reactor.doIteration(0)


class InstallTests(SynchronousTestCase):
    """L{rocketbroker.app.reactor.server_reactor}, in a process of its own."""

    def reactor_of(self, before: str) -> str:
        """The class of the reactor of a process."""
        program = PROGRAM.format(before=before)
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def test_processWithoutReactorGetsOurs(self) -> None:
        """Where nobody has chosen a reactor, it is ours."""
        self.assertEqual(self.reactor_of(""), "ServerReactor")

    def test_chosenReactorStays(self) -> None:
        """One that C{twistd -r} has chosen stays."""
        before = "from twisted.internet.pollreactor import install as i; i()"
        self.assertEqual(self.reactor_of(before), "PollReactor")

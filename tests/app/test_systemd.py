"""What systemd is told."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from select import select

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.systemd import FIRST_DESCRIPTOR, Notifier, handed_on
from rocketbroker.errors import ConfigurationError


class SystemdTests(SynchronousTestCase):
    """L{Notifier}, with a socket of the test as systemd's."""

    def setUp(self) -> None:
        """A folder whose path is short enough for a socket's."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name, "notify"))
        self.reactor = MemoryReactorClock()

    def listening(self, name: str) -> socket.socket:
        """systemd's socket."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listening.close)
        listening.setblocking(False)
        listening.bind(name)
        return listening

    def test_states(self) -> None:
        """It is ready when its Deferred fires, and stops before the reactor does; the
        socket may have a name in the file system or an abstract one."""
        for path, name in (
            (self.path, self.path),
            (f"@{self.path}", f"\0{self.path}"),
        ):
            listening = self.listening(name)
            ready: Deferred[None] = Deferred()
            Notifier({"NOTIFY_SOCKET": path}, 7).follow(self.reactor, ready)
            self.assertRaises(BlockingIOError, listening.recv, 100)
            ready.callback(None)
            self.assertEqual(listening.recv(100), b"READY=1")
            self.assertRaises(BlockingIOError, listening.recv, 100)
            ((function, args, _),) = self.reactor.triggers["before"].pop("shutdown")
            function(*args)
            self.assertEqual(listening.recv(100), b"STOPPING=1")

    def test_nobody(self) -> None:
        """Without systemd nothing is told."""
        ready: Deferred[None] = Deferred()
        Notifier({}, 7).follow(self.reactor, ready)
        ready.callback(None)
        self.assertEqual(self.reactor.triggers, {})

    def test_gone(self) -> None:
        """A socket that is not there is logged; the server goes on."""
        with capturedLogs() as logs:
            Notifier({"NOTIFY_SOCKET": self.path}, 7).notify("READY=1")
        (event,) = logs
        self.assertEqual(event["reason"], "No such file or directory")

    def lives(self, **environment: str) -> list[bytes]:
        """What is told in a minute after a server is ready, which the test lets last a
        second a turn."""
        listening = self.listening(self.path)
        variables = {"NOTIFY_SOCKET": self.path, **environment}
        ready: Deferred[None] = Deferred()
        Notifier(variables, 7).follow(self.reactor, ready)
        self.reactor.pump([1] * 60)
        self.assertRaises(BlockingIOError, listening.recv, 100)
        ready.callback(None)
        self.reactor.pump([1] * 60)
        told = []
        while select([listening], [], [], 0)[0]:
            told.append(listening.recv(100))
        return told

    def test_watchdogIsFedByTurns(self) -> None:
        """From when it is ready on, a server says three times in the time of the
        watchdog that its reactor goes round."""
        told = self.lives(WATCHDOG_USEC="60000000", WATCHDOG_PID="7")
        self.assertEqual(told, [b"READY=1", *[b"WATCHDOG=1"] * 4])

    def test_watchdogOfAnotherProcess(self) -> None:
        """A watchdog of another process, or none, is not fed."""
        told = self.lives(WATCHDOG_USEC="60000000", WATCHDOG_PID="8")
        self.assertEqual(told, [b"READY=1"])

    def test_watchdogWithoutTime(self) -> None:
        """Nor is one without a time."""
        for time_us in ("", "0", "x"):
            Path(self.path).unlink(missing_ok=True)
            self.assertEqual(self.lives(WATCHDOG_USEC=time_us), [b"READY=1"])


class SocketTests(SynchronousTestCase):
    """L{handed_on}."""

    def test_socketIsForTheProcessThatIsNamed(self) -> None:
        """A parent's variables say nothing to a child."""
        for environment, wanted in (
            ({}, None),
            ({"LISTEN_FDS": "1", "LISTEN_PID": "7"}, FIRST_DESCRIPTOR),
            ({"LISTEN_FDS": "1", "LISTEN_PID": "8"}, None),
            ({"LISTEN_FDS": "1"}, None),
            ({"LISTEN_FDS": "0", "LISTEN_PID": "7"}, None),
        ):
            self.assertEqual(handed_on(environment, 7), wanted, environment)

    def test_severalSocketsAreOneSentence(self) -> None:
        """Nobody knows which of them is meant."""
        variables = {"LISTEN_FDS": "2", "LISTEN_PID": "7"}
        problem = self.assertRaises(ConfigurationError, handed_on, variables, 7)
        self.assertTrue(str(problem).startswith("systemd hands on 2 sockets"))

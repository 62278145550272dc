"""The port for gRPC of a standalone broker."""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence
from typing import Any

from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.task import Clock
from twisted.logger import capturedLogs
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.grpc_port import (
    PAUSE_SECONDS,
    STOP_SECONDS,
    GrpcPort,
    grpc_port_of,
    listening,
)
from rocketbroker.errors import ConfigurationError


class Process:
    """The transport of a process that runs."""

    def __init__(self) -> None:
        self.signals: list[str] = []
        self.written: dict[int, bytes] = {}
        self.closed: list[int] = []

    def writeToChild(self, descriptor: int, data: bytes) -> None:
        """Let it read that."""
        self.written[descriptor] = self.written.get(descriptor, b"") + data

    def closeChildFD(self, descriptor: int) -> None:
        """That was all."""
        self.closed.append(descriptor)

    def signalProcess(self, name: str) -> None:
        """Send it a signal."""
        self.signals.append(name)


class Reactor(Clock):
    """Readers and processes, as they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: set[Any] = set()
        self.spawned: list[tuple[Any, Sequence[str], dict[int, Any]]] = []

    def addReader(self, reader: Any) -> None:
        """Look at it."""
        self.readers.add(reader)

    def removeReader(self, reader: Any) -> None:
        """Look at it no more."""
        self.readers.discard(reader)

    def spawnProcess(
        self, protocol: Any, _: str, command: Sequence[str], __: Any, childFDs: Any
    ) -> None:
        """Begin a process."""
        protocol.transport = Process()
        self.spawned.append((protocol, command, childFDs))


class GrpcPortTests(SynchronousTestCase):
    """L{GrpcPort}."""

    def setUp(self) -> None:
        """A port with all that a proxy needs."""
        self.reactor = Reactor()
        self.problem: str | None = None
        listener = listening("127.0.0.1", 0, True)
        assert listener is not None
        self.addCleanup(listener.close)
        words = ["-n", "a:1"]
        self.port = GrpcPort(
            self.reactor, listener, words, {"proxyName": "p"}, lambda: self.problem
        )
        self.port.start()

    def connect(self) -> socket.socket:
        """A client."""
        client = socket.create_connection(("127.0.0.1", self.port.port), 10)
        self.addCleanup(client.close)
        return client

    def end(self, reason: Exception) -> None:
        """The last proxy ends."""
        self.reactor.spawned[-1][0].processEnded(Failure(reason))

    def test_firstConnectionBeginsAProxyWithTheSocket(self) -> None:
        """Which nobody else looks at then."""
        self.assertEqual(self.reactor.readers, {self.port})
        descriptor = self.port.fileno()
        self.port.doRead()
        self.assertEqual(self.reactor.readers, set())
        ((_, command, descriptors),) = self.reactor.spawned
        self.assertEqual(descriptors[3], descriptor)
        words = (
            "--listen-fd 3 --exit-with-parent --metrics-port off -c /dev/fd/4 -n a:1"
        )
        self.assertEqual(list(command[-9:]), words.split())

    def test_settingsAreReadFromAPipe(self) -> None:
        """Which is closed behind them; no word of the command has them."""
        self.port.doRead()
        ((protocol, command, descriptors),) = self.reactor.spawned
        self.assertEqual(descriptors[4], "w")
        self.assertEqual(protocol.transport.written, {4: b'{"proxyName": "p"}'})
        self.assertEqual(protocol.transport.closed, [4])
        self.assertNotIn("proxyName", " ".join(command))

    def test_nextConnectionBeginsAnotherOne(self) -> None:
        """After a pause, however the one before has ended."""
        for reason in (ProcessDone(0), ProcessTerminated(signal=9)):
            self.port.doRead()
            self.end(reason)
            self.assertEqual(self.reactor.readers, set())
            self.reactor.advance(PAUSE_SECONDS)
            self.assertEqual(self.reactor.readers, {self.port})
        self.assertEqual(self.port.begun, 2)

    def test_withoutTheExtraConnectionsAreClosed(self) -> None:
        """No process begins, and the log says once what to install."""
        self.problem = "needs it: install it."
        with capturedLogs() as logged:
            for _ in "12":
                client = self.connect()
                self.port.doRead()
                self.assertEqual(client.recv(1), b"")
        self.assertEqual([event["problem"] for event in logged], [self.problem])
        self.assertEqual(self.reactor.spawned, [])
        self.assertEqual(self.reactor.readers, {self.port})
        self.port.doRead()

    def test_proxyStopsWithItsParent(self) -> None:
        """Killed, if it takes too long."""
        self.port.doRead()
        stopped = self.port.stop()
        process = self.reactor.spawned[-1][0].transport
        self.assertEqual(process.signals, ["TERM"])
        self.assertNoResult(stopped)
        self.reactor.advance(STOP_SECONDS)
        self.assertEqual(process.signals, ["TERM", "KILL"])
        self.end(ProcessTerminated(signal=signal.SIGKILL))
        self.successResultOf(stopped)
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_portWithoutAProxyStopsAtOnce(self) -> None:
        """Also while nobody is served after one has ended."""
        self.port.doRead()
        self.end(ProcessDone(0))
        self.successResultOf(self.port.stop())
        self.assertEqual(self.reactor.getDelayedCalls(), [])
        self.assertEqual(self.reactor.readers, set())


class SocketTests(SynchronousTestCase):
    """The socket and the flag."""

    def test_takenPortIsAnErrorIfItWasAskedFor(self) -> None:
        """Otherwise there is none."""
        first = listening("127.0.0.1", 0, True)
        assert first is not None
        self.addCleanup(first.close)
        port = first.getsockname()[1]
        self.assertIsNone(listening("127.0.0.1", port, False))
        problem = self.assertRaises(
            ConfigurationError, listening, "127.0.0.1", port, True
        )
        self.assertIn("--grpc-port off", str(problem))

    def test_flagIsAPortOrOff(self) -> None:
        """Anything else is one sentence."""
        self.assertIsNone(grpc_port_of(None))
        self.assertEqual([grpc_port_of(text) for text in ("0", "off")], [0, -1])
        for text in ("x", "70000", "-1", ""):
            self.assertRaises(ConfigurationError, grpc_port_of, text)

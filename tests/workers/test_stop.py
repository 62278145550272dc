"""The stop of a server with workers: what is under way is answered."""

from __future__ import annotations

import socket
from select import select
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.server import GRACE_SECONDS, RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from rocketbroker.workers.hello import WorkerSettings
from rocketbroker.workers.worker import Worker
from rocketbroker.workers.workers import Workers
from tests.workers.usage import NoUsage

LATER = 105


class WorkerHere:
    """A worker in the process of the test."""

    pid = 1

    def __init__(self, reactor: Any, end: socket.socket, ended: Any) -> None:
        self.has_ended = False
        self._ended = ended
        self.worker = Worker(
            reactor, end.dup(), OpenFiles(MemoryDisk()), lambda: 0, NoUsage(), self.ends
        )

    def ends(self) -> None:
        """It exits."""
        self.has_ended = True
        self._ended("exit status 0")

    def kill(self) -> None:
        """It does not come to that."""
        raise AssertionError("it was killed")


class StopTests(SynchronousTestCase):
    """A server, a worker and a client."""

    def setUp(self) -> None:
        """A client that has asked for something that takes time."""
        self.reactor: Any = MemoryReactorClock()
        self.later: Deferred[Command | None] = Deferred()
        table = ResponderTable()
        table.register(LATER, lambda connection, command: self.later)
        self.hub = Hub(self.reactor)
        self.addCleanup(self.hub.shut)
        self.processes: list[WorkerHere] = []
        settings = WorkerSettings(ConnectionLimits(), 1 << 26)
        self.workers = Workers(self.reactor, self.hub, settings, 1, self.spawn)
        self.workers.start()
        options = RemotingServerOptions()
        self.server = RemotingServer(
            self.reactor, options, table, self.hub, hand_over=self.workers.hand_over
        )
        ours, self.client = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        self.client.setblocking(False)
        self.addCleanup(self.client.close)
        self.workers.hand_over(ours, self.server.group, "1.2.3.4", 5)
        self.client.sendall(encode(Command(LATER, opaque=7)))
        self.received = b""
        self.step()

    def spawn(self, number: int, end: socket.socket, ended: Any) -> WorkerHere:
        process = WorkerHere(self.reactor, end, ended)
        self.processes.append(process)
        return process

    def step(self, reads: bool = True) -> None:
        """Turns of both, and what the client reads."""
        for _ in range(500):
            self.reactor.advance(0)
            workers = [p.worker for p in self.processes if not p.has_ended]
            hubs = [self.hub, *(worker.hub for worker in workers)]
            for hub in select(hubs, [], [], 0)[0]:
                hub.doRead()
            if reads and select([self.client], [], [], 0)[0]:
                self.received += self.client.recv(1 << 16)

    def stopped(self) -> Deferred[None]:
        """Stop as a broker does: its ports, then its workers."""
        return self.server.stop().addCallback(lambda _: self.workers.stop())

    def test_answered(self) -> None:
        """A request under way is answered, however large the answer, before all end."""
        stopped = self.stopped()
        self.step()
        self.assertNoResult(stopped)
        self.later.callback(Command(0, body=bytes(900_000)))
        self.reactor.advance(0.1)
        self.step()
        (answer,) = Connection().receive(self.received)
        self.assertEqual((answer.opaque, len(answer.body or b"")), (7, 900_000))
        self.step()
        self.successResultOf(stopped)
        self.assertEqual(self.client.recv(1), b"")

    def test_bounded(self) -> None:
        """A client that does not read keeps nobody for longer than the grace."""
        stopped = self.stopped()
        self.later.callback(Command(0, body=bytes(900_000)))
        for _ in range(3):
            self.reactor.advance(GRACE_SECONDS)
            self.step(reads=False)
        self.successResultOf(stopped)

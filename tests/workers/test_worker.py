"""A worker, with the test as its owner."""

from __future__ import annotations

import socket
from select import select
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.tls import TlsOptions
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from rocketbroker.workers.hello import (
    MIN_BUFFER_BYTES,
    WorkerLoad,
    WorkerSettings,
)
from rocketbroker.workers.link import LinkStream, link_pair
from rocketbroker.workers.link_frames import Kind, LinkFrame, link_frame
from rocketbroker.workers.worker import GRACE_SECONDS, LOAD_SECONDS, Worker

SETTINGS = WorkerSettings(
    ConnectionLimits(high_water=77_777),
    99 << 20,
    TlsOptions(server_mode="enforcing", server_key_password="secret"),
)


class FakeUsage:
    """What the process takes, as the test says."""

    cpu = 0.0

    def cpu_seconds(self) -> float:
        """All its time."""
        return self.cpu

    def resident_bytes(self) -> int:
        """Its memory."""
        return 4096


class WorkerTests(SynchronousTestCase):
    """A worker, from START to STOP."""

    def setUp(self) -> None:
        """A worker that was told its settings."""
        self.reactor = MemoryReactorClock()
        self.usage = FakeUsage()
        self.ended: list[str] = []
        ours, theirs = link_pair()
        self.owner = LinkStream(ours)
        self.worker = Worker(
            cast(Any, self.reactor),
            theirs,
            OpenFiles(MemoryDisk()),
            lambda: 0,
            self.usage,
            lambda: self.ended.append("ended"),
        )
        self.addCleanup(self.owner.close)
        self.addCleanup(self.worker._end)
        self.tell(link_frame(Kind.START, 0, SETTINGS.to_json()))

    def tell(self, frame: bytes, passed: socket.socket | None = None) -> None:
        self.owner.write(frame, passed)
        self.owner.flush()
        self.step()

    def step(self) -> None:
        self.reactor.advance(0)
        while not self.ended and select([self.worker.hub], [], [], 0)[0]:
            self.worker.hub.doRead()
            self.reactor.advance(0)

    def client(self, number: int) -> socket.socket:
        """A client whose connection the worker was given."""
        ours, peer = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        peer.setblocking(False)
        self.addCleanup(peer.close)
        self.tell(link_frame(Kind.OPEN, number, b'["1.2.3.4", 5]'), ours)
        return peer

    def loads(self) -> list[WorkerLoad]:
        """What the worker has said of itself."""
        frames = [f for f in self.owner.read() if f.kind == Kind.LOAD]
        return [WorkerLoad.from_json(frame.payload) for frame in frames]

    def test_settings(self) -> None:
        """The owner's limits are the worker's."""
        self.assertEqual(self.worker.group.limits, SETTINGS.limits)
        self.assertEqual(self.worker.hub.buffers.limit, 99 << 20)

    def test_share(self) -> None:
        """Workers share the owner's memory for buffers, down to a least."""
        limits = ConnectionLimits()
        share = WorkerSettings.share
        tls = TlsOptions(server_mode="enforcing")
        self.assertEqual(share(limits, 128 << 20, tls, 2).buffer_bytes, 64 << 20)
        self.assertEqual(
            share(limits, 128 << 20, tls, 9).buffer_bytes, MIN_BUFFER_BYTES
        )

    def test_load(self) -> None:
        """It says at once, and then every second, how it does."""
        self.assertEqual(self.loads(), [WorkerLoad(resident_bytes=4096)])
        request = encode(Command(105))
        self.client(1).sendall(request * 3)
        self.step()
        self.usage.cpu = 0.25
        self.reactor.advance(LOAD_SECONDS)
        self.step()
        (load,) = self.loads()
        self.assertEqual((load.connections, load.frames_in), (1, 3))
        self.assertEqual(load.bytes_in, 3 * len(request))
        self.assertEqual((load.cpu_seconds, load.busy), (0.25, 0.25))

    def test_startIsNotBusy(self) -> None:
        """What the start of the process took does not make it a busy one."""
        self.usage.cpu = 0.01
        self.tell(link_frame(Kind.START, 0, SETTINGS.to_json()))
        self.assertLess(self.loads()[-1].busy, 0.02)

    def test_relays(self) -> None:
        """Whole frames of one reading go to the owner together, parts wait."""
        request = encode(Command(105))
        self.client(7).sendall(request * 2 + request[:9])
        self.step()
        frames = [f for f in self.owner.read() if f.kind == Kind.DATA]
        self.assertEqual(frames, [LinkFrame(Kind.DATA, 7, request * 2)])

    def test_closedBeforeTold(self) -> None:
        """What the owner sends for a client that has gone is dropped."""
        self.client(7).close()
        self.step()
        for kind in (Kind.DATA, Kind.PAUSE, Kind.RESUME, Kind.CLOSE):
            self.tell(link_frame(kind, 7, b"x"))
        frames = [f.kind for f in self.owner.read() if f.connection == 7]
        self.assertEqual((frames, self.ended), ([Kind.CLOSE], []))

    def test_stop(self) -> None:
        """Told to stop, it gives clients all that was sent to them, and ends."""
        peer = self.client(1)
        self.owner.write(link_frame(Kind.DATA, 1, bytes(100_000)))
        self.tell(link_frame(Kind.STOP))
        self.assertEqual(self.ended, [])
        received = 0
        while not self.ended:
            received += len(peer.recv(1 << 16))
            self.step()
        received += len(peer.recv(1 << 16))
        self.assertEqual((received, self.ended), (100_000, ["ended"]))
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_stopEmpty(self) -> None:
        """Without connections it ends at once."""
        self.tell(link_frame(Kind.STOP))
        self.assertEqual(self.ended, ["ended"])

    def test_stopGrace(self) -> None:
        """For a client that does not read it waits a bounded time only."""
        self.client(1)
        self.owner.write(link_frame(Kind.DATA, 1, bytes(100_000)))
        self.tell(link_frame(Kind.STOP))
        self.reactor.advance(GRACE_SECONDS)
        self.assertEqual(self.ended, ["ended"])

    def test_ownerGone(self) -> None:
        """When the owner is gone it ends at once, with all connections."""
        peer = self.client(1)
        self.owner.close()
        self.step()
        self.assertEqual(self.ended, ["ended"])
        self.assertEqual(peer.recv(1), b"")
        self.assertEqual(self.reactor.getDelayedCalls(), [])

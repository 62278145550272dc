"""All workers of an owner, with processes that the test plays."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.workers.hello import WorkerLoad, WorkerSettings
from rocketbroker.workers.link import LinkStream
from rocketbroker.workers.link_frames import Kind, LinkFrame, link_frame
from rocketbroker.workers.workers import (
    FIRST_DELAY_SECONDS,
    HOLD_SECONDS,
    LOOK_SECONDS,
    MAX_DELAY_SECONDS,
    SILENT_SECONDS,
    STEADY_SECONDS,
    STOP_SECONDS,
    Workers,
)


class FakeProcess:
    """A process of a worker.

    @ivar end: its end of the link.
    """

    def __init__(self, number: int, end: socket.socket, ended: Any) -> None:
        self.number = number
        self.pid = 1000 + number
        self.end = LinkStream(end.dup())
        self.was_killed = False
        self._ended: Callable[[str], object] = ended

    def kill(self) -> None:
        """Note it."""
        self.was_killed = True

    def read(self) -> list[LinkFrame]:
        """All that it was sent: a reading ends behind each socket."""
        found = frames = self.end.read()
        while frames:
            found = [*found, *(frames := self.end.read())]
        return found

    def exits(self, how: str = "signal 9") -> None:
        """It ends."""
        self.end.close()
        self._ended(how)


class WorkersTests(SynchronousTestCase):
    """Two workers."""

    def setUp(self) -> None:
        """Both have begun."""
        self.clock = MemoryReactorClock()
        self.hub = Hub(cast(Any, self.clock))
        self.group = ConnectionGroup(
            cast(Any, self.clock), ResponderTable(), ConnectionLimits(), self.hub.turns
        )
        self.spawned: list[FakeProcess] = []
        self.fails = 0
        self.settings = WorkerSettings(ConnectionLimits(), 1 << 26)
        self.workers = Workers(
            cast(Any, self.clock), self.hub, self.settings, 2, self.spawn
        )
        self.workers.start()
        self.addCleanup(self.end)
        self.step()
        for process in self.spawned:
            self.say(process, WorkerLoad())

    def end(self) -> None:
        for process in self.spawned:
            process.end.close()
        self.step()
        self.hub.shut()

    def spawn(self, number: int, end: socket.socket, ended: Any) -> FakeProcess:
        if self.fails:
            self.fails -= 1
            raise OSError("no more processes")
        process = FakeProcess(number, end, ended)
        self.spawned.append(process)
        return process

    def step(self) -> None:
        self.clock.advance(0)
        self.hub.turn()
        self.clock.advance(0)

    def connect(self) -> socket.socket:
        """A client that was accepted."""
        ours, peer = socket.socketpair()
        self.addCleanup(peer.close)
        self.workers.hand_over(ours, self.group, "1.2.3.4", 5)
        self.step()
        return peer

    def counts(self) -> list[int]:
        return [slot.connections for slot in self.workers.slots]

    def say(self, process: FakeProcess, load: WorkerLoad) -> None:
        process.end.write(link_frame(Kind.LOAD, 0, load.to_json()))
        process.end.flush()
        self.step()

    def test_start(self) -> None:
        """Each is told its settings first."""
        for process in self.spawned:
            expected = LinkFrame(Kind.START, 0, self.settings.to_json())
            self.assertEqual(process.read(), [expected])

    def test_fewest(self) -> None:
        """A connection goes to the worker that has the fewest."""
        peers = [self.connect() for _ in range(4)]
        self.assertEqual(self.counts(), [2, 2])
        process = self.spawned[0]
        opened = [f.connection for f in process.read() if f.kind == Kind.OPEN]
        for connection_id in opened:
            process.end.write(link_frame(Kind.CLOSE, connection_id, b"\0"))
        process.end.flush()
        self.step()
        self.assertEqual(self.counts(), [0, 2])
        peers += [self.connect(), self.connect()]
        self.assertEqual(self.counts(), [2, 2])

    def test_busy(self) -> None:
        """A worker that is much busier than the other gets none."""
        self.say(self.spawned[0], WorkerLoad(busy=0.5))
        self.say(self.spawned[1], WorkerLoad(busy=0.2))
        for _ in range(3):
            self.connect()
        self.assertEqual(self.counts(), [0, 3])
        self.say(self.spawned[1], WorkerLoad(busy=0.4))
        self.connect()
        self.assertEqual(self.counts(), [1, 3])

    def test_restart(self) -> None:
        """A worker that ends is started again; its connections are closed, those of the
        other are not, and get company meanwhile."""
        for _ in range(4):
            self.connect()
        self.say(self.spawned[0], WorkerLoad(frames_in=7))
        self.spawned[0].exits()
        self.assertEqual(self.counts(), [0, 2])
        self.assertEqual(len(self.group.connections), 2)
        self.connect()
        self.assertEqual(self.counts(), [0, 3])
        self.clock.advance(FIRST_DELAY_SECONDS)
        self.assertEqual([p.number for p in self.spawned], [1, 2, 1])
        slot = self.workers.slots[0]
        self.assertEqual((slot.restarts, slot.before.frames_in), (1, 7))
        self.connect()
        self.assertEqual(self.counts(), [0, 4])
        self.say(self.spawned[2], WorkerLoad())
        self.connect()
        self.assertEqual(self.counts(), [1, 4])

    def restart(self) -> None:
        """Both end, and are started again."""
        for process in self.spawned[:]:
            process.exits()
        self.clock.advance(FIRST_DELAY_SECONDS)

    def test_connectionsWaitForWorkersThatStart(self) -> None:
        """While no worker serves yet what is accepted waits for all that start, and is
        shared among them."""
        self.restart()
        peers = [self.connect() for _ in range(4)]
        self.assertEqual(self.counts(), [0, 0])
        self.assertEqual(self.hub.connection_count(), 0)
        self.say(self.spawned[2], WorkerLoad())
        peers.append(self.connect())
        self.assertEqual(self.counts(), [0, 0])
        self.say(self.spawned[3], WorkerLoad())
        self.assertEqual(sum(self.counts()), 5)
        self.assertEqual(min(self.counts()), 2)
        peers.append(self.connect())
        self.assertEqual(self.counts(), [3, 3])

    def test_connectionsWaitForABoundedTime(self) -> None:
        """Then the workers that serve have them; the owner, where none does."""
        self.restart()
        self.connect()
        self.say(self.spawned[3], WorkerLoad())
        self.clock.advance(HOLD_SECONDS)
        self.assertEqual(self.counts(), [0, 1])
        self.spawned[3].exits()
        self.connect()
        self.assertEqual(self.hub.connection_count(), 0)
        self.clock.advance(HOLD_SECONDS)
        self.assertEqual(self.hub.connection_count(), 1)

    def test_workerThatEndsBeforeItServes(self) -> None:
        """What waits for it is given to the one that serves, or to the owner."""
        self.restart()
        self.connect()
        self.say(self.spawned[3], WorkerLoad())
        self.spawned[2].exits()
        self.assertEqual(self.counts(), [0, 1])
        self.spawned[3].exits()
        self.connect()
        self.assertEqual(self.hub.connection_count(), 1)

    def test_connectionsThatWaitAreClosedByTheStop(self) -> None:
        """A stop closes what waits for a worker."""
        self.restart()
        peer = self.connect()
        self.workers.stop()
        self.assertEqual(peer.recv(1), b"")
        self.clock.advance(HOLD_SECONDS)
        self.assertEqual(self.hub.connection_count(), 0)

    def test_backOff(self) -> None:
        """One that ends soon again and again is started ever later; one that has run
        for long, at once."""
        delays = []
        for _ in range(9):
            self.spawned[-1].exits()
            call = self.workers.slots[self.spawned[-1].number - 1].call
            assert call is not None
            delays.append(round(call.getTime() - self.clock.seconds(), 3))
            self.clock.advance(delays[-1])
            self.step()
        self.assertEqual(delays[:4], [0.1, 0.2, 0.4, 0.8])
        self.assertEqual(delays[-1], MAX_DELAY_SECONDS)
        self.clock.advance(STEADY_SECONDS)
        begun = len(self.spawned)
        self.spawned[-1].exits()
        self.clock.advance(FIRST_DELAY_SECONDS)
        self.assertEqual(len(self.spawned), begun + 1)

    def test_cannotStart(self) -> None:
        """One that cannot be started is tried again."""
        self.fails = 1
        self.spawned[1].exits()
        self.clock.advance(FIRST_DELAY_SECONDS)
        self.assertEqual(len(self.spawned), 2)
        self.clock.advance(2 * FIRST_DELAY_SECONDS)
        self.assertEqual([p.number for p in self.spawned], [1, 2, 2])

    def test_linkGone(self) -> None:
        """A worker whose link ends is killed, and is given no connection."""
        self.spawned[0].end.close()
        self.step()
        self.assertTrue(self.spawned[0].was_killed)
        self.connect()
        self.assertEqual(self.counts(), [0, 1])

    def test_silent(self) -> None:
        """A worker that says nothing for long is killed, with its connections."""
        self.connect()
        self.clock.pump([LOOK_SECONDS] * int(SILENT_SECONDS / LOOK_SECONDS))
        self.say(self.spawned[1], WorkerLoad())
        self.assertFalse(self.spawned[0].was_killed)
        self.clock.advance(LOOK_SECONDS)
        self.assertTrue(self.spawned[0].was_killed)
        self.assertFalse(self.spawned[1].was_killed)
        self.assertEqual(self.counts(), [0, 0])
        self.assertEqual(self.group.connections, set())

    def test_ownerWasStopped(self) -> None:
        """After the owner itself has slept, nobody is killed before it has read."""
        self.clock.advance(10 * SILENT_SECONDS)
        for process in self.spawned:
            self.say(process, WorkerLoad())
        self.clock.advance(LOOK_SECONDS)
        self.assertFalse(any(process.was_killed for process in self.spawned))

    def test_none(self) -> None:
        """While there is no worker the owner has the connections itself."""
        for process in self.spawned[:]:
            process.exits()
        peer = self.connect()
        self.assertEqual(self.counts(), [0, 0])
        self.assertEqual(self.hub.connection_count(), 1)
        peer.close()
        self.step()

    def test_stop(self) -> None:
        """They are told to stop, and waited for; nobody is started again."""
        stopped = self.workers.stop()
        self.step()
        for process in self.spawned:
            kinds = [frame.kind for frame in process.read()]
            self.assertEqual(kinds, [Kind.START, Kind.STOP])
            self.assertNoResult(stopped)
            process.exits("exit status 0")
        self.successResultOf(stopped)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertFalse(any(p.was_killed for p in self.spawned))

    def test_stopLate(self) -> None:
        """One that does not end in time is killed."""
        stopped = self.workers.stop()
        self.spawned[0].exits("exit status 0")
        self.clock.advance(STOP_SECONDS)
        self.assertTrue(self.spawned[1].was_killed)
        self.spawned[1].exits()
        self.successResultOf(stopped)

    def test_stopWhileDown(self) -> None:
        """One that is about to be started again is not."""
        self.spawned[0].exits()
        stopped = self.workers.stop()
        self.spawned[1].exits("exit status 0")
        self.successResultOf(stopped)
        self.clock.advance(MAX_DELAY_SECONDS)
        self.assertEqual(len(self.spawned), 2)

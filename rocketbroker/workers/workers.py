# -*- test-case-name: tests.workers.test_workers -*-
"""The workers of an owner: the choice of one for a connection, restarts, and the stop.

A worker that ends before the stop is started again, at once and then ever later if it
ends again and again. Its connections are gone: clients connect anew, and get to another
worker, or to the new one. While there is no worker the owner serves connections itself.

A worker gets connections once it serves, which it says by its first LOAD. While all are
starting the owner holds what it accepts, and then gives each its share: connections
live long, and all clients of a broker that was started anew come in its first second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from socket import socket
from typing import TYPE_CHECKING, Final, Protocol, final

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.hub import Hub
from rocketbroker.workers.hello import WorkerLoad, WorkerSettings
from rocketbroker.workers.link import LinkStream, link_pair
from rocketbroker.workers.link_frames import Kind
from rocketbroker.workers.lock_watch import LOCK_LOOK_SECONDS, LockWatch
from rocketbroker.workers.owner_link import WorkerLink

if TYPE_CHECKING:
    # A worker, which imports this to say what it is, has no broker in its memory.
    from rocketbroker.workers.approvals import Approvals

#: How long after its end a worker is started again, the first time and at the most:
#: twice as long after each start that was in vain.
FIRST_DELAY_SECONDS: Final = 0.1
MAX_DELAY_SECONDS: Final = 5.0

#: A worker that has run for so long was no start in vain: it has come to serve.
STEADY_SECONDS: Final = 1.0

#: How long workers may take to end after STOP: what they give clients, and their exit.
STOP_SECONDS: Final = 5.0

#: A worker that has said nothing for so long, though it says how it does every second,
#: hangs, and its clients with it: it is killed. No machine is so busy elsewhere.
SILENT_SECONDS: Final = 30.0

#: How long connections wait for workers that start; then the owner serves them, or the
#: workers that do. Clients wait 3 s for an answer, as a rule.
HOLD_SECONDS: Final = 2.5

#: How often that is looked at.
LOOK_SECONDS: Final = 5.0

#: A worker that is busier than the least busy one by so much of a core gets no new
#: connection. Less than that is the noise of a second.
BUSIER: Final = 0.25


class WorkerProcess(Protocol):
    """The process of a worker."""

    @property
    def pid(self) -> int:
        """Its number."""

    def kill(self) -> None:
        """End it, by SIGKILL; nothing if it has ended."""


class Spawn(Protocol):
    """Starts the process of a worker."""

    def __call__(
        self, number: int, end: socket, ended: Callable[[str], object]
    ) -> WorkerProcess:
        """Start it.

        @param number: of the worker, from 1.
        @param end: the worker's end of the link; the caller closes its own copy.
        @param ended: called once, with how it ended.
        """


@final
class WorkerSlot:
    """One worker after the other, under one number.

    @ivar number: from 1.
    @ivar link: to the one that runs; C{None} while there is none.
    @ivar process: the one that has not ended; C{None}: none.
    @ivar restarts: how many were started in place of another.
    @ivar lost: the connections of the last one that ended.
    @ivar vain: how many in a row have ended soon.
    @ivar before: what those before have said of themselves last, summed up.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.link: WorkerLink | None = None
        self.process: WorkerProcess | None = None
        self.restarts = 0
        self.lost = 0
        self.vain = 0
        self.started_at = 0.0
        self.call: IDelayedCall | None = None
        self.before = WorkerLoad()

    @property
    def load(self) -> WorkerLoad:
        """What it has said of itself last."""
        return self.link.load if self.link is not None else WorkerLoad()

    @property
    def connections(self) -> int:
        """How many connections it was given and has."""
        return len(self.link.sockets) if self.link is not None else 0


@final
class Workers:
    """The workers of an owner.

    @ivar slots: one for each.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        hub: Hub,
        settings: WorkerSettings,
        size: int,
        spawn: Spawn,
        approvals: Approvals | None = None,
        lock_watch: LockWatch | None = None,
    ) -> None:
        """
        @param size: how many workers.
        @param approvals: lets them append; None: they may not.
        @param lock_watch: of the store that they join.
        """
        self.slots: Sequence[WorkerSlot] = [WorkerSlot(n + 1) for n in range(size)]
        self._clock = clock
        self._hub = hub
        self._settings = settings
        self._spawn = spawn
        self._approvals = approvals
        self._ids = count(1)
        self._stopping: Deferred[None] | None = None
        self._kill: IDelayedCall | None = None
        self._watch: IDelayedCall | None = None
        self._looked_at = 0.0
        self._lock_watch = lock_watch
        self._lock_look: IDelayedCall | None = None
        self._held: list[tuple[socket, ConnectionGroup, str, int]] = []
        self._hold: IDelayedCall | None = None

    def start(self) -> None:
        """Start all."""
        for slot in self.slots:
            self._begin(slot)
        self._looked_at = self._clock.seconds()
        self._watch = self._clock.callLater(LOOK_SECONDS, self._kill_silent)
        if self._lock_watch is not None:
            self._look_at_lock(self._lock_watch)

    def _look_at_lock(self, watch: LockWatch) -> None:
        """Kill a worker that hangs with the append lock."""
        self._lock_look = self._clock.callLater(
            LOCK_LOOK_SECONDS, self._look_at_lock, watch
        )
        heard = {
            slot.process.pid: slot.link.heard_at
            for slot in self.slots
            if slot.process is not None and slot.link is not None
        }
        watch.look(heard)

    def _kill_silent(self) -> None:
        """Kill those that hang.

        An owner that was stopped for long itself has not read yet what they have said.
        """
        self._watch = self._clock.callLater(LOOK_SECONDS, self._kill_silent)
        now = self._clock.seconds()
        was_late = now - self._looked_at > 2 * LOOK_SECONDS
        self._looked_at = now
        if was_late:
            return
        latest = now - SILENT_SECONDS
        for slot in self.slots:
            if slot.link is not None and slot.link.heard_at < latest:
                self._log.error(
                    "Worker {number} has said nothing for {seconds} s; it is killed.",
                    number=slot.number,
                    seconds=int(SILENT_SECONDS),
                )
                slot.link.abort()

    def hand_over(
        self, sock: socket, group: ConnectionGroup, host: str, port: int
    ) -> None:
        """Let the worker with the least to do have a connection."""
        held = self._held
        if self._is_starting() and (held or self._least_loaded() is None):
            held.append((sock, group, host, port))
            if self._hold is None:
                self._hold = self._clock.callLater(HOLD_SECONDS, self._give_held)
            return
        self._give(sock, group, host, port)

    def _give(self, sock: socket, group: ConnectionGroup, host: str, port: int) -> None:
        link = self._least_loaded()
        if link is None:
            self._hub.adopt(sock, group, host, port)
        else:
            link.hand_over(sock, group, host, port)

    def _is_starting(self) -> bool:
        """Whether a worker will serve soon."""
        links = [slot.link for slot in self.slots if slot.link is not None]
        return not all(link.serves for link in links)

    def _began(self) -> None:
        """A worker serves, or has ended before it did."""
        if not self._is_starting():
            self._give_held()

    def _give_held(self) -> None:
        """Let workers have the connections that were held for them; the owner, if none
        serves."""
        if self._hold is not None and self._hold.active():
            self._hold.cancel()
        self._hold = None
        held, self._held = self._held, []
        for connection in held:
            self._give(*connection)

    def _least_loaded(self) -> WorkerLink | None:
        """Of those that serve, and are not much busier than another, the one with the
        fewest connections."""
        every = [slot.link for slot in self.slots if slot.link is not None]
        links = [link for link in every if link.serves]
        if not links:
            return None
        most = min(link.load.busy for link in links) + BUSIER
        quiet = [link for link in links if link.load.busy <= most]
        return min(quiet, key=lambda link: len(link.sockets))

    def _begin(self, slot: WorkerSlot) -> None:
        slot.call = None
        ours, theirs = link_pair()
        stream = LinkStream(ours)
        try:
            slot.process = process = self._spawn(
                slot.number, theirs, lambda how: self._ended(slot, process, how)
            )
        except OSError as error:
            stream.close()
            self._log.error(
                "Worker {number} cannot be started: {error}.",
                number=slot.number,
                error=error,
            )
            self._again(slot)
            return
        finally:
            theirs.close()
        slot.started_at = self._clock.seconds()
        slot.link = link = WorkerLink(
            self._clock,
            self._hub,
            stream,
            f"worker {slot.number}",
            self._ids,
            lambda: self._link_gone(slot, process),
        )
        link.began = self._began
        link.tell(Kind.START, self._settings.to_json())
        if self._lock_watch is not None:
            self._lock_watch.started(process.pid)
        if self._approvals is not None:
            self._approvals.joined(link)
        self._log.info(
            "Worker {number} is process {pid}.", number=slot.number, pid=process.pid
        )

    def _link_gone(self, slot: WorkerSlot, process: WorkerProcess) -> None:
        """A worker without a link is of no use."""
        if slot.link is not None and self._approvals is not None:
            self._approvals.left(slot.link)
        if slot.link is not None:
            slot.before = slot.before.and_then(slot.link.load)
            slot.lost = slot.link.lost
            slot.link = None
            self._began()
        if self._stopping is None:
            process.kill()

    def _ended(self, slot: WorkerSlot, process: WorkerProcess, how: str) -> None:
        """A process has ended."""
        slot.process = None
        if self._lock_watch is not None:
            self._lock_watch.ended(process.pid)
        if slot.link is not None:
            slot.link.abort()
        if self._approvals is not None:
            self._approvals.ended()
        if self._stopping is not None:
            self._look()
            return
        self._log.error(
            "Worker {number} (process {pid}) ended: {how}; its {lost} connections are "
            "closed.",
            number=slot.number,
            pid=process.pid,
            how=how,
            lost=slot.lost,
        )
        self._again(slot)

    def _again(self, slot: WorkerSlot) -> None:
        """Start it again, later."""
        if self._clock.seconds() - slot.started_at >= STEADY_SECONDS:
            slot.vain = 0
        delay = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** min(slot.vain, 10))
        slot.vain += 1
        slot.restarts += 1
        slot.call = self._clock.callLater(delay, self._begin, slot)

    def stop(self) -> Deferred[None]:
        """Let all give clients what was sent to them, and end; fires when they have."""
        if self._stopping is not None:
            return succeed(None)
        stopped: Deferred[None] = Deferred()
        self._stopping = stopped
        for call in (self._watch, self._lock_look, self._hold):
            if call is not None:
                call.cancel()
        for sock, *_ in self._held:
            sock.close()
        self._held.clear()
        for slot in self.slots:
            if slot.call is not None:
                slot.call.cancel()
                slot.call = None
            if slot.link is not None:
                slot.link.tell(Kind.STOP)
        self._kill = self._clock.callLater(STOP_SECONDS, self._kill_all)
        self._look()
        return stopped

    def _kill_all(self) -> None:
        for slot in self.slots:
            if slot.process is not None:
                self._log.warn(
                    "Worker {number} did not stop in time; it is killed.",
                    number=slot.number,
                )
                slot.process.kill()

    def _look(self) -> None:
        """Fire when all have ended."""
        if self._stopping is None or any(slot.process for slot in self.slots):
            return
        if self._kill is not None and self._kill.active():
            self._kill.cancel()
        if not self._stopping.called:
            self._stopping.callback(None)

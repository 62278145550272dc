# -*- test-case-name: tests.workers.test_workers -*-
"""All workers of an owner: which gets a connection, restarts, and the stop.

A worker that ends before the stop is started again, at once and then ever later if it
ends again and again. Its connections are gone: clients connect anew, and get to another
worker, or to the new one. While there is no worker the owner serves connections itself.
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
from rocketbroker.workers.link import LinkStream, link_pair
from rocketbroker.workers.link_frames import Kind
from rocketbroker.workers.owner_link import WorkerLink
from rocketbroker.workers.start import WorkerLoad, WorkerSettings

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
    @ivar link: to the one that runs; L{None} while there is none.
    @ivar process: the one that has not ended; L{None}: none.
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
    ) -> None:
        """
        @param size: how many workers.
        @param approvals: lets them append; None: they may not.
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

    def start(self) -> None:
        """Start all."""
        for slot in self.slots:
            self._begin(slot)
        self._looked_at = self._clock.seconds()
        self._watch = self._clock.callLater(LOOK_SECONDS, self._kill_silent)

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
        link = self._least_loaded()
        if link is None:
            self._hub.adopt(sock, group, host, port)
        else:
            link.hand_over(sock, group, host, port)

    def _least_loaded(self) -> WorkerLink | None:
        """Of those that are not much busier than another the one with the fewest
        connections."""
        links = [slot.link for slot in self.slots if slot.link is not None]
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
        link.tell(Kind.START, self._settings.to_json())
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
        if self._stopping is None:
            process.kill()

    def _ended(self, slot: WorkerSlot, process: WorkerProcess, how: str) -> None:
        """A process has ended."""
        slot.process = None
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
        if self._watch is not None:
            self._watch.cancel()
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

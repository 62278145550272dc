# -*- test-case-name: tests.workers.test_worker -*-
"""A worker: a hub with the connections of clients, and the link to the owner.

It ends when the owner is gone or says STOP; after STOP it first gives clients what was
sent to them, for a bounded time.
"""

from __future__ import annotations

from collections.abc import Callable
from socket import socket
from time import sleep
from typing import Final, Protocol, final

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from rocketbroker.config.store import StoreOptions
from rocketbroker.config.tls import TlsOptions
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.interfaces import HubReactor
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.tls_port import TlsPort
from rocketbroker.store.shared_positions import AsWords, in_words
from rocketbroker.store.sharing.joined_store import JoinedStore
from rocketbroker.workers.hello import WorkerLoad, WorkerSettings
from rocketbroker.workers.link import LinkStream
from rocketbroker.workers.link_frames import Kind, LinkFrame, link_frame
from rocketbroker.workers.link_messages import (
    read_allowance,
    read_pulls,
    read_queue,
    read_route,
)
from rocketbroker.workers.relay import OwnerRelay
from rocketbroker.workers.worker_pulls import OwnPulls
from rocketbroker.workers.worker_sends import OwnSends

#: How often a worker says how it does.
LOAD_SECONDS: Final = 1.0

#: How long clients may take after STOP until they have taken what was sent to them.
GRACE_SECONDS: Final = 3.0


class Usage(Protocol):
    """What this process takes of the machine."""

    def cpu_seconds(self) -> float:
        """All its time on cores."""

    def resident_bytes(self) -> int:
        """Its memory."""


def no_tls(options: TlsOptions) -> None:
    """There is none, whatever the options say."""


@final
class Worker:
    """A worker: its hub, its link to the owner, and the requests that it serves.

    @ivar hub: has the connections.
    @ivar table: the responders of the worker itself; all other requests are relayed.
    @ivar group: the connections of clients.
    @ivar relay: the link.
    @ivar own_sends: what it appends itself.
    @ivar own_pulls: the pulls that it answers itself.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: HubReactor,
        sock: socket,
        open_files: OpenFiles,
        wall_ms: Callable[[], int],
        usage: Usage,
        ended: Callable[[], object],
        tls_of: Callable[[TlsOptions], TlsPort | None] = no_tls,
        as_words: AsWords = in_words,
    ) -> None:
        """
        @param sock: the worker's end of the link.
        @param open_files: opens the files of the store.
        @param wall_ms: the time of day, in ms.
        @param ended: called once, when nothing is left to do.
        @param tls_of: what clients speak TLS with, as the owner's settings say.
        @param as_words: shows it what it shares with the owner.
        """
        self.hub = Hub(reactor, sleep=sleep)
        self.table = ResponderTable()
        clock: object = reactor
        self.group = ConnectionGroup(
            clock,  # type: ignore[arg-type]  # a reactor tells the time, too
            self.table,
            ConnectionLimits(),
            self.hub.turns,
        )
        self._reactor = reactor
        self._usage = usage
        self._ended = ended
        self._tls_of = tls_of
        self._has_ended = False
        self._cpu_before = usage.cpu_seconds()
        self._said_at = reactor.seconds()
        self._calls: list[IDelayedCall] = []
        self.relay = OwnerRelay(
            self.hub, self.group, LinkStream(sock), self._told, self._end
        )

        def join(options: StoreOptions, host: bytes) -> JoinedStore:
            return JoinedStore(open_files.files, options, wall_ms, host, as_words)

        self.own_sends = OwnSends(
            reactor, join, wall_ms, self.hub, self.group, self.relay
        )
        self.own_pulls = OwnPulls(reactor, open_files, self.hub, self.relay)
        self.relay.pulls = self.own_pulls

    def _told(self, frame: LinkFrame) -> None:
        """The owner says something that concerns the worker itself."""
        if frame.kind == Kind.START:
            settings = WorkerSettings.from_json(frame.payload)
            self.group.limits = settings.limits
            self.group.tls = self._tls_of(settings.tls)
            self.hub.buffers.limit = settings.buffer_bytes
            self._say_load()
        elif frame.kind == Kind.ALLOW:
            self.own_sends.allow(read_allowance(frame.payload))
        elif frame.kind == Kind.QUEUE:
            self.own_sends.approve(read_queue(frame.payload))
        elif frame.kind == Kind.PULLS:
            self.own_pulls.allow(read_pulls(frame.payload))
        elif frame.kind == Kind.ROUTE:
            self.own_pulls.route(read_route(frame.payload))
        elif frame.kind == Kind.WAKE:
            self.own_pulls.woken(frame.payload)
        elif frame.kind == Kind.STOP:
            self._stop()

    def load(self) -> WorkerLoad:
        """How it does."""
        counts, usage = self.group.counts, self._usage
        cpu_seconds, now = usage.cpu_seconds(), self._reactor.seconds()
        # The first time is not a second after the start: it says nothing.
        elapsed = max(LOAD_SECONDS, now - self._said_at)
        busy = (cpu_seconds - self._cpu_before) / elapsed
        self._cpu_before, self._said_at = cpu_seconds, now
        return WorkerLoad(
            connections=self.hub.connection_count(),
            frames_in=self.relay.frames_relayed,
            sends=self.own_sends.appended,
            pulls=self.own_pulls.answered,
            held=self.own_pulls.held,
            bytes_in=counts.bytes_in,
            bytes_out=counts.bytes_out,
            cpu_seconds=cpu_seconds,
            resident_bytes=usage.resident_bytes(),
            pauses=counts.pauses,
            busy=busy,
        )

    def _say_load(self) -> None:
        self.own_sends.let_go()
        self.own_pulls.let_go()
        self.relay.tell(link_frame(Kind.LOAD, 0, self.load().to_json()))
        self._calls = [self._reactor.callLater(LOAD_SECONDS, self._say_load)]

    def _stop(self) -> None:
        """Close all connections when all is sent; end then, or when it takes too
        long."""
        for connection in list(self.group.connections):
            connection.close()
        self._calls.append(self._reactor.callLater(GRACE_SECONDS, self._end))
        self.group.when_empty().addCallback(lambda _: self._end())

    def _end(self) -> None:
        """Close all that is left."""
        if self._has_ended:
            return
        self._has_ended = True
        for call in self._calls:
            if call.active():
                call.cancel()
        self.own_sends.close()
        self.own_pulls.close()
        self.relay.abort()
        self.hub.shut()
        self._ended()

# -*- test-case-name: tests.remoting.test_hub -*-
"""The hub: all data connections behind one epoll of our own, served in turns.

The problem
===========

A reactor charges some ten microseconds for each socket that is ready: a lookup, a
logging context, a method call or two, then the same again for the write. A broker that
answers a hundred thousand sends a second has less than that for all of its work.

The way
=======

The hub keeps the sockets in an epoll that the reactor sees as one single descriptor.
When that is readable, one I{turn} runs:
  1. ask the epoll which sockets are ready. They have the first half of the turn, those
     that were left by earlier turns the second: so a light client is served in the turn
     that brings its request, whoever waits;
  2. receive once from each, C{RECEIVE_BYTES} at most (C{recv} takes its buffer before
     it knows how much there is, and beyond 128 KiB the allocator asks the kernel for
     pages each time, at ten times the price);
  3. cut the bytes into frames and hand each to its responder at once: a hot one is
     found by one look-up of the header's first bytes, all others go the general way.
     A connection that has had C{CONNECTION_SECONDS} goes to the end of those left, with
     its further frames, and is not received from until they are done: who asks for too
     much waits for it himself. After C{MAX_SECONDS} all others are left, too;
  4. call the functions registered for the end of turns: the broker appends all sends
     of the turn at once, and queues the answers;
  5. give each connection everything queued for it in one C{send}, or C{sendmsg}: large
     bodies, views of the log, go out from where they are, or are copied then.

So one wake-up costs two system calls per connection, however many requests it carried,
and nothing is allocated per message but the slices of its header and body.

A turn has a price of its own, that of some ten messages: all its code has left the
processor's cache since the one before, and slaves are sent what it appended. Where many
clients wait for one answer each, those that were answered first ask again while others
are still being answered, and would get a turn for a handful. So when less than half of
the connections just answered are ready, the turn waits C{GATHER_SECONDS}, once, for the
others.

Invariants
==========

  - A turn does not raise: the reactor would drop the descriptor, and with it all
    connections. Whatever a responder raises is answered, logged, and concerns that
    request only.
  - A connection that is closed, congested or waits for memory (C{halted}) takes no
    further frame, also not from bytes that were received before.
  - Bytes of an unfinished frame lie in one bytearray that grows in place and is copied
    once when the frame is whole; joining at each read would cost the square of its
    size. Memory is taken for bytes that a peer sends, never for those it announces.
  - An unsent rest is kept as a view and sent first. It is copied when it is less than
    half of what the view keeps in memory.
  - What waits in the connections has one budget: L{Buffers}.

Rejected: one reader per socket at the reactor (the price above); edge-triggered epoll
(it saves nothing when each turn reads once, and loses wake-ups when it does not read to
the end); a thread of its own (each answer would pay two switches of the interpreter's
lock); C{sendmsg} of many small pieces (dearer than joining them below 64 KiB).
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from socket import socket
from time import sleep
from typing import ClassVar, Final, cast, final

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from zope.interface import classImplements

from rocketbroker.config.remoting import MAX_BUFFERED_BYTES, RemotingServerOptions
from rocketbroker.remoting.buffers import LOOK_SECONDS, Buffers
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.hubconnection import (
    GONE,
    IN,
    OUT,
    ByteSocket,
    HubConnection,
    serve,
)
from rocketbroker.remoting.interfaces import HubReactor, ITurns
from rocketbroker.remoting.request_expiry import SWEEP_SECONDS, refuse_overdue
from rocketbroker.remoting.sockets import ProcessLink, RelayedSocket, Sockets
from rocketbroker.remoting.tls_socket import EnforcingSocket
from rocketbroker.remoting.turns import ANSWERS, TURN_END, Turns

#: Connections served in one turn, at most; other readers of the reactor wait for them.
MAX_EVENTS: Final = 512

#: After an answer to so many connections, their next requests are waited for: for so
#: long, and only if the answers have just gone out. Fewer would not miss the turns.
GATHER_FROM: Final = 16
GATHER_SECONDS: Final = 0.0001
GATHER_WITHIN: Final = 0.0005

#: Of the connections that were closed for others in this time the log has one line, in
#: which so many are named.
LOG_SECONDS: Final = 1.0
MAX_NAMED: Final = 3

#: After so long a turn takes no further frame: the rest is the next turn's. Timers and
#: answers of other requests are not to wait for hundreds of expensive requests. What is
#: done at the end of a turn, for all that it brought, takes about as long again.
MAX_SECONDS: Final = 0.008

#: After so long the next connection has its turn. Sixty-four kilobytes of small sends
#: take less, so that only dear requests are ever cut off.
CONNECTION_SECONDS: Final = 0.002


@final
class Hub:
    """One epoll for all data connections.

    @ivar now: the time of this turn, by the reactor.
    @ivar seconds: tells the time.
    @ivar latest: when the connection that is served now has had its time.
    @ivar buffers: the budget of memory for what waits in the connections.
    @ivar sockets: of all connections, and the links of those that are relayed.
    @ivar turn_count: how many turns there were.
    @ivar in_turn: whether one is under way.
    @ivar sent_now: to how many connections it has sent before its end.
    """

    _log: ClassVar[Logger] = Logger()

    def __init__(
        self,
        reactor: HubReactor,
        buffer_bytes: int = MAX_BUFFERED_BYTES,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """
        @param reactor: sees the hub as one reader, as soon as there is a connection.
        @param buffer_bytes: the budget of memory for what waits in the connections.
        @param sleep: lets so many seconds pass; C{None}: turns wait for nobody.
        """
        self._sleep = sleep
        self.sent_now = self._answered = 0
        self._answered_at = 0.0
        self.buffers = Buffers(buffer_bytes, self._schedule)
        self.seconds = reactor.seconds
        self.now = self.latest = reactor.seconds()
        self.turn_count = 0
        self.turns = Turns()
        self._reactor = reactor
        self.sockets = Sockets()
        self._connections: dict[int, HubConnection] = {}
        self._with_output: list[HubConnection] = []
        self._queue: deque[HubConnection] = deque()
        self._longest = 0.0
        self._work: int | str = ANSWERS
        self._groups: list[ConnectionGroup] = []
        self.in_turn = self._flushing = self._reading = False
        self._scheduled: IDelayedCall | None = None
        self._watch: IDelayedCall | None = None
        self._closed: list[str] = []
        self._told_at = -inf
        self._sweep_call: IDelayedCall | None = None

    def watch_turn_end(self, callback: Callable[[], None]) -> None:
        """Call C{callback} at the end of each turn, before the answers are written."""
        self.turns.watch_turn_end(callback)

    def connection_count(self) -> int:
        """How many connections are open, of all ports."""
        return len(self._connections)

    def adopt(
        self, sock: socket, group: ConnectionGroup, host: str, port: int
    ) -> HubConnection:
        """Serve a connected socket from now on.

        @param host: the address of the other side.
        @param port: the port of the other side.
        """
        sock.setblocking(False)
        self.sockets.register(sock.fileno())
        if group.tls is None or not group.tls.is_enforcing:
            return self._join(sock, group, host, port)
        enforcing = EnforcingSocket(sock)
        enforcing.owner = connection = self._join(enforcing, group, host, port)
        return connection

    def relay(
        self, sock: RelayedSocket, group: ConnectionGroup, host: str, port: int
    ) -> HubConnection:
        """Serve a connection that another process has.

        That process sees to it whether it is idle.
        """
        self.sockets.relay(sock)
        connection = self._join(sock, group, host, port)
        connection.is_watched = False
        return connection

    def _join(
        self, sock: ByteSocket, group: ConnectionGroup, host: str, port: int
    ) -> HubConnection:
        self.now = self._reactor.seconds()
        connection = HubConnection(self, sock, group, host, port)
        self._connections[sock.fileno()] = connection
        if group not in self._groups:
            self._groups.append(group)
        group.joined(connection)
        self.watch()
        return connection

    def watch(self) -> None:
        """There is a socket or a link."""
        if not self._reading:
            self._reading = True
            self._reactor.addReader(self)

    # Called by the reactor.

    def fileno(self) -> int:
        """The descriptor that is readable when any connection is ready."""
        return self.sockets.fileno()

    def logPrefix(self) -> str:
        """How log lines of a turn begin."""
        return "hub"

    def doRead(self) -> None:
        """At least one connection is ready."""
        self.turn()

    def connectionLost(self, reason: object) -> None:
        """The reactor stops: close all."""
        self.shut()

    # Turns.

    def turn(self) -> None:
        """One turn over all connections that are ready now."""
        self.in_turn = True
        self.turn_count += 1
        self.now = now = self._reactor.seconds()
        if self.buffers.is_short and self.buffers.release():
            self._schedule()
        find = self._connections.get
        fresh: deque[HubConnection] = deque()
        events = self.sockets.poll(0, MAX_EVENTS)
        if self._sleep and 0 < 2 * len(events) < self._answered:
            events = self._gather(self._sleep, events)
            now = self.now
        for descriptor, event in events:
            ready = find(descriptor)
            if ready is None:
                self._hear(descriptor, event, fresh)
                continue
            if event & IN:
                if not ready.queued:
                    ready.queued = True
                    fresh.append(ready)
            elif event & GONE:
                ready.lost()
            if event & OUT:
                self._with_output.append(ready)
        self._longest = 0.0
        self._work = ANSWERS
        served, queue = now, self._queue
        older = bool(queue)
        if fresh:
            left: deque[HubConnection] = deque()
            served = self._serve(fresh, left, now, now + MAX_SECONDS / 2)
            queue += fresh
            queue += left
        if queue and (older or served < now + MAX_SECONDS):
            served = self._serve(queue, queue, served, now + MAX_SECONDS)
        self.turns.end()
        ended = self.seconds()
        self.in_turn = False
        self._flush()
        flushed = self.seconds()
        elapsed = flushed - now
        for group in self._groups:
            group.table.turn_ended(elapsed)
        if queue:
            self._schedule()
        if self.buffers.is_short and self._watch is None:
            self._look()
        if self._sweep_call is None and (queue or self.buffers.askers):
            waits = [group.table.least_wait for group in self._groups]
            self._sweep_at(now + min(waits))
        work = self._work
        if max(ended - served, flushed - ended) > served - now:
            work = TURN_END if ended - served > flushed - ended else ANSWERS
        self.turns.took(work, elapsed, flushed)

    def _gather(
        self, sleep: Callable[[float], object], events: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Wait a little for the connections just answered, unless requests wait.

        @param events: which sockets are ready.
        @return: which are ready then.
        """
        answered, self._answered = self._answered, 0
        since = self.now - self._answered_at
        if answered < GATHER_FROM or since > GATHER_WITHIN or self._queue:
            return events
        sleep(GATHER_SECONDS)
        self.now = self.seconds()
        return self.sockets.poll(0, MAX_EVENTS)

    def _hear(self, descriptor: int, event: int, fresh: deque[HubConnection]) -> None:
        """Let a link read; what it brought for connections is fresh."""
        link = self.sockets.links.get(descriptor)
        if link is None:
            return
        try:
            for connection in link.ready(event):
                if not connection.queued:
                    connection.queued = True
                    fresh.append(connection)
        except Exception:
            self._failed(link)

    def _serve(
        self,
        queue: deque[HubConnection],
        left: deque[HubConnection],
        time: float,
        latest: float,
    ) -> float:
        """Serve one connection at least, and others until C{latest}.

        @param left: gets those that have had their time and have frames left.
        @return: when it ended.
        """
        now, seconds = self.now, self.seconds
        while True:
            connection = queue.popleft()
            connection.queued = False
            if not connection.halted:
                connection.last_moved = now
                self.latest = time + CONNECTION_SECONDS
                try:
                    if serve(connection):
                        connection.queued = True
                        left.append(connection)
                except Exception:
                    self._failed(connection)
                after = seconds()
                if after - time > self._longest:
                    self._longest = after - time
                    self._work = connection.last_code
                time = after
            if not queue or time >= latest:
                return time

    def within(self, work: Callable[[], object]) -> None:
        """Do work of a timer that answers requests, as a turn of its own."""
        if self.in_turn:
            work()
            return
        self.in_turn = True
        self.now = self._reactor.seconds()
        try:
            work()
        finally:
            self.turns.end()
            self.in_turn = False
            self._flush()

    def _failed(self, which: HubConnection | ProcessLink) -> None:
        """A mistake of ours; whatever it was, it stays with this connection."""
        self._log.failure("Serving {peer} failed; it is closed.", peer=which.peer)
        which.abort()

    def _flush(self) -> None:
        connections, self._with_output = self._with_output, []
        ends: list[HubConnection | ProcessLink] = [
            *connections,
            *self.sockets.links.values(),
        ]
        if not ends and not self.sent_now:
            return
        self._flushing = True
        for each in ends:
            try:
                each.flush()
            except Exception:
                self._failed(each)
        self._flushing = False
        self._answered, self.sent_now = len(connections) + self.sent_now, 0
        self._answered_at = self.seconds()

    def _soon(self) -> None:
        self._scheduled = None
        if self._queue or self.buffers.is_short:
            self.turn()
        else:
            self.now = self._reactor.seconds()
            self._flush()

    def _schedule(self) -> None:
        if self._scheduled is None:
            self._scheduled = self._reactor.callLater(0, self._soon)

    def _look(self) -> None:
        """While memory is short, close what keeps it and does not move."""
        buffers = self.buffers
        self._watch = None
        now = self._reactor.seconds()
        closed = self._closed
        stalled = buffers.stalled(self._connections.values(), now)
        waiting = buffers.waiting
        for holder in stalled:
            assert isinstance(holder, HubConnection)
            if not buffers.is_short:
                break
            closed.append(f"{holder.peer} ({holder.kept + holder.counted} bytes)")
            holder.group.counts.stalled += 1
            holder.abort()
            buffers.release()
        if closed and (now >= self._told_at + LOG_SECONDS or not buffers.is_short):
            self._told_at, self._closed = now, []
            self._log.warn(
                "Closed {count} connections that kept memory, for which {waiting} "
                "wait, and moved next to nothing: {peers}.",
                count=len(closed),
                waiting=waiting,
                peers=", ".join(closed[:MAX_NAMED]),
            )
        if buffers.is_short:
            for each in self._connections.values():
                if each.paused:
                    each.last_moved = now  # It is not idle: we are.
            self._watch = self._reactor.callLater(LOOK_SECONDS, self._look)
        else:
            buffers.rest()

    # Requests that wait too long.

    def _sweep_at(self, time: float) -> None:
        """Look for overdue requests at C{time}, if there can be any then."""
        if time < inf:
            delay = max(SWEEP_SECONDS, time - self.now)
            self._sweep_call = self._reactor.callLater(delay, self.within, self._sweep)

    def _sweep(self) -> None:
        """Answer the requests that have waited too long to be begun."""
        self._sweep_call = None
        waiting = [*self._queue, *cast(Sequence[HubConnection], self.buffers.askers)]
        if waiting:
            self._sweep_at(refuse_overdue(waiting, self.now, self.seconds))

    # Called by connections.

    def has_output(self, connection: HubConnection) -> None:
        """It has something to send, or to end: at the end of this turn, or soon."""
        self._with_output.append(connection)
        if not self.in_turn:
            self._schedule()

    def link_has_output(self) -> None:
        """A link has something to send: at the end of this turn, or soon."""
        if not self.in_turn and not self._flushing:
            self._schedule()

    def resume(self, connection: HubConnection) -> None:
        """It is not congested any more and has frames left from before."""
        if not connection.queued:
            connection.queued = True
            self._queue.append(connection)
        self._schedule()

    def rearm(self, descriptor: int, events: int) -> None:
        """Wait for C{events} on that descriptor."""
        self.sockets.rearm(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """That descriptor is about to be closed."""
        self.sockets.unregister(descriptor)
        del self._connections[descriptor]

    def shut(self) -> None:
        """Close everything, the epoll too; idempotent."""
        if self._reading:
            self._reading = False
            self._reactor.removeReader(self)
        for connection in list(self._connections.values()):
            connection.abort()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        for call in (self._watch, self._sweep_call):
            if call is not None:
                call.cancel()
        self._watch = self._sweep_call = None
        self.sockets.close()


classImplements(Hub, ITurns)


def hub_of(reactor: HubReactor, options: RemotingServerOptions) -> Hub | Turns:
    """The hub for the ports of a server; where there is no epoll, only their turns."""
    if hasattr(select, "epoll"):
        return Hub(reactor, options.rocketbroker_max_buffered_bytes, sleep)
    return Turns()

# -*- test-case-name: tests.remoting.test_response_table -*-
"""Requests of ours that wait for responses, found by opaque.

One server or client has one table for all its connections
(C{docs/facts/remoting.md} 7). The number that may wait is limited for each peer, so a
peer that answers nothing does not stop the requests to others.

Time-outs cost one timer for all: it is set to the earliest known deadline, and each
time it fires it looks through the table. It fires at most once in L{GRAIN_SECONDS}, so
ten thousand requests with ten thousand deadlines do not mean ten thousand looks.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from rocketbroker.errors import ConnectionLost, RequestTimeout, RocketbrokerError
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.command import Command

#: How late a time-out may be noticed when others were noticed just before.
GRAIN_SECONDS: Final = 0.1

#: Opaques are 32 bits, signed; ours stay positive.
_MAX_OPAQUE: Final = 0x7FFFFFFF


class TooManyRequests(RocketbrokerError):
    """As many requests to one peer as allowed wait for responses; not sent."""


@final
class WaitingRequest:
    """A request that waits for its response.

    @ivar peer: the one that it is counted for.
    @ivar connection: the connection it was sent over; C{None} while there is none.
    @ivar answer: fires with the response.
    @ivar deadline: when it fails with a time-out, by the clock.
    @ivar words: the request, for errors.
    """

    __slots__ = ("answer", "connection", "deadline", "opaque", "peer", "words")

    def __init__(
        self,
        opaque: int,
        peer: Hashable,
        answer: Deferred[Command],
        deadline: float,
        words: str,
    ) -> None:
        self.opaque = opaque
        self.peer = peer
        self.answer = answer
        self.deadline = deadline
        self.words = words
        self.connection: IConnection | None = None


@final
class ResponseTable:
    """All requests of one server or client that wait for responses.

    @ivar timeouts: how many had no response in time.
    """

    def __init__(self, clock: IReactorTime, max_pending: int) -> None:
        """
        @param clock: tells the time and calls later.
        @param max_pending: how many may wait for one peer at once; one more raises
            L{TooManyRequests}.
        """
        self._clock = clock
        self._max_pending = max_pending
        self.last_opaque = 0
        self._waiting: dict[int, WaitingRequest] = {}
        self._counts: dict[Hashable, int] = {}
        self._timer: IDelayedCall | None = None
        self.timeouts = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def next_opaque(self) -> int:
        """A number that no request of ours waits under."""
        opaque = self.last_opaque + 1
        while opaque in self._waiting:
            opaque += 1
        self.last_opaque = opaque if opaque < _MAX_OPAQUE else 0
        return opaque

    def open(self, peer: Hashable, timeout: float, words: str) -> WaitingRequest:
        """Wait for one more response.

        @param peer: the connection, or the address of one that is not made yet.
        @param timeout: in seconds.
        @param words: the request, for errors.
        @raise TooManyRequests: as many as allowed wait for this peer.
        """
        count = self._counts.get(peer, 0)
        if count >= self._max_pending:
            raise TooManyRequests(f"{words}: {count} others wait for its responses")
        self._counts[peer] = count + 1
        opaque = self.next_opaque()
        answer: Deferred[Command] = Deferred(lambda _: self._forget(opaque))
        deadline = self._clock.seconds() + timeout
        waiting = WaitingRequest(opaque, peer, answer, deadline, words)
        self._waiting[opaque] = waiting
        self._watch(deadline)
        return waiting

    def is_open(self, waiting: WaitingRequest) -> bool:
        """Whether nothing became of it so far."""
        return self._waiting.get(waiting.opaque) is waiting

    def answered(self, connection: IConnection, response: Command) -> bool:
        """A response came; False if no request on this connection waits for it."""
        waiting = self._waiting.get(response.opaque)
        if waiting is None or waiting.connection is not connection:
            return False
        self._take(response.opaque)
        waiting.answer.callback(response)
        return True

    def fail(self, waiting: WaitingRequest, error: Exception) -> None:
        """Fail one, unless something became of it already."""
        if self._take(waiting.opaque):
            waiting.answer.errback(error)

    def lost(self, connection: IConnection) -> None:
        """Fail all that wait on a connection that went away."""
        gone = [w for w in self._waiting.values() if w.connection is connection]
        for waiting in gone:
            words = f"the connection to {connection.peer} was lost: {waiting.words}"
            self.fail(waiting, ConnectionLost(words))

    def stop(self) -> None:
        """Fail all that wait, and wait for nothing more."""
        for waiting in list(self._waiting.values()):
            self.fail(waiting, ConnectionLost(f"stopped: {waiting.words}"))
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _forget(self, opaque: int) -> None:
        """Its caller does not want the response any more."""
        self._take(opaque)

    def _take(self, opaque: int) -> bool:
        """Remove one; False if it is gone already."""
        waiting = self._waiting.pop(opaque, None)
        if waiting is None:
            return False
        count = self._counts[waiting.peer] - 1
        if count:
            self._counts[waiting.peer] = count
        else:
            del self._counts[waiting.peer]
        return True

    def _watch(self, deadline: float) -> None:
        now = self._clock.seconds()
        timer = self._timer
        if timer is None or not timer.active():
            self._timer = self._clock.callLater(max(0.0, deadline - now), self._sweep)
        elif deadline < timer.getTime():
            timer.reset(max(0.0, deadline - now))

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock.seconds()
        late = [w for w in self._waiting.values() if w.deadline <= now]
        for waiting in late:
            self.timeouts += 1
            self.fail(waiting, RequestTimeout(f"no answer in time: {waiting.words}"))
        if self._waiting:
            first = min(waiting.deadline for waiting in self._waiting.values())
            self._watch(max(first, now + GRAIN_SECONDS))

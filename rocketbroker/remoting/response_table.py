# -*- test-case-name: tests.remoting.test_response_table -*-
"""Requests that wait for their answers, found by opaque; the remoting sheet, section 7.

One server or client has one table for all its connections. Time-outs cost one timer for
all: it stands at the earliest deadline it knows, and each time it fires it looks
through the table; never more often than each L{GRAIN_SECONDS}, so that ten thousand
requests with ten thousand deadlines do not mean ten thousand looks.
"""

from __future__ import annotations

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
    """As many requests as allowed wait for answers; this one was not sent."""


@final
class Waiting:
    """One request that waits.

    @ivar connection: the connection it was sent over; L{None} while there is none.
    @ivar answer: fires with the response.
    @ivar deadline: when it is given up, by the clock.
    @ivar words: what it is, for the error.
    """

    __slots__ = ("answer", "connection", "deadline", "opaque", "words")

    def __init__(
        self, opaque: int, answer: Deferred[Command], deadline: float, words: str
    ) -> None:
        self.opaque = opaque
        self.answer = answer
        self.deadline = deadline
        self.words = words
        self.connection: IConnection | None = None


@final
class ResponseTable:
    """All requests of one server or client that wait for answers.

    @ivar timeouts: how many were given up.
    """

    def __init__(self, clock: IReactorTime, most: int) -> None:
        """
        @param clock: tells the time and calls later.
        @param most: how many may wait at once; one more raises L{TooManyRequests}.
        """
        self._clock = clock
        self._most = most
        self.last_opaque = 0
        self._waiting: dict[int, Waiting] = {}
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

    def open(self, timeout: float, words: str) -> Waiting:
        """Wait for one more answer.

        @param timeout: in seconds.
        @param words: what it is that is waited for.
        @raise TooManyRequests: if as many as allowed wait.
        """
        if len(self._waiting) >= self._most:
            raise TooManyRequests(f"{self._most} requests wait for answers already")
        opaque = self.next_opaque()
        answer: Deferred[Command] = Deferred(lambda _: self._forget(opaque))
        deadline = self._clock.seconds() + timeout
        waiting = self._waiting[opaque] = Waiting(opaque, answer, deadline, words)
        self._watch(deadline)
        return waiting

    def is_open(self, waiting: Waiting) -> bool:
        """Whether nothing became of it so far."""
        return self._waiting.get(waiting.opaque) is waiting

    def answered(self, connection: IConnection, response: Command) -> bool:
        """A response came; False if nobody waits for it on this connection."""
        waiting = self._waiting.get(response.opaque)
        if waiting is None or waiting.connection is not connection:
            return False
        del self._waiting[response.opaque]
        waiting.answer.callback(response)
        return True

    def fail(self, waiting: Waiting, error: Exception) -> None:
        """Give one up, unless something became of it already."""
        if self._waiting.pop(waiting.opaque, None) is not None:
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
        self._waiting.pop(opaque, None)

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

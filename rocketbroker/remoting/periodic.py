# -*- test-case-name: tests.remoting.test_periodic -*-
"""Work that is done again and again, and that no error ends.

A C{LoopingCall} stops for ever at the first error of its function, unnoticed.
A L{PeriodicCall} logs the error, counts it, and calls again at the next period. A call
whose C{Deferred} has not fired is not begun anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.remoting.counts import Longest


@final
class PeriodicCall:
    """One function, called in periods from C{start} to C{stop}.

    @ivar name: of the work, for log and metrics: C{"scan of brokers"}.
    @ivar period: in seconds.
    @ivar runs: how many calls have begun.
    @ivar failures: how many calls have ended with an error.
    @ivar is_under_way: whether the last call has not ended.
    @ivar begun_at: when the last call began, by the clock.
    @ivar last_seconds: how long the last call that has ended took.
    @ivar longest: how long the longest calls kept the reactor.
    """

    _log = Logger()

    def __init__(
        self, clock: IReactorTime, name: str, work: Callable[[], object]
    ) -> None:
        """
        @param work: may return a C{Deferred}; the next call waits for it.
        """
        self.name = name
        self.period = 0.0
        self.runs = 0
        self.failures = 0
        self.is_under_way = False
        self.begun_at = 0.0
        self.last_seconds = 0.0
        self.longest = Longest()
        self._work = work
        self._clock = clock
        self._loop = LoopingCall(self._call)
        self._first: IDelayedCall | None = None
        self._is_first_a_period = False

    def start(self, period: float, first: float | None = None) -> None:
        """Call every C{period} seconds from now on.

        May be called again after a stop; a call of before that has not ended is waited
        for then, too.

        @param first: seconds until the first call; the period if C{None}.
        """
        self.period = period
        self._is_first_a_period = first is None
        if first == 0:
            self._begin()
        else:
            wait = period if first is None else first
            self._first = self._clock.callLater(wait, self._begin)

    def _begin(self) -> None:
        self._first = None
        # A loop of its own for each start: one whose call has not ended would go on
        # beside the new one.
        self._loop = LoopingCall(self._call)
        self._loop.clock = self._clock
        self._loop.start(self.period)

    def change(self, period: float) -> None:
        """Call every C{period} seconds instead; it may not be running.

        The next call comes a period from now; a first one with a time of its own, and
        the one after a call that has not ended, come as they would have.
        """
        loop, changed = self._loop, period != self.period
        self.period = period
        if not changed:
            return
        if self._first is not None and self._is_first_a_period:
            self._first.reset(period)
        if not loop.running:
            return
        loop.interval = period
        if loop.call is not None:
            loop.stop()
            loop.start(period, now=False)

    def _call(self) -> Deferred[object] | None:
        if self.is_under_way:
            return None
        begin = self.begun_at = self._clock.seconds()
        self.runs += 1
        self.is_under_way = True
        done = maybeDeferred(self._work).addErrback(self._failed)
        now = self._clock.seconds()
        self.longest.note(now - begin, now)
        return done.addCallback(self._ended)

    def _ended(self, _: object) -> None:
        self.is_under_way = False
        self.last_seconds = self._clock.seconds() - self.begun_at

    def _failed(self, failure: Failure) -> None:
        self.failures += 1
        self._log.failure("The {name} failed; it goes on.", failure, name=self.name)

    @property
    def running(self) -> bool:
        """Whether it is started and not stopped."""
        return self._loop.running or self._first is not None

    def stop(self) -> None:
        """Call no more. May be called at any time."""
        if self._first is not None:
            self._first.cancel()
            self._first = None
        if self._loop.running:
            self._loop.stop()

# -*- test-case-name: tests.broker.test_waiting_requests -*-
"""Requests that wait for a thread, or for slices, and are refused when that is too
long.

The other places where a request can wait are in
L{rocketbroker.remoting.request_expiry}. One object serves one family of requests
(L{rocketbroker.broker.wait_limits}). It stands before the threads and before the
slices, and looks like them, so that the parts that answer requests do not know of it;
the broker's own work goes without it.

Only what has not begun is refused, and what was refused never begins: who takes the
only element of L{_Wait.claim}, the thread or the timer, decides. A work in slices has
begun with its first step. The timer runs only while something waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from math import inf
from typing import Any, Final, TypeVar, cast, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure
from zope.interface import implementer

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.wait_limits import wait_limit
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import SystemBusy
from rocketbroker.remoting.interfaces import ISlices
from rocketbroker.remoting.request_expiry import SWEEP_SECONDS, TIMEOUT, busy_remark
from rocketbroker.wire.codes import RequestCode

T = TypeVar("T")

#: What a request waits for, as its answer says it.
THREADS: Final = "threads"
SLICES: Final = "slices"


#: The families whose requests may have to wait, each by one of its request codes:
#: administrators', ends of transactions, sends, pulls.
FAMILIES: Final = (
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.END_TRANSACTION,
    RequestCode.CONSUMER_SEND_MSG_BACK,
    RequestCode.PULL_MESSAGE,
)


class _Refused(Exception):
    """A thread has come to work that was refused."""


@final
class _Wait:
    """A request that waits to be begun.

    @ivar since: when it came.
    @ivar stage: what it waits for.
    @ivar claim: has one element until the work begins, is refused or is dropped.
    @ivar done: fires with the result.
    """

    __slots__ = ("claim", "done", "since", "stage")

    def __init__(self, since: float, stage: str) -> None:
        self.since = since
        self.stage = stage
        self.claim = [None]
        self.done: Deferred[Any] = Deferred()

    def take(self) -> bool:
        """Whether the caller is the first to come. Any thread may call it."""
        try:
            self.claim.pop()
        except IndexError:
            return False
        return True


@final
class WaitingRequests:
    """The requests of one family that wait to be begun.

    @ivar code: one request code of the family.
    @ivar limit: how long they may, in seconds.
    @ivar refused: how many were refused.
    """

    def __init__(
        self, clock: IReactorTime, settings: BrokerSettings, code: RequestCode
    ) -> None:
        """
        @param code: one request code of the family.
        """
        self.refused = 0
        self._clock = clock
        self.code = code
        self._waits: deque[_Wait] = deque()
        self._timer: IDelayedCall | None = None
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.limit = wait_limit(settings.broker, self.code)

    def size(self) -> int:
        """How many wait now."""
        return sum(bool(each.claim) for each in self._waits)

    def waiting_ms(self) -> int:
        """For how many ms the first of them has waited; 0 if none does."""
        for wait in self._waits:
            if wait.claim:
                return max(0, int((self._clock.seconds() - wait.since) * 1000))
        return 0

    def before_threads(self, in_thread: InThread) -> InThread:
        """Like C{in_thread}, but a function that waits too long is not run.

        @return: its Deferreds fail with L{SystemBusy} then.
        """

        def run(function: Callable[[], T], /) -> Deferred[T]:
            wait = self._add(THREADS)

            def begun() -> T:
                if not wait.take():
                    raise _Refused
                return function()

            in_thread(begun).addBoth(partial(self._ended, wait))
            return wait.done

        return run

    def before_slices(self, slices: ISlices) -> ISlices:
        """Like C{slices}, but a work that waits too long takes no step."""
        return _LimitedSlices(self, slices)

    def run_slices(
        self, slices: ISlices, owner: object, work: Iterator[None]
    ) -> Deferred[None]:
        """Do C{work} in slices, if its turn comes in time."""
        wait = self._add(SLICES)

        def steps() -> Generator[None]:
            if not wait.take():
                raise _Refused
            yield from work

        limited = steps()
        # Metrics show passes by the name of the work.
        cast(Any, limited).__name__ = getattr(work, "__name__", SLICES)
        slices.run(owner, limited).addBoth(partial(self._ended, wait))
        return wait.done

    def _add(self, stage: str) -> _Wait:
        wait = _Wait(self._clock.seconds(), stage)
        self._waits.append(wait)
        self._look_later()
        return wait

    def _look_later(self) -> None:
        """Look when the one that has waited for longest will be overdue."""
        if self._timer is None and self.limit < inf:
            overdue_at = self._waits[0].since + self.limit
            delay = max(SWEEP_SECONDS, overdue_at - self._clock.seconds())
            self._timer = self._clock.callLater(delay, self._look)

    def _look(self) -> None:
        """Refuse what is overdue."""
        self._timer = None
        latest = self._clock.seconds() - self.limit
        waits = self._waits
        while waits and (not waits[0].claim or waits[0].since <= latest):
            wait = waits.popleft()
            if wait.take():
                self._refuse(wait)
        if waits:
            self._look_later()

    def _refuse(self, wait: _Wait) -> None:
        self.refused += 1
        waited_ms = round((self._clock.seconds() - wait.since) * 1000)
        remark = busy_remark(TIMEOUT, waited_ms, self.size(), wait.stage)
        wait.done.errback(SystemBusy(remark))

    def _ended(self, wait: _Wait, result: object) -> None:
        """Work has ended, was dropped, or came too late."""
        wait.take()
        waits = self._waits
        while waits and not waits[0].claim:
            waits.popleft()
        if not waits and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if isinstance(result, Failure) and isinstance(result.value, _Refused):
            return
        wait.done.callback(result)


@final
class WaitingFamilies:
    """The requests of all families that wait for threads or slices.

    @ivar all: by one request code of each family, as in L{FAMILIES}.
    """

    def __init__(self, clock: IReactorTime, settings: BrokerSettings) -> None:
        self.all = {code: WaitingRequests(clock, settings, code) for code in FAMILIES}

    def family(self, code: RequestCode) -> WaitingRequests:
        """The requests of one family.

        @param code: that by which the family is known.
        """
        return self.all[code]

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        for waiting in self.all.values():
            waiting.configure(settings)


@final
@implementer(ISlices)
class _LimitedSlices:
    """Slices, before which requests of one family wait."""

    def __init__(self, waiting: WaitingRequests, slices: ISlices) -> None:
        self._waiting = waiting
        self._slices = slices

    def run(self, owner: object, work: Iterator[None]) -> Deferred[None]:
        """Do C{work} in slices, if its turn comes in time."""
        return self._waiting.run_slices(self._slices, owner, work)

    def stop(self) -> None:
        """Drop all work."""
        self._slices.stop()

# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""Work in steps, with rests between them that a stop ends."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, final

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from rocketbroker.broker.background_work import InThread

T = TypeVar("T")


@final
class Pauses:
    """The runner of work that goes in steps, with pauses between.

    @ivar is_stopped: whether no work goes on.
    """

    def __init__(self, clock: IReactorTime, in_thread: InThread) -> None:
        self.is_stopped = False
        self._clock = clock
        self._in_thread = in_thread
        self._resting: dict[Deferred[None], IDelayedCall] = {}
        self._works: set[Deferred[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None]) -> Deferred[None]:
        """Do work that asks after each step whether it goes on; fires when it is
        over."""
        done = Deferred.fromCoroutine(work)
        self._works.add(done)
        return done.addBoth(self._over, done)

    def _over(self, result: T, done: Deferred[None]) -> T:
        self._works.discard(done)
        return result

    async def run(self, step: Callable[[], T], is_cold: bool) -> T:
        """Do a step now, or in a thread if the disk may be slow."""
        return await self._in_thread(step) if is_cold else step()

    def rest(self, seconds: float = 0.0) -> Deferred[None]:
        """Leave the reactor to others for a while; not once it is stopped."""
        resting: Deferred[None] = Deferred()
        if self.is_stopped:
            resting.callback(None)
        else:
            call = self._clock.callLater(seconds, self._rested, resting)
            self._resting[resting] = call
        return resting

    def _rested(self, resting: Deferred[None]) -> None:
        del self._resting[resting]
        resting.callback(None)

    def settled(self) -> Deferred[None]:
        """Fires when the work that goes on now is over."""
        waiting: list[Deferred[None]] = []
        for work in self._works:
            over: Deferred[None] = Deferred()
            work.addBoth(_both, over)
            waiting.append(over)
        return DeferredList(waiting).addCallback(lambda _: None)

    def stop(self) -> Deferred[None]:
        """End all rests; fires when no work goes on."""
        self.is_stopped = True
        settled = self.settled()
        for resting, call in list(self._resting.items()):
            call.cancel()
            self._rested(resting)
        return settled


def _both(result: T, over: Deferred[None]) -> T:
    over.callback(None)
    return result

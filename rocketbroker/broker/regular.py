# -*- test-case-name: tests.broker.test_regular -*-
"""What a broker does again and again, whatever comes of it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger


@final
class RegularWork:
    """Calls functions regularly until it is stopped."""

    _log = Logger()

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._loops: list[LoopingCall] = []
        self._firsts: list[IDelayedCall] = []

    def every(self, first: float, period: float, work: Callable[[], object]) -> None:
        """Do C{work} after C{first} seconds and then every C{period}."""

        def guarded() -> object:
            # A loop whose work fails once would never work again.
            try:
                return work()
            except Exception:
                self._log.failure("Regular work failed; it goes on.")
                return None

        loop = LoopingCall(guarded)
        loop.clock = self._clock
        self._loops.append(loop)
        self._firsts.append(self._clock.callLater(first, loop.start, period))

    def stop(self) -> None:
        """Do nothing any more."""
        for call in self._firsts:
            if call.active():
                call.cancel()
        for loop in self._loops:
            if loop.running:
                loop.stop()

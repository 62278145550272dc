"""Reactors whose time only goes forward."""

from __future__ import annotations

import time
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.steadiness import make_steady


class Timed:
    """A reactor for which so many calls wait."""

    def __init__(self, waiting: int) -> None:
        self.seconds: Callable[[], float] = time.time
        self._waiting = waiting

    def getDelayedCalls(self) -> list[object]:
        """What waits."""
        return [object()] * self._waiting


class SteadinessTests(SynchronousTestCase):
    """L{make_steady}."""

    def test_fresh(self) -> None:
        """A reactor that has not begun takes the clock that nobody sets."""
        reactor = Timed(0)
        make_steady(reactor)
        self.assertIs(reactor.seconds, time.monotonic)

    def test_waiting(self) -> None:
        """One for which calls wait by the other clock keeps that."""
        reactor = Timed(1)
        make_steady(reactor)
        self.assertIs(reactor.seconds, time.time)

"""Reactors whose time only goes forward."""

from __future__ import annotations

import time
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.steadiness import (
    SWITCH_SECONDS,
    make_steady,
    switch_soon,
    time_timers,
)
from rocketbroker.remoting.turns import TIMERS, Turns


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


class Interpreter:
    """Tells how long a thread may hold it."""

    def __init__(self) -> None:
        self.seconds = 0.005

    def setswitchinterval(self, seconds: float, /) -> None:
        """See C{sys.setswitchinterval}."""
        self.seconds = seconds


class SwitchTests(SynchronousTestCase):
    """L{switch_soon}."""

    def test_set(self) -> None:
        """Threads hold the interpreter for a part of a millisecond only."""
        interpreter = Interpreter()
        switch_soon(interpreter)
        self.assertEqual(interpreter.seconds, SWITCH_SECONDS)
        self.assertLess(SWITCH_SECONDS, 0.001)


class Rounds:
    """A reactor whose timers take two seconds."""

    def __init__(self) -> None:
        self.now = 10.0

    def seconds(self) -> float:
        """The time."""
        return self.now

    def runUntilCurrent(self) -> None:
        """All timers."""
        self.now += 2.0


class TimersTests(SynchronousTestCase):
    """L{time_timers}."""

    def test_timed(self) -> None:
        """How long the timers of a round take is known; they are called."""
        reactor, turns = Rounds(), Turns()
        time_timers(reactor, turns)
        reactor.runUntilCurrent()
        self.assertEqual(reactor.now, 12.0)
        self.assertEqual(turns.longest[TIMERS].value(12.0), 2.0)

    def test_others(self) -> None:
        """A reactor of another kind stays as it is."""
        turns = Turns()
        time_timers(Timed(0), turns)
        self.assertEqual(turns.longest, {})

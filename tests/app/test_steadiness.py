"""Reactors whose time only goes forward."""

from __future__ import annotations

import time
from collections.abc import Callable
from select import POLLIN, POLLOUT, poll
from typing import Any

from twisted.internet.abstract import FileDescriptor
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.steadiness import (
    SWITCH_SECONDS,
    call_hubs,
    make_steady,
    switch_soon,
    time_timers,
)
from rocketbroker.remoting.hub import Hub
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


class Polled:
    """A reactor with an epoll that finds what it is told.

    @ivar found: what it finds.
    @ivar waited: how long it was to wait, and for how many descriptors at most.
    @ivar called: the readers that it has called itself, and why.
    """

    def __init__(self, readers: dict[int, object]) -> None:
        self.found: list[tuple[int, int]] = []
        self.waited: list[tuple[float, int]] = []
        self.called: list[tuple[object, int, int]] = []
        self.doIteration: Any = None
        self._selectables = readers
        self._poller: Any = self

    def fileno(self) -> int:
        """See C{select.epoll.fileno}."""
        return 2

    def poll(self, timeout: float, most: int) -> list[tuple[int, int]]:
        """See C{select.epoll.poll}."""
        self.waited.append((timeout, most))
        return self.found

    def _doReadOrWrite(self, reader: object, descriptor: int, event: int) -> None:
        self.called.append((reader, descriptor, event))


class CallHubsTests(SynchronousTestCase):
    """L{call_hubs}."""

    def setUp(self) -> None:
        """A hub and another reader, of a reactor that polls."""
        reactor: Any = MemoryReactorClock()
        self.hub, self.reader = Hub(reactor), FileDescriptor(reactor)
        self.addCleanup(self.hub.shut)
        self.reactor = Polled({3: self.hub, 4: self.reader})
        call_hubs(self.reactor)

    def test_hub(self) -> None:
        """A hub has a turn when it is readable; the others are called as before."""
        self.reactor.found = [(3, POLLIN), (4, POLLIN), (5, POLLIN)]
        self.reactor.doIteration(0.5)
        self.assertEqual(self.hub.turn_count, 1)
        self.assertEqual(self.reactor.called, [(self.reader, 4, POLLIN)])
        self.assertEqual(self.reactor.waited, [(0.5, 2)])

    def test_otherEvents(self) -> None:
        """All but that is the reactor's to decide, for a hub, too."""
        self.reactor.found = [(3, POLLIN | POLLOUT)]
        self.reactor.doIteration(None)
        self.assertEqual(self.hub.turn_count, 0)
        self.assertEqual(self.reactor.called, [(self.hub, 3, POLLIN | POLLOUT)])
        self.assertEqual(self.reactor.waited, [(-1.0, 2)])

    def test_others(self) -> None:
        """A reactor of another kind stays as it is."""
        reactor = Rounds()
        call_hubs(reactor)
        self.assertFalse(hasattr(reactor, "doIteration"))

    def test_poll(self) -> None:
        """One with the older C{poll}, whose call takes other parameters, stays, too."""
        self.reactor.doIteration = None
        self.reactor._poller = poll()
        call_hubs(self.reactor)
        self.assertIsNone(self.reactor.doIteration)

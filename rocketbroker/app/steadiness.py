# -*- test-case-name: tests.app.test_steadiness -*-
"""A reactor whose time only goes forward, and how long its timers take.

Twisted's own is the time of day. Set an hour back, no timer would fire for an hour:
nothing would be flushed, dispatched or woken. Set forward, every connection would be
idle and every client silent for too long, all at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rocketbroker.remoting.turns import TIMERS, Turns


class Timed(Protocol):
    """The part of a reactor that is used here."""

    seconds: Callable[[], float]

    def getDelayedCalls(self) -> Sequence[Any]:
        """The calls that wait."""


def make_steady(reactor: Timed) -> None:
    """Let a reactor that has not begun to work count with the monotonic clock.

    One for which calls wait already, by the other clock, stays as it is.
    """
    if not reactor.getDelayedCalls():
        reactor.seconds = time.monotonic


def time_timers(reactor: Any, turns: Turns) -> None:
    """Let C{turns} know how long the timers take that are due together.

    They are no turn of the hub, but whoever sends waits for them as well. Twisted's
    reactors look C{runUntilCurrent} up in each round: it calls the timers, and the
    functions for which threads have asked.
    """
    run = getattr(reactor, "runUntilCurrent", None)
    if run is None:
        return  # not one with timers of its own
    seconds = reactor.seconds

    def timed() -> None:
        begin = seconds()
        run()
        now = seconds()
        turns.took(TIMERS, now - begin, now)

    reactor.runUntilCurrent = timed

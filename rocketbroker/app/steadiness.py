# -*- test-case-name: tests.app.test_steadiness -*-
"""A reactor whose time only goes forward, that calls the hub at once, how long its
timers take, and how long it waits for the threads beside it.

Twisted's own is the time of day. Set an hour back, no timer would fire for an hour:
nothing would be flushed, dispatched or woken. Set forward, every connection would be
idle and every client silent for too long, all at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from select import POLLIN
from typing import Any, Final, Protocol

from twisted.python.log import callWithLogger

from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.turns import TIMERS, Turns

#: So long one thread may hold the interpreter while another waits for it. A thread that
#: encodes a table or reads cold messages takes it whenever the reactor makes a system
#: call, several times in a turn. With Python's own 5 ms these turns take 10 to 20 ms,
#: with this 1 to 4. A switch takes some microseconds, and is made only when two threads
#: have work.
SWITCH_SECONDS: Final = 0.0005


class Timed(Protocol):
    """The part of a reactor that is used here."""

    seconds: Callable[[], float]

    def getDelayedCalls(self) -> Sequence[Any]:
        """The calls that wait."""


class Interpreter(Protocol):
    """The part of the module C{sys} that is used here."""

    def setswitchinterval(self, seconds: float, /) -> None:
        """How long a thread goes on when another waits."""


def make_steady(reactor: Timed) -> None:
    """Let a reactor that has not begun to work count with the monotonic clock.

    One for which calls wait already, by the other clock, stays as it is.
    """
    if not reactor.getDelayedCalls():
        reactor.seconds = time.monotonic


def call_hubs(reactor: Any) -> None:
    """Let a reactor call a hub that is readable itself.

    Twisted's calls each reader in a context that names it for the log. That takes 2 us,
    and 10 to 20 in a process that was idle before: a tenth of what an answer takes
    then. A hub says in the log whom a line concerns, and does not raise.
    """
    names = "_poller", "_selectables", "_doReadOrWrite"
    poller, readers, call = (getattr(reactor, name, None) for name in names)
    if poller is None or readers is None or call is None:
        return  # not one with a poller
    if not hasattr(poller, "fileno"):
        return  # not one with an epoll, which alone is a descriptor itself
    call_other: Callable[..., object] = callWithLogger

    def iterate(timeout: float | None) -> None:
        seconds = -1.0 if timeout is None else timeout
        for descriptor, event in poller.poll(seconds, len(readers)):
            reader = readers.get(descriptor)
            if type(reader) is Hub and event == POLLIN:
                reader.turn()
            elif reader is not None:
                call_other(reader, call, reader, descriptor, event)

    reactor.doIteration = iterate


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


def switch_soon(interpreter: Interpreter) -> None:
    """Let the reactor's thread wait little for the threads beside it."""
    interpreter.setswitchinterval(SWITCH_SECONDS)

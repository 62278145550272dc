# -*- test-case-name: tests.app.test_reactor -*-
"""The reactor of servers: time that only goes forward, the hub called at once, and how
long timers take.

Twisted's own counts with the time of day. Set an hour back, no timer would fire for an
hour: nothing would be flushed, dispatched or woken. Set forward, every connection would
be idle and every client silent for too long, all at once.

Twisted's calls each reader in a context that names the reader for the log. That takes
2 us, and 10 to 20 in a process that was idle before: a tenth of what an answer takes
then. A hub says in the log whom a line concerns, and does not raise.

Timers are no turn of the hub, but whoever sends waits for them as well: so the reactor
tells those who watch how long all of a round took, with the functions for which threads
have asked.

A reactor that C{twistd -r} has chosen stays as it is, with the time of day.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final, Protocol

from twisted.internet.main import installReactor
from twisted.python.log import callWithLogger

from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.turns import TIMERS, Turns

if sys.platform == "linux":
    from twisted.internet.epollreactor import EPollReactor as Polling
else:
    from twisted.internet.selectreactor import SelectReactor as Polling

#: The kernel's number of C{POLLIN}, which C{select} lacks where there is no poll.
_READABLE: Final = 0x001

#: The time for which one thread may hold the interpreter while another waits. A thread
#: that encodes a table or reads cold messages takes the interpreter whenever the
#: reactor makes a system call, several times in a turn. With Python's own 5 ms these
#: turns take 10 to 20 ms, with this 1 to 4. A switch takes some microseconds, and is
#: made only when two threads have work.
SWITCH_SECONDS: Final = 0.0005


class Interpreter(Protocol):
    """The part of the module C{sys} that is used here."""

    def setswitchinterval(self, seconds: float, /) -> None:
        """How long a thread goes on when another waits."""


class ServerReactor(Polling):
    """Twisted's reactor, as servers need it."""

    seconds = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self._watchers: list[Turns] = []
        super().__init__()  # type: ignore[no-untyped-call]

    def watch_timers(self, turns: Turns) -> None:
        """Tell C{turns} how long the timers of each round took."""
        self._watchers.append(turns)

    def runUntilCurrent(self) -> None:
        """Call the timers that are due."""
        begin = self.seconds()
        super().runUntilCurrent()
        now = self.seconds()
        for turns in self._watchers:
            turns.took(TIMERS, now - begin, now)

    if sys.platform == "linux":

        def doPoll(self, timeout: float | None) -> None:
            """Wait for events, and call who has one.

            @param timeout: in seconds; None: without an end.
            """
            seconds = -1.0 if timeout is None else timeout
            readers: dict[int, Any] = self._selectables
            for descriptor, event in self._poller.poll(seconds, len(readers)):
                reader = readers.get(descriptor)
                if type(reader) is Hub and event == _READABLE:
                    reader.turn()
                elif reader is not None:
                    callWithLogger(  # type: ignore[no-untyped-call]
                        reader, self._doReadOrWrite, reader, descriptor, event
                    )

        doIteration = doPoll


def server_reactor() -> Any:
    """The reactor of this process: one of ours, unless there is another already."""
    if "twisted.internet.reactor" not in sys.modules:
        installReactor(ServerReactor())  # type: ignore[no-untyped-call]
    from twisted.internet import reactor

    return reactor


def watch_timers(reactor: object, turns: Turns) -> None:
    """See L{ServerReactor.watch_timers}; one of another kind says nothing of timers."""
    if isinstance(reactor, ServerReactor):
        reactor.watch_timers(turns)


def switch_soon(interpreter: Interpreter) -> None:
    """Let the reactor's thread wait little for the threads beside it."""
    interpreter.setswitchinterval(SWITCH_SECONDS)

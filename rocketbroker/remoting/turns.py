# -*- test-case-name: tests.remoting.test_turns -*-
"""Functions called at the end of each turn, for all that the turn brought.

A turn is one wake-up of the hub, or one delivery of bytes by a Twisted transport. Both
end the same turns, so that a broker registers once and does not know which it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, final

from twisted.logger import Logger
from zope.interface import classImplements

from rocketbroker.remoting.counts import Longest
from rocketbroker.remoting.interfaces import ITurns

#: What a turn may be spent on besides requests: the functions at its end (messages are
#: appended there), and giving the kernel the answers. Of the type that both have.
TURN_END: Final[int | str] = "turn_end"
ANSWERS: Final[int | str] = "answers"

#: All timers that were due together, and results of threads: no turn of the hub.
TIMERS: Final = "timers"


@final
class Turns:
    """The callbacks at the end of each turn.

    @ivar longest: the longest turns, by what took most of each: a request code, or one
        of the names above.
    """

    _log = Logger()

    def __init__(self) -> None:
        self.longest: defaultdict[int | str, Longest] = defaultdict(Longest)
        self._callbacks: list[Callable[[], None]] = []

    def watch_turn_end(self, callback: Callable[[], None]) -> None:
        """Call C{callback} at the end of each turn, before the answers are written."""
        self._callbacks.append(callback)

    def within(self, work: Callable[[], object]) -> None:
        """Do work of a timer that answers requests, as a turn of its own."""
        try:
            work()
        finally:
            self.end()

    def took(self, work: int | str, seconds: float, now: float) -> None:
        """A turn took so long, most of it for C{work}.

        @param now: monotonic time.
        """
        self.longest[work].note(seconds, now)

    def end(self) -> None:
        """The turn is over: call all; one that fails does not keep the others."""
        for callback in self._callbacks:
            try:
                callback()
            except Exception:
                self._log.failure("A function at the end of a turn failed.")


classImplements(Turns, ITurns)

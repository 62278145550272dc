# -*- test-case-name: tests.remoting.test_turns -*-
"""Functions called at the end of each turn, for all that the turn brought.

A turn is one wake-up of the hub, or one delivery of bytes by a Twisted transport. Both
end the same turns, so that a broker registers once and does not know which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.logger import Logger
from zope.interface import classImplements

from rocketbroker.remoting.interfaces import ITurns


@final
class Turns:
    """The callbacks at the end of each turn."""

    _log = Logger()

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def at_turn_end(self, callback: Callable[[], None]) -> None:
        """Call C{callback} at the end of each turn, before the answers are written."""
        self._callbacks.append(callback)

    def end(self) -> None:
        """The turn is over: call all; one that fails does not keep the others."""
        for callback in self._callbacks:
            try:
                callback()
            except Exception:
                self._log.failure("A function at the end of a turn failed.")


classImplements(Turns, ITurns)

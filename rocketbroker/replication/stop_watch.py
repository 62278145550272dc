# -*- test-case-name: tests.replication.test_stop_watch -*-
"""A stop watch for the silence of a peer, as far as this process could have heard it.

A process that was stopped, or a machine that was suspended, finds all peers silent when
it goes on, though what they have sent waits in its sockets. So time between two looks
counts as far as it was to be expected, and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

#: What counts between two looks, at most: they are a second apart, or less.
MOST_SECONDS: Final = 2.0


@final
class StopWatch:
    """Measures the time between looks."""

    __slots__ = ("_at", "_seconds")

    def __init__(self, seconds: Callable[[], float]) -> None:
        """
        @param seconds: tells monotonic time.
        """
        self._seconds = seconds
        self._at = 0.0

    def start(self) -> None:
        """Measure from now on."""
        self._at = self._seconds()

    def lap(self) -> float:
        """The seconds since the last call that count."""
        before, self._at = self._at, self._seconds()
        return min(self._at - before, MOST_SECONDS)

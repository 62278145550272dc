# -*- test-case-name: tests.broker.test_background_work -*-
"""Blocking work in threads, counted so that a stop can wait for it.

A query reads files and mappings that the last step of a stop closes. A read after that
would fail, or return the bytes of another file under the same descriptor. The client
that asked may be gone long before, so only the count here knows of the thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, final

from twisted.internet.defer import Deferred, succeed

T = TypeVar("T")


class InThread(Protocol):
    """Runs a blocking function in a worker, as C{deferToThread} does."""

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function}; fires in the reactor's thread with its result."""


@final
class BackgroundWork:
    """Runs functions in threads, and counts those that have not ended.

    @ivar count: how many have not ended.
    """

    def __init__(self, in_thread: InThread) -> None:
        self.count = 0
        self._in_thread = in_thread
        self._waiting: list[Deferred[None]] = []

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function}; fires in the reactor's thread with its result."""
        self.count += 1
        return self._in_thread(function).addBoth(self._ended)

    def _ended(self, result: T) -> T:
        self.count -= 1
        if not self.count:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each.callback(None)
        return result

    def settled(self) -> Deferred[None]:
        """Fires when no thread is at work."""
        if not self.count:
            return succeed(None)
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        return waiting

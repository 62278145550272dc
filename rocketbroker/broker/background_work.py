# -*- test-case-name: tests.broker.test_background_work -*-
"""Which threads work for a broker, so that a stop can wait for them.

A query reads files and mappings that the store's last step closes: what it read then
would be an error at best, and at worst another file's bytes under the same descriptor.
Who asked may be gone long before, so nobody else waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.storage.group_commit import InThread

T = TypeVar("T")


@final
class AtWork:
    """Runs functions in threads, and counts those that have not ended.

    @ivar count: how many.
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

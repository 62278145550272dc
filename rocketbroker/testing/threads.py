# -*- test-case-name: tests.testing.test_threads -*-
"""Threads without threads: work that waits for the disk, done when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from twisted.internet.defer import Deferred, execute

T = TypeVar("T")


def at_once(function: Callable[[], T], /) -> Deferred[T]:
    """Run C{function} right away, as if a thread had done it in no time."""
    return execute(function)


@final
class Threads:
    """Keeps what is to be run until it is told to.

    @ivar waiting: the functions that have not been run.
    """

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} later."""
        done: Deferred[T] = Deferred()
        self.waiting.append(lambda: execute(function).chainDeferred(done))
        return done

    def run(self) -> None:
        """Run what waits, but not what that leads to."""
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()

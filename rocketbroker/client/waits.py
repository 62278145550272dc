# -*- test-case-name: tests.client.test_waits -*-
"""Waiting, made of futures with one waiter each: signals, tasks that end together.

The parts:

  - L{Signal}: wakes all that wait for something to happen.
  - L{Tasks}: what one part of the client has running; it can be ended as a whole.
  - L{together}: several coroutines side by side, until the last has ended.
  - L{within}: one coroutine, for so long at most.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar, final

from rocketbroker.client.runtime import Future, Runtime, Task
from rocketbroker.errors import RequestTimeout

T = TypeVar("T")

_log: Final = logging.getLogger("rocketbroker.client")


def resolve(future: Future[None]) -> None:
    """Give a future its result, unless its waiter is gone."""
    if not future.done():
        future.set_result(None)


@final
class Signal:
    """Something that happens again and again, for any number of waiters."""

    __slots__ = ("_runtime", "_waiters")

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waiters: list[Future[None]] = []

    def fire(self) -> None:
        """It happens: wake all that wait now."""
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                resolve(waiter)

    def fire_one(self) -> None:
        """It happens, and one waiter is enough for it."""
        while self._waiters:
            waiter = self._waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                return

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until it happens.

        @param seconds: for so long at most.
        @return: whether it has happened.
        """
        waiter: Future[None] = self._runtime.future()
        self._waiters.append(waiter)
        if seconds is None:
            try:
                await waiter
            finally:
                self._forget(waiter)
            return True
        timer = self._runtime.call_later(seconds, resolve, waiter)
        try:
            await waiter
            return waiter not in self._waiters
        finally:
            timer.cancel()
            self._forget(waiter)

    def _forget(self, waiter: Future[None]) -> None:
        if waiter in self._waiters:
            self._waiters.remove(waiter)


@final
class _Running:
    """One task of L{Tasks}: before it has begun it cannot be cancelled, only told."""

    __slots__ = ("begun", "cancelled", "task")

    def __init__(self) -> None:
        self.task: Task | None = None
        self.begun = False
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel it, now or when it begins."""
        self.cancelled = True
        if self.begun and self.task is not None:
            self.task.cancel()


@final
class Tasks:
    """The tasks of one part of the client.

    What a task raises is logged: nobody waits for it. So a task that has to go on
    whatever happens catches what it expects.

    @ivar open: whether new ones are taken.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running: set[_Running] = set()
        self._ended = Signal(runtime)
        self.open = True

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine beside all others; none once all were ended."""
        if not self.open:
            coroutine.close()
            return
        running = _Running()
        self._running.add(running)
        running.task = self._runtime.spawn(self._run(running, coroutine))

    async def _run(
        self, running: _Running, coroutine: Coroutine[Any, Any, object]
    ) -> None:
        running.begun = True
        try:
            if running.cancelled:
                coroutine.close()
            else:
                await coroutine
        except self._runtime.cancelled:
            pass
        except Exception:
            _log.exception("A part of the client has ended with an error")
        finally:
            self._running.remove(running)
            self._ended.fire()

    def cancel(self) -> None:
        """Cancel all and take no more."""
        self.open = False
        for running in [*self._running]:
            running.cancel()

    async def end(self) -> None:
        """Cancel all, take no more, and wait until the last has ended."""
        self.cancel()
        await self.all_ended()

    async def all_ended(self) -> None:
        """Wait until none is running."""
        while self._running:
            await self._ended.wait()


async def together(
    runtime: Runtime, coroutines: Iterable[Coroutine[Any, Any, object]]
) -> None:
    """Run coroutines side by side until all have ended; errors are logged."""
    tasks = Tasks(runtime)
    for coroutine in coroutines:
        tasks.spawn(coroutine)
    try:
        await tasks.all_ended()
    finally:
        if len(tasks):
            await tasks.end()


async def within(
    runtime: Runtime, seconds: float, coroutine: Coroutine[Any, Any, T]
) -> T:
    """Run a coroutine for so long at most.

    @raise RequestTimeout: it took longer; it has been cancelled.
    """
    outcome: list[Callable[[], T]] = []
    tasks = Tasks(runtime)

    async def run() -> None:
        try:
            result = await coroutine
        except runtime.cancelled:
            raise
        except Exception as problem:
            outcome.append(_raising(problem))
        else:
            outcome.append(lambda: result)

    tasks.spawn(run())
    timer = runtime.call_later(seconds, tasks.cancel)
    try:
        await tasks.all_ended()
    finally:
        timer.cancel()
        if len(tasks):
            await tasks.end()
    if not outcome:
        raise RequestTimeout(f"it took longer than {seconds:g} seconds")
    return outcome[0]()


def _raising(problem: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise problem

    return fail

# -*- test-case-name: tests.proxy.test_lookups -*-
"""Lookups: what brokers say by name, asked for at times and remembered in between.

A name is asked for by one request at a time, however many calls wait for it. An answer
counts for the time of its refresh; the first call after that asks again, and waits. So
a change counts after that time at the latest. If no broker can be asked then, the old
answer goes on to count until it expires, and the next question comes one refresh later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar, final

import attrs

from rocketbroker.client.runtime import Runtime
from rocketbroker.client.waits import Signal, Tasks
from rocketbroker.errors import RocketbrokerError

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class LookupLimits:
    """How long answers count, and how many are kept.

    @ivar refresh_seconds: after which an answer is asked for again.
    @ivar expired_seconds: after which it does not count, even if no broker answers.
    @ivar max_number: one more drops the oldest.
    """

    refresh_seconds: float
    expired_seconds: float
    max_number: int


@attrs.frozen
class _Known(Generic[T]):
    """An answer, when it was given, and when it was asked for the last time."""

    value: T
    learned_at: float
    asked_at: float


@final
class _Question(Generic[T]):
    """A question under way, and what came of it."""

    def __init__(self, runtime: Runtime) -> None:
        self.answered = Signal(runtime)
        self.answer: tuple[T] | None = None
        self.problem: RocketbrokerError | None = None


@final
class Lookups(Generic[T]):
    """Answers by name.

    @ivar asked: how many questions there were.
    """

    def __init__(
        self,
        runtime: Runtime,
        ask: Callable[[str], Awaitable[T]],
        limits: LookupLimits,
    ) -> None:
        self._runtime = runtime
        self._tasks = Tasks(runtime)
        self._ask = ask
        self._limits = limits
        self._known: dict[str, _Known[T]] = {}
        self._questions: dict[str, _Question[T]] = {}
        self.asked = 0

    def __len__(self) -> int:
        return len(self._known)

    async def get(self, name: str) -> T:
        """What brokers say of a name.

        @raise RocketbrokerError: none could be asked, and nothing is known.
        """
        known = self._known.get(name)
        now = self._runtime.monotonic()
        if known is not None and now - known.asked_at < self._limits.refresh_seconds:
            return known.value
        question = self._questions.get(name)
        if question is None:
            question = self._questions[name] = _Question(self._runtime)
            self._tasks.spawn(self._learn(name, question))
        # A caller that goes away leaves the question to the others.
        await question.answered.wait()
        if question.answer is not None:
            return question.answer[0]
        assert question.problem is not None
        raise question.problem

    async def _learn(self, name: str, question: _Question[T]) -> None:
        self.asked += 1
        try:
            value = await self._ask(name)
        except RocketbrokerError as problem:
            self._failed(name, question, problem)
        else:
            now = self._runtime.monotonic()
            question.answer = (value,)
            self._keep(name, _Known(value, now, now))
        finally:
            del self._questions[name]
            question.answered.fire()

    def _failed(
        self, name: str, question: _Question[T], problem: RocketbrokerError
    ) -> None:
        """No broker has answered: what is known counts on, unless it is too old."""
        known = self._known.pop(name, None)
        now = self._runtime.monotonic()
        if known is None or now - known.learned_at >= self._limits.expired_seconds:
            question.problem = problem
            return
        question.answer = (known.value,)
        self._keep(name, attrs.evolve(known, asked_at=now))

    def _keep(self, name: str, known: _Known[T]) -> None:
        self._known.pop(name, None)
        self._known[name] = known
        if len(self._known) > self._limits.max_number:
            del self._known[next(iter(self._known))]

    async def close(self) -> None:
        """End what is under way."""
        await self._tasks.end()

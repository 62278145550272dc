# -*- test-case-name: tests.proxy.test_counts -*-
"""Counts of calls: how many, with which outcome, and how long they took.

They are plain numbers; L{rocketbroker.metrics.proxy_families} shows them. The functions
that answer calls are wrapped here, so that none of them has to count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar, final

from rocketbroker.proxy.messages_pb2 import Code

Q = TypeVar("Q")
C = TypeVar("C")

#: The outcome of a call without an answer: its client has left, gRPC has told the
#: problem, or the function failed.
NO_ANSWER: Final = "NO_ANSWER"

#: Upper bounds of the classes of times, in seconds; the last class is open. A receive
#: that waits takes up to 20 s.
BOUNDS_SECONDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


@final
class Times:
    """How long the calls of one method took.

    @ivar buckets: how many fell into each class of L{BOUNDS_SECONDS}.
    @ivar total: all seconds together.
    """

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """One call more."""
        self.buckets[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.total += seconds


@final
class Counts:
    """All calls that have ended.

    @ivar calls: how many, by method and outcome.
    @ivar times: how long they took, by method; not of telemetry, which stays open.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """
        @param monotonic: seconds of a clock that only goes forward.
        """
        self._monotonic = monotonic
        self.calls: dict[tuple[str, str], int] = {}
        self.times: dict[str, Times] = {}

    def ended(self, method: str, outcome: str) -> None:
        """A call has ended."""
        key = method, outcome
        self.calls[key] = self.calls.get(key, 0) + 1

    def unary(
        self, method: str, answer: Callable[[Q, C], Awaitable[Any]]
    ) -> Callable[[Q, C], Awaitable[Any]]:
        """What answers a method by one message, counted."""
        times = self.times[method] = Times()

        async def counted(request: Q, context: C) -> Any:
            began = self._monotonic()
            outcome = NO_ANSWER
            try:
                answered = await answer(request, context)
                outcome = Code.Name(answered.status.code)
                return answered
            finally:
                self.ended(method, outcome)
                times.add(self._monotonic() - began)

        return counted

    def stream(
        self,
        method: str,
        answer: Callable[[Q, C], AsyncIterator[Any]],
        stays_open: bool = False,
    ) -> Callable[[Q, C], AsyncIterator[Any]]:
        """What answers a method by messages, the first of them a status, counted.

        @param stays_open: how long such a call takes says nothing.
        """
        times = Times()
        if not stays_open:
            self.times[method] = times

        async def counted(request: Q, context: C) -> AsyncIterator[Any]:
            began = self._monotonic()
            outcome = NO_ANSWER
            try:
                async for frame in answer(request, context):
                    if outcome is NO_ANSWER:
                        outcome = Code.Name(frame.status.code)
                    yield frame
            finally:
                self.ended(method, outcome)
                times.add(self._monotonic() - began)

        return counted

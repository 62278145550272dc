# -*- test-case-name: tests.sources.test_retry -*-
"""Patience with brokers that restart.

What is asked of brokers is asked again until one answers or the time is over: a broker
that is updated is back within a minute or two, and a read of hours need not fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, final

from rocketbroker.blocking.answers import may_pass
from rocketbroker.blocking.machine import Machine
from rocketbroker.errors import RocketbrokerError, SystemFailure

Answer = TypeVar("Answer")

#: Seconds between two tries.
PAUSE: Final = 0.2

#: SYSTEM_ERROR can be passing, but brokers also answer it to what they never do, as
#: filtering by SQL92 without C{enablePropertyFilter}: nobody should wait long for that.
REFUSAL_SECONDS: Final = 5.0


class NoAnswer(RocketbrokerError):
    """Nobody has answered for as long as C{retryTimeout} says."""


@final
class Patience:
    """Tells how often to try again: until C{seconds} after the first failure."""

    def __init__(self, machine: Machine, seconds: float) -> None:
        """
        @param machine: its clock counts.
        """
        self._machine = machine
        self._seconds = seconds
        self._failing_since: float | None = None

    def worked(self) -> None:
        """There was an answer."""
        self._failing_since = None

    def failed(self, problem: RocketbrokerError) -> None:
        """Wait before the next try.

        @raise NoAnswer: the time is over; its sentence has the reason.
        @raise RocketbrokerError: the problem, if another try does not help.
        """
        if not may_pass(problem):
            raise problem
        now = self._machine.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        seconds = self._seconds
        if isinstance(problem, SystemFailure):
            seconds = min(seconds, REFUSAL_SECONDS)
        if now - self._failing_since >= seconds:
            reason = (str(problem).splitlines() or [type(problem).__name__])[0]
            raise NoAnswer(
                f"{reason} (tried again for {seconds:g} s, option retryTimeout)"
            ) from problem
        self._machine.sleep(PAUSE)

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question, asked as often as it takes.

        @raise RocketbrokerError: as L{failed}.
        """
        while True:
            try:
                answer = question()
            except RocketbrokerError as problem:
                self.failed(problem)
            else:
                self.worked()
                return answer

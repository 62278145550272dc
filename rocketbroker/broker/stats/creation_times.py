# -*- test-case-name: tests.broker.stats.test_creation_times -*-
"""The times of requests that make or change topics and groups, for metrics.

C{docs/facts/security-metrics.md} 5.3: requests 17 and 18, 200 and 225, from when they
come until their answer is ready, the writing of the file and the name servers included.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

#: Upper bounds of the classes in ms, the last class is open.
CREATION_BOUNDS: Final = (10, 100, 1000, 3000, 5000)


@final
class Times:
    """Times of requests with one outcome.

    @ivar counts: how many fell into each class of C{CREATION_BOUNDS}.
    @ivar total_ms: the sum of all.
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(CREATION_BOUNDS) + 1)
        self.total_ms = 0

    def add(self, ms: int) -> None:
        """One more request took so long."""
        self.counts[bisect_left(CREATION_BOUNDS, ms)] += 1
        self.total_ms += ms


@final
class Creation:
    """A creation request that is under way.

    @ivar is_system: whether a topic that it makes or changes is the system's.
    """

    def __init__(self) -> None:
        self.is_system = False


@final
class CreationTimes:
    """The times of all such requests since the start.

    @ivar topics: by whether they succeeded, and whether a topic is the system's.
    @ivar groups: by whether they succeeded.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        """
        @param seconds: the monotonic time.
        """
        self.topics: dict[tuple[bool, bool], Times] = {}
        self.groups: dict[bool, Times] = {}
        self._seconds = seconds

    @contextmanager
    def of_topics(self) -> Iterator[Creation]:
        """Count a request for topics; it succeeds unless it raises something."""
        creation, began, succeeded = Creation(), self._seconds(), False
        try:
            yield creation
            succeeded = True
        finally:
            key = succeeded, creation.is_system
            self.topics.setdefault(key, Times()).add(self._since(began))

    @contextmanager
    def of_groups(self) -> Iterator[None]:
        """The same of a request for groups."""
        began, succeeded = self._seconds(), False
        try:
            yield
            succeeded = True
        finally:
            self.groups.setdefault(succeeded, Times()).add(self._since(began))

    def _since(self, began: float) -> int:
        return round((self._seconds() - began) * 1000)

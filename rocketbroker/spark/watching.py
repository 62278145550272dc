# -*- test-case-name: tests.spark.test_watching -*-
"""The ends of the queues of a stream, asked for seldom.

Spark asks a source for its end up to 87 times a second while nothing comes
(C{docs/facts/spark.md 3}). Brokers hear at most L{PER_SECOND} of it: one request tells
of all queues of a topic on a broker, the next ones follow when they may, and Spark is
held up meanwhile, which also spares it and us the turns. While messages come, it may
be L{BUSY_PER_SECOND}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.resolving import wanted_queues
from rocketbroker.sources.source import StreamOrigin

#: How many requests a second brokers get while nothing comes: below 2, for clocks and
#: sleeps are not exact.
PER_SECOND: Final = 1.9

#: The same while messages come.
BUSY_PER_SECOND: Final = 20

#: Seconds between two questions at least.
SHORTEST: Final = 0.1


@final
class Watch:
    """Knows the bounds of all queues, as of a short while ago.

    @ivar bounds: the first offset of each queue and its end. Those of a queue whose
        broker is gone stay as they were.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        sleep: Callable[[float], None],
        origin: StreamOrigin,
        options: ReadOptions,
    ) -> None:
        """
        @param monotonic: seconds, from any beginning.
        @param sleep: waits so many seconds.
        """
        self._monotonic = monotonic
        self._sleep = sleep
        self._origin = origin
        self._options = options
        self._queues: set[Queue] = set()
        self._found: list[Queue] = []
        self._next_discovery = self._next_poll = monotonic()
        self.bounds: dict[Queue, tuple[int, int]] = {}

    def include(self, queues: Iterable[Queue]) -> None:
        """Ask about these queues, too, found or not.

        A queue that cannot be found any more (the topic has fewer now) may still have
        messages that are not read.
        """
        new = set(queues) - self._queues
        if new:
            self._queues |= new
            self._next_poll = self._monotonic()

    def look(self) -> None:
        """Ask brokers, if they may be asked again.

        @raise RocketbrokerError: nobody answers for as long as C{retryTimeout} says.
        """
        now = self._monotonic()
        if now < self._next_poll:
            return
        if now >= self._next_discovery:
            self._found = wanted_queues(self._origin, self._options)
            self._next_discovery = now + self._options.discovery_ms / 1000
        self._queues.update(self._found)
        there = {(queue.topic, queue.broker) for queue in self._found}
        asked = self._origin.asked
        found = self._origin.all_bounds(
            sorted(q for q in self._queues if (q.topic, q.broker) in there)
        )
        news = any(self.bounds.get(queue) != bounds for queue, bounds in found.items())
        self.bounds.update(found)
        rate = BUSY_PER_SECOND if news else PER_SECOND
        pause = (self._origin.asked - asked) / rate
        self._next_poll = now + max(SHORTEST, pause)

    def look_at_once(self) -> None:
        """Ask brokers for all there is now, new queues included."""
        self._next_discovery = self._next_poll = self._monotonic()
        self.look()

    def wait(self) -> None:
        """Wait until brokers may be asked again, and ask."""
        pause = self._next_poll - self._monotonic()
        if pause > 0:
            self._sleep(pause)
        self.look()

# -*- test-case-name: tests.export.test_lags -*-
"""The lag of an export behind its source, queue by queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from rocketbroker.arrow.message_identity import fingerprint_at
from rocketbroker.export.plans import End
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import DataLoss, Origin


@attrs.frozen
class Lag:
    """How far one queue is behind.

    @ivar earliest: the first offset that the source has; None if it has no such queue.
    @ivar exported: up to where it is exported; None if nothing is.
    @ivar latest: the end of the source's queue.
    @ivar oldest_ms: when the first message that is not exported was stored; None if
        there is none, or if it cannot be read.
    @ivar behind_ms: how long ago that was.
    """

    queue: Queue
    earliest: int | None
    exported: int | None
    latest: int | None
    oldest_ms: int | None = None
    behind_ms: int | None = 0

    @property
    def start(self) -> int:
        """Where the next run begins."""
        return max(self.exported or 0, self.earliest or 0)

    @property
    def behind(self) -> int:
        """How many messages could be exported."""
        return 0 if self.latest is None else max(0, self.latest - self.start)

    @property
    def removed(self) -> int:
        """How many were removed before they were exported, and after the last run."""
        if self.exported is None or self.earliest is None:
            return 0
        return max(0, self.earliest - self.exported)


def lags(
    origin: Origin, topics: Iterable[str], ends: Mapping[Queue, End], now_ms: int
) -> list[Lag]:
    """How far each queue is behind, sorted; queues too that the source has no more.

    @param ends: up to where queues are exported.
    @param now_ms: the time.
    @raise RocketbrokerError: the source does not answer.
    """
    found: list[Lag] = []
    for topic in sorted(topics):
        there = set(origin.queues(topic))
        exported = {queue for queue in ends if queue.topic == topic}
        for queue in sorted(there | exported):
            found.append(lag_of(origin, queue, queue in there, ends.get(queue), now_ms))
    return found


def lag_of(
    origin: Origin, queue: Queue, is_there: bool, end: End | None, now_ms: int
) -> Lag:
    """How far one queue is behind."""
    exported = None if end is None else end.offset
    if not is_there:
        return Lag(queue, None, exported, None)
    earliest, latest = origin.bounds(queue)
    lag = Lag(queue, earliest, exported, latest)
    if not lag.behind:
        return lag
    try:
        oldest_ms = fingerprint_at(origin, queue, lag.start).store_ms
    except DataLoss:
        # It was deleted a moment ago, or it is damaged.
        return attrs.evolve(lag, behind_ms=None)
    return attrs.evolve(lag, oldest_ms=oldest_ms, behind_ms=max(0, now_ms - oldest_ms))

# -*- test-case-name: tests.sources.test_narrowing -*-
"""Ranges made smaller by conditions on where messages stand."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import Origin


@attrs.frozen
class Narrowing:
    """What is known of the messages wanted; None where nothing is.

    @ivar start: the first offset, and the one after the last; so for C{store_ms}.
    """

    topics: frozenset[str] | None = None
    brokers: frozenset[str] | None = None
    queue_ids: frozenset[int] | None = None
    start: int | None = None
    until: int | None = None
    from_ms: int | None = None
    until_ms: int | None = None

    def wants(self, queue: Queue) -> bool:
        """Whether messages of a queue may be wanted."""
        return (
            (self.topics is None or queue.topic in self.topics)
            and (self.brokers is None or queue.broker in self.brokers)
            and (self.queue_ids is None or queue.queue_id in self.queue_ids)
        )


def narrow(
    origin: Origin, ranges: Iterable[Range], narrowing: Narrowing
) -> list[Range]:
    """The parts of ranges that may hold wanted messages, the empty ones left out."""
    found = [
        _narrowed(origin, wanted, narrowing)
        for wanted in ranges
        if narrowing.wants(wanted.queue)
    ]
    return [wanted for wanted in found if wanted.size > 0]


def _narrowed(origin: Origin, wanted: Range, narrowing: Narrowing) -> Range:
    queue, start, until = wanted
    if narrowing.start is not None:
        start = max(start, narrowing.start)
    if narrowing.until is not None:
        until = min(until, narrowing.until)
    if narrowing.from_ms is not None and start < until:
        start = max(start, origin.offset_at(queue, narrowing.from_ms))
    if narrowing.until_ms is not None and start < until:
        until = min(until, origin.offset_at(queue, narrowing.until_ms))
    return Range(queue, start, until)

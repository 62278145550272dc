# -*- test-case-name: tests.sources.test_ranges -*-
"""Offset ranges, and how they are cut into the partitions of a Spark job.

The unit is (topic, broker name, queue, from, until): addresses change, names do not.
C{until} is exclusive everywhere: three old connectors stored C{until - 1} and doubled
or lost a message per restart (docs/facts/spark.md 5, 9). Queue offsets are dense, so a
range has exactly C{until - start} messages; cutting one into splits is arithmetic, and
the pieces of a range always add up to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

#: How many messages a partition takes at most, unless said otherwise.
MAX_RECORDS: Final = 500_000


class Queue(NamedTuple):
    """One queue of a topic on one broker."""

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        return f"queue {self.queue_id} of {self.topic} on {self.broker}"


class Range(NamedTuple):
    """The messages of a queue from C{start} up to, and without, C{until}."""

    queue: Queue
    start: int
    until: int

    @property
    def size(self) -> int:
        """How many messages these are."""
        return self.until - self.start

    def __str__(self) -> str:
        return f"[{self.start}, {self.until}) of {self.queue}"


class Split(NamedTuple):
    """What one task reads: ranges, one after the other."""

    ranges: tuple[Range, ...]

    @property
    def size(self) -> int:
        """How many messages these are."""
        return sum(piece.size for piece in self.ranges)


def splits(
    ranges: Iterable[Range], least: int, max_records: int = MAX_RECORDS
) -> list[Split]:
    """Cut ranges into splits of at most C{max_records} messages.

    A task of Spark costs 60 to 190 ms, so small ranges share one: there are C{least}
    splits, and more only where C{max_records} asks for it. Their sizes differ by one
    message at most.

    @param ranges: the ranges; empty ones are left out.
    @param least: how many splits there are at least, if there are as many messages.
    @return: splits in the order of the ranges; each message is in exactly one.
    """
    wanted = [whole for whole in ranges if whole.size > 0]
    total = sum(whole.size for whole in wanted)
    if total == 0:
        return []
    number = max(min(max(1, least), total), -(-total // max(1, max_records)))
    borders = iter([total * (index + 1) // number for index in range(number)])
    border = next(borders)
    result: list[Split] = []
    pending: list[Range] = []
    taken = 0
    for whole in wanted:
        start = whole.start
        while start < whole.until:
            until = min(whole.until, start + border - taken)
            pending.append(Range(whole.queue, start, until))
            taken += until - start
            start = until
            if taken == border:
                result.append(Split(tuple(pending)))
                pending = []
                border = next(borders, total)
    return result

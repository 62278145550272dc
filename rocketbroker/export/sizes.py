# -*- test-case-name: tests.export.test_sizes -*-
"""Estimates of the bytes of a range's messages, without reading all of them.

Messages are looked at in places all over the ranges of a plan; between two places they
are taken to be as large as at the first. A store's queue entries would say it exactly,
a broker would not; looking at the same places gives the same plan from both. Small
ranges are read whole, so that their sizes are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, final

import numpy as np

from rocketbroker.arrow.layout import Ints
from rocketbroker.export.queue_identity import readable
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import Origin

#: So many places are looked at, over all ranges of a plan, and one of each at least. A
#: broker answers so many questions in a fraction of a second.
PLACES: Final = 64

#: So many messages are looked at in a place, in these steps; no further ones behind a
#: step that brought L{ENOUGH_BYTES}.
STEPS: Final = (8, 24)
ENOUGH_BYTES: Final = 64 * 1024


@final
class Sizes:
    """The sizes of the messages of ranges, as records of the log, about."""

    def __init__(self, origin: Origin, ranges: Iterable[Range]) -> None:
        """
        @param origin: where the ranges are; asked here, and not later.
        """
        wanted = [each for each in ranges if each.size > 0]
        total = sum(each.size for each in wanted)
        self._curves: dict[Queue, tuple[Ints, Ints]] = {}
        for each in wanted:
            places = max(1, PLACES * each.size // total)
            places = min(places, -(-each.size // sum(STEPS)))
            self._curves[each.queue] = curve(origin, each, places)

    def size(self, wanted: Range) -> int:
        """How many bytes the messages of a part of a range have."""
        offsets, totals = self._curves[wanted.queue]
        first, last = np.interp((wanted.start, wanted.until), offsets, totals)
        return int(last) - int(first)

    def offset(self, wanted: Range, size: int) -> int:
        """The offset before which a part of a range has so many bytes."""
        offsets, totals = self._curves[wanted.queue]
        first = int(np.interp(wanted.start, offsets, totals))
        found = round(float(np.interp(first + size, totals, offsets)))
        return min(max(found, wanted.start), wanted.until)


def curve(origin: Origin, wanted: Range, places: int) -> tuple[Ints, Ints]:
    """How the bytes of a range add up.

    @return: offsets, and the bytes of all messages before each.
    """
    borders = [wanted.start + wanted.size * n // places for n in range(places + 1)]
    offsets, totals = [wanted.start], [0]
    average = 1.0
    for start, until in pairwise(borders):
        found = sizes_at(origin, Range(wanted.queue, start, until))
        if found:
            # What cannot be read takes no place; to be sure, that of its neighbours.
            average = sum(found) / len(found)
        offsets.append(until)
        totals.append(totals[-1] + max(1, round(average * (until - start))))
    return np.array(offsets, np.int64), np.array(totals, np.int64)


def sizes_at(origin: Origin, wanted: Range) -> list[int]:
    """The sizes of the first messages of a range that can be read."""
    found: list[int] = []
    start = wanted.start
    for step in STEPS:
        until = min(start + step, wanted.until)
        if start < until:
            for layout in readable(origin, Range(wanted.queue, start, until)):
                found += layout.front["size"].tolist()
        start = until
        if sum(found) >= ENOUGH_BYTES:
            break
    return found


def planning_options(options: ReadOptions) -> ReadOptions:
    """The same for the origin of a planner, which asks for a few messages at a time."""
    found = ReadOptions(
        name_server=options.name_server,
        store=options.store,
        broker_name=options.broker_name,
        pull_batch_size=sum(STEPS),
        pull_bytes=1 << 20,
        pull_concurrency=1,
        pull_timeout_ms=options.pull_timeout_ms,
        retry_timeout_ms=options.retry_timeout_ms,
    )
    return options.with_access_for(found)

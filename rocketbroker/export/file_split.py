# -*- test-case-name: tests.export.test_file_split -*-
"""From ranges to files: by hour of store time, and by size.

Files lie in directories of hours. In an hour, the messages of all queues stand in a
row, queue by queue, and the row is cut into files of about the target size: there are
never more than the bytes ask for, however many queues there are. So quiet queues share
a file, and a busy one has several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from rocketbroker.export.plans import GROUP_ROWS, HOUR_MS, FileTask, file_path
from rocketbroker.export.queue_identity import STEPS, first_mark, last_mark
from rocketbroker.export.sizes import Sizes
from rocketbroker.sources.ranges import Range
from rocketbroker.sources.source import Origin

#: How large a group of rows becomes, about, likewise: readers hold one in memory.
GROUP_BYTES: Final = 64 * 1024 * 1024

#: A file may be larger or smaller by this part of the target, if then it ends where a
#: queue does.
SLACK: Final = 8

#: With fewer files than so many for each task their number is a multiple of the tasks,
#: or some would wait for the last ones.
FEW: Final = 4

#: Behind all store times.
NEVER: Final = 1 << 62


def cut_by_hour(
    origin: Origin, wanted: Range, now_ms: int
) -> Iterator[tuple[Range, int]]:
    """The parts of a range that were stored in the same hour.

    Only hours in which something was stored are looked for. Where a clock went back,
    a part belongs to the hour of its first message.

    @param now_ms: the time.
    @return: the parts, and a store time of each.
    """
    queue, start = wanted.queue, wanted.start
    last = last_mark(origin, wanted)
    last_ms = last.store_ms if last else NEVER
    position, pending_ms = start, -1
    while position < wanted.until:
        first = first_mark(origin, Range(queue, position, wanted.until))
        if first is not None:
            store_ms = first.store_ms
            hour_end = (store_ms // HOUR_MS + 1) * HOUR_MS
            until = wanted.until
            if last_ms >= hour_end:
                found = origin.offset_at(queue, hour_end)
                until = min(max(found, position + 1), wanted.until)
        else:
            # Where nothing can be read, the hour is that of what comes before, or last.
            store_ms = pending_ms if pending_ms >= 0 else min(last_ms, now_ms)
            until = min(position + sum(STEPS), wanted.until)
        if pending_ms >= 0 and pending_ms // HOUR_MS != store_ms // HOUR_MS:
            yield Range(queue, start, position), pending_ms
            start, pending_ms = position, store_ms
        elif pending_ms < 0:
            pending_ms = store_ms
        position = until
    yield Range(queue, start, wanted.until), pending_ms


def file_count(size: int, rows: int, target: int, tasks: int) -> int:
    """How many files messages are cut into.

    @param size: how many bytes they have.
    @param tasks: how many files are written at once.
    """
    number = max(1, min(size // target, rows))
    if tasks < number < FEW * tasks:
        number -= number % tasks
    return number


def cut_by_size(
    sizes: Sizes, parts: Sequence[Range], target: int, tasks: int
) -> Iterator[list[Range]]:
    """The messages of ranges, cut into files of about C{target} bytes.

    @param parts: the ranges, in order, none empty.
    """
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + sizes.size(part))
    number = file_count(ends[-1], sum(part.size for part in parts), target, tasks)
    cuts = {
        place_of(sizes, parts, ends, ends[-1] * n // number, target // SLACK)
        for n in range(1, number)
    }
    borders = [(0, parts[0].start), *sorted(cuts), (len(parts), 0)]
    for (first, start), (last, until) in pairwise(borders):
        file = [
            Range(
                part.queue,
                start if n == first else part.start,
                until if n == last else part.until,
            )
            for n, part in enumerate(parts[first : last + 1], first)
        ]
        found = [piece for piece in file if piece.size > 0]
        if found:
            yield found


def place_of(
    sizes: Sizes,
    parts: Sequence[Range],
    ends: Sequence[int],
    position: int,
    slack: int,
) -> tuple[int, int]:
    """Where a row of ranges is cut.

    @param ends: how many bytes are before each range, and before the end.
    @param position: behind how many bytes.
    @param slack: how far a border of ranges may be away to be cut at instead.
    @return: the number of a range, and the offset in it before which it is cut.
    """
    nearest = min(range(len(ends)), key=lambda n: abs(ends[n] - position))
    if 0 < nearest < len(parts) and abs(ends[nearest] - position) <= slack:
        return nearest, parts[nearest].start
    number = next(n for n in range(len(parts)) if position < ends[n + 1])
    return number, sizes.offset(parts[number], position - ends[number])


def cut(
    origin: Origin,
    ranges: Sequence[Range],
    now_ms: int,
    target: int,
    tasks: int = 1,
) -> Iterator[FileTask]:
    """The files of ranges.

    @param now_ms: the time.
    @param target: how large a file becomes, about, in bytes of the log.
    @param tasks: how many files are written at once.
    """
    sizes = Sizes(origin, ranges)
    hours: dict[int, list[tuple[Range, int]]] = {}
    for wanted in ranges:
        for part, store_ms in cut_by_hour(origin, wanted, now_ms):
            # A queue whose clock went back comes to an hour twice.
            hours.setdefault(store_ms // HOUR_MS, []).append((part, store_ms))
    for _, found in sorted(hours.items()):
        parts = [part for part, _ in found]
        for file in cut_by_size(sizes, parts, target, tasks):
            rows = sum(piece.size for piece in file)
            average = max(1, sum(map(sizes.size, file)) // rows)
            group_rows = min(max(1, GROUP_BYTES // average), GROUP_ROWS)
            yield FileTask(file_path(file, found[0][1]), tuple(file), group_rows)

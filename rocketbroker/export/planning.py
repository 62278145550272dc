# -*- test-case-name: tests.export.test_planning -*-
"""From the offsets of a topic, and those exported already, to a plan.

A run goes on where the last commit ended; what it covers is fixed here. A range is cut
where an hour of store time ends, because files lie in directories of hours, and further
into files of about the target size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from rocketbroker.arrow.fingerprints import fingerprint_at, first_messages
from rocketbroker.export.plans import HOUR_MS, End, FileTask, Lost, Plan, file_path
from rocketbroker.ranges.options import ReadOptions
from rocketbroker.ranges.origins import DataLoss, Origin
from rocketbroker.ranges.ranges import Queue, Range
from rocketbroker.ranges.resolving import (
    ending_offset,
    resolve_queue,
    wanted_queues,
    wanted_topics,
)

#: How large a file becomes, about, before compression.
TARGET_BYTES: Final = 128 * 1024 * 1024

#: No file has more rows than this: a bound on what one task holds up.
MAX_ROWS: Final = 2_000_000

#: So many messages are looked at to guess how large all of them are.
SAMPLE: Final = 32


def start_of(
    origin: Origin, options: ReadOptions, queue: Queue, end: End | None, now_ms: int
) -> tuple[Range, Range | None]:
    """The range of a queue that is to be exported.

    @param end: up to where it is exported already.
    @return: the range; and the offsets that are gone in between, if that is allowed.
    @raise DataLoss: it is not allowed, or this is not the same queue any more.
    """
    if end is None:
        return resolve_queue(origin, options, queue, now_ms), None
    first, until = bounds = origin.bounds(queue)
    if until < end.offset:
        raise DataLoss(
            f"TOPIC_RECREATED: {queue} ends at {until}, but was exported up to "
            f"{end.offset}; export into another directory"
        )
    if first < end.offset:
        seen = fingerprint_at(origin, queue, end.offset - 1)
        if end.marks and seen != end.marks[0][1:]:
            raise DataLoss(
                f"TOPIC_RECREATED: message {end.offset - 1} of {queue} is another one "
                "than the one exported; export into another directory"
            )
    until = min(until, ending_offset(origin, options, queue, bounds, now_ms))
    if first <= end.offset:
        return Range(queue, end.offset, max(end.offset, until)), None
    gone = Range(queue, end.offset, first)
    if options.fail_on_data_loss:
        raise DataLoss(f"the messages {gone} were deleted before they were exported")
    return Range(queue, first, max(first, until)), gone


def cut_by_hour(origin: Origin, wanted: Range) -> Iterator[tuple[Range, int]]:
    """The parts of a range that were stored in the same hour.

    Only hours in which something was stored are looked for. Where a clock went back,
    a part belongs to the hour of its first message.

    @return: the parts, and a store time of each.
    """
    queue, position = wanted.queue, wanted.start
    last_ms = fingerprint_at(origin, queue, wanted.until - 1).store_ms
    while position < wanted.until:
        store_ms = fingerprint_at(origin, queue, position).store_ms
        hour_end = (store_ms // HOUR_MS + 1) * HOUR_MS
        until = wanted.until
        if last_ms >= hour_end:
            found = origin.offset_at(queue, hour_end)
            until = min(max(found, position + 1), wanted.until)
        yield Range(queue, position, until), store_ms
        position = until


def cut_by_size(origin: Origin, wanted: Range, target: int) -> Iterator[Range]:
    """The parts of a range that make files of about C{target} bytes each."""
    first = Range(wanted.queue, wanted.start, min(wanted.until, wanted.start + SAMPLE))
    layout = first_messages(origin, first)
    average = max(1, len(layout.data) // max(1, layout.size))
    most = max(1, min(target // average, MAX_ROWS))
    number = -(-wanted.size // most)
    borders = [wanted.start + wanted.size * n // number for n in range(number + 1)]
    for start, until in pairwise(borders):
        yield Range(wanted.queue, start, until)


def make_plan(
    origin: Origin,
    options: ReadOptions,
    ends: Mapping[Queue, End],
    number: int,
    now_ms: int,
    target: int = TARGET_BYTES,
) -> Plan | None:
    """The plan of the next run.

    @param options: with exactly one topic.
    @param ends: up to where each queue is exported.
    @param number: the plan's number.
    @param now_ms: the time.
    @param target: how large a file becomes.
    @return: None if there is nothing new.
    @raise DataLoss: see L{start_of}.
    """
    (topic,) = wanted_topics(origin, options)
    ranges: list[Range] = []
    lost: list[Lost] = []
    files: list[FileTask] = []
    for queue in wanted_queues(origin, options):
        wanted, gone = start_of(origin, options, queue, ends.get(queue), now_ms)
        if gone is not None:
            lost.append(Lost(gone, f"{queue} begins at {wanted.start}"))
        if wanted.size <= 0:
            continue
        ranges.append(wanted)
        for part, store_ms in cut_by_hour(origin, wanted):
            for piece in cut_by_size(origin, part, target):
                files.append(FileTask(file_path([piece], store_ms), (piece,)))
    if not ranges and not lost:
        return None
    return Plan(number, topic, now_ms, tuple(ranges), tuple(files), tuple(lost))

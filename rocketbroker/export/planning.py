# -*- test-case-name: tests.export.test_planning -*-
"""From the offsets of a topic, and those exported already, to a plan.

A run goes on where the last commit ended; what it covers is fixed here, and of which
messages it is, and how L{file_split<rocketbroker.export.file_split>} makes files of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rocketbroker.export.file_split import cut
from rocketbroker.export.plan_check import check_end, marks_of, reading_of, source_of
from rocketbroker.export.plans import End, Lost, Plan
from rocketbroker.sources.options import ReadOptions, named_queues
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.resolving import (
    after_export,
    check_names,
    ending_offset,
    resolve_queue,
    wanted_queues,
    wanted_topics,
)
from rocketbroker.sources.source import DataLoss, Origin

#: How large a file becomes, about: bytes of the log.
TARGET_BYTES: Final = 128 * 1024 * 1024


def start_of(
    origin: Origin, options: ReadOptions, queue: Queue, end: End | None, now_ms: int
) -> tuple[Range, Range | None]:
    """The range of a queue that is to be exported.

    @param end: up to where it is exported already.
    @return: the range; and the offsets that are gone in between, if that is allowed.
    @raise DataLoss: it is not allowed, or this is not the same queue any more.
    """
    if end is None:
        gone: list[Range] = []
        wanted = resolve_queue(origin, options, queue, now_ms, gone)
        return wanted, gone[0] if gone else None
    check_end(origin, queue, end)
    first, until = bounds = origin.bounds(queue)
    until = min(until, ending_offset(origin, options, queue, bounds, now_ms))
    if first <= end.offset:
        return Range(queue, end.offset, max(end.offset, until)), None
    missing = Range(queue, end.offset, first)
    if options.fail_on_data_loss:
        raise DataLoss(f"the messages {missing} were deleted before they were exported")
    return Range(queue, first, max(first, until)), missing


def make_plan(
    origin: Origin,
    options: ReadOptions,
    ends: Mapping[Queue, End],
    number: int,
    now_ms: int,
    target: int = TARGET_BYTES,
    tasks: int = 1,
) -> Plan | None:
    """The plan of the next run.

    @param options: with exactly one topic.
    @param ends: up to where each queue is exported.
    @param number: the plan's number.
    @param now_ms: the time.
    @param target: how large a file becomes.
    @param tasks: how many files are written at once.
    @return: None if there is nothing new. A queue that is to begin behind its first
        message is in the plan even if nothing is there yet, or the next run would begin
        elsewhere.
    @raise DataLoss: see L{start_of}.
    """
    (topic,) = wanted_topics(origin, options)
    ranges: list[Range] = []
    lost: list[Lost] = []
    queues = wanted_queues(origin, options)
    for name, given in named_queues(options):
        check_names(name, given, queues)
    if not {*queues} <= {*ends}:
        options = after_export(origin, options, queues)
    for queue in queues:
        wanted, gone = start_of(origin, options, queue, ends.get(queue), now_ms)
        if gone is not None:
            lost.append(Lost(gone, f"{queue} begins at {wanted.start}"))
        is_pinned = queue not in ends and wanted.start > origin.bounds(queue)[0]
        if wanted.size > 0 or is_pinned:
            ranges.append(wanted)
    if not ranges and not lost:
        return None
    filled = [wanted for wanted in ranges if wanted.size > 0]
    return Plan(
        number,
        topic,
        now_ms,
        tuple(ranges),
        tuple(cut(origin, filled, now_ms, target, tasks)),
        tuple(lost),
        source_of(origin, options, topic),
        {wanted.queue: marks_of(origin, wanted) for wanted in filled},
        reading_of(options),
    )

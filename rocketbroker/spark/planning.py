# -*- test-case-name: tests.spark.test_planning -*-
"""From options to offset ranges: what a read covers is fixed here, once per query.

Time bounds are half-open in store time, C{[LOWER(start), LOWER(end))}, so that
adjoining reads neither overlap nor miss a message. The Spark sheet, section 5.
"""

from __future__ import annotations

from rocketbroker.spark.options import EARLIEST, LATEST, ReadOptions
from rocketbroker.spark.origins import DataLoss, Origin
from rocketbroker.spark.ranges import Queue, Range


def resolve(origin: Origin, options: ReadOptions, now_ms: int) -> list[Range]:
    """The ranges of all queues of all topics, also the empty ones.

    @param now_ms: the time that relative times count from.
    @raise DataLoss: offsets were asked for that do not exist, unless
        C{failOnDataLoss=false}.
    """
    return [
        resolve_queue(origin, options, queue, now_ms)
        for topic in options.topics
        for queue in origin.queues(topic)
    ]


def resolve_queue(
    origin: Origin, options: ReadOptions, queue: Queue, now_ms: int
) -> Range:
    """The range of one queue.

    @raise DataLoss: as L{resolve}.
    """
    first, end = origin.bounds(queue)
    start = named(options.starting, queue)
    if options.starting_time is not None:
        start = origin.offset_at(queue, options.starting_time.at(now_ms))
    elif options.starting == LATEST:
        start = end
    elif options.starting == EARLIEST or start is None:
        # A queue that is not named begins where it begins.
        start = first
    until = named(options.ending, queue)
    if options.ending_time is not None:
        until = origin.offset_at(queue, options.ending_time.at(now_ms))
    elif until is None:
        until = end
    if options.fail_on_data_loss:
        check_bounds(Range(queue, start, until), first, end)
    start = min(max(start, first), end)
    return Range(queue, start, max(start, min(until, end)))


def named(offsets: object, queue: Queue) -> int | None:
    """The offset given for a queue by name."""
    if not isinstance(offsets, tuple):
        return None
    for topic, broker, queue_id, offset in offsets:
        if (topic, broker, queue_id) == queue:
            return int(offset)
    return None


def check_bounds(wanted: Range, first: int, end: int) -> None:
    """See that a queue has what is wanted of it.

    @param first: its first offset.
    @param end: its end.
    @raise DataLoss: it has not; the sentence gives all numbers.
    """
    if wanted.start < first and wanted.start < wanted.until:
        raise DataLoss(
            f"{wanted.queue} begins at {first}: the messages from {wanted.start} on "
            "are gone"
        )
    if wanted.start > end or wanted.until > end:
        raise DataLoss(
            f"{wanted.queue} ends at {end}, before {max(wanted.start, wanted.until)}: "
            "the topic was created anew, or its end was lost"
        )

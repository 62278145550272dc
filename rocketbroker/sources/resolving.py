# -*- test-case-name: tests.sources.test_resolving -*-
"""From options to offset ranges: what a read covers is fixed here, once per query.

Time bounds are half-open in store time, C{[LOWER(start), LOWER(end))}, so that
adjoining reads neither overlap nor miss a message. docs/facts/spark.md 5.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable
from typing import Final, TypeVar

import attrs

from rocketbroker.errors import ConfigurationError, TopicNotExist
from rocketbroker.sources.option_values import (
    EARLIEST,
    ERROR,
    LATEST,
    BeforeLatest,
    ExportEnds,
    GroupOffsets,
)
from rocketbroker.sources.options import ReadOptions, named_queues
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import DataLoss, Origin

Value = TypeVar("Value")

#: What reads the ledgers of exports. It is above this package, and in the processes
#: that plan for Spark there is nobody who could hand it over, so it goes by its name.
EXPORT_ENDS: Final = "rocketbroker.export.resume_point:export_ends"


def resolve(
    origin: Origin,
    options: ReadOptions,
    now_ms: int,
    lost: list[Range] | None = None,
) -> list[Range]:
    """The ranges of all queues of all topics, also the empty ones.

    @param now_ms: the time that relative times count from.
    @param lost: with C{failOnDataLoss=false}, the ranges that do not exist are added.
    @raise DataLoss: offsets were asked for that do not exist, unless
        C{failOnDataLoss=false}.
    @raise ConfigurationError: a name was given that does not exist.
    @raise TopicNotExist: there is no such topic.
    """
    queues = wanted_queues(origin, options)
    for name, given in named_queues(options):
        check_names(name, given, queues)
    options = after_export(origin, options, queues)
    return [resolve_queue(origin, options, queue, now_ms, lost) for queue in queues]


def after_export(
    origin: Origin, options: ReadOptions, queues: Iterable[Queue]
) -> ReadOptions:
    """The same options, with offsets by name where they name an export.

    @raise RocketbrokerError: see L{EXPORT_ENDS}.
    """
    if not isinstance(options.starting, ExportEnds):
        return options
    export_ends = pkgutil.resolve_name(EXPORT_ENDS)
    address, detect = options.starting.root, options.detect_reset
    return attrs.evolve(options, starting=export_ends(origin, queues, address, detect))


def wanted_queues(origin: Origin, options: ReadOptions) -> list[Queue]:
    """All queues to read, sorted within each topic.

    @raise ConfigurationError: C{assign} names what does not exist.
    @raise TopicNotExist: there is no such topic, or none matches the pattern.
    """
    topics = wanted_topics(origin, options)
    found = [queue for topic in topics for queue in origin.queues(topic)]
    check_names("assign", options.assigned, found)
    return [*options.assigned] or found


def wanted_topics(origin: Origin, options: ReadOptions) -> list[str]:
    """All topics to read, in order.

    @raise TopicNotExist: none matches the pattern.
    """
    if options.pattern:
        topics = matching(origin.topics(), options.pattern)
        if not topics:
            raise TopicNotExist(f"no topic matches {options.pattern!r}")
        return topics
    if options.assigned:
        return sorted({queue.topic for queue in options.assigned})
    return [*options.topics]


def matching(topics: Iterable[str], pattern: str) -> list[str]:
    """The topics whose whole names match a pattern."""
    found = [topic for topic in topics if re.fullmatch(pattern, topic)]
    if pattern.startswith("%"):
        return found
    return [topic for topic in found if not topic.startswith("%")]


def check_names(option: str, given: Iterable[Queue], there: Iterable[Queue]) -> None:
    """See that the queues that an option names exist.

    @raise ConfigurationError: one does not; the sentence says what does.
    """
    known = set(there)
    for queue in given:
        if queue in known:
            continue
        topic, broker, _ = queue
        brokers = sorted({each.broker for each in known if each.topic == topic})
        ids = sorted(each.queue_id for each in known if each[:2] == (topic, broker))
        if not brokers:
            raise ConfigurationError(
                f"{option} names topic {topic!r}, which is not read"
            )
        if not ids:
            raise ConfigurationError(
                f"{option} names broker {broker!r} of {topic}, which is on "
                f"{', '.join(brokers)}"
            )
        raise ConfigurationError(
            f"{option} names {queue}, which has queues {', '.join(map(str, ids))}"
        )


def resolve_queue(
    origin: Origin,
    options: ReadOptions,
    queue: Queue,
    now_ms: int,
    lost: list[Range] | None = None,
) -> Range:
    """The range of one queue.

    @param lost: as for L{resolve}.
    @raise DataLoss: as L{resolve}.
    """
    first, end = bounds = origin.bounds(queue)
    start = starting_offset(origin, options, queue, bounds, now_ms)
    until = ending_offset(origin, options, queue, bounds, now_ms)
    if options.fail_on_data_loss:
        check_bounds(Range(queue, start, until), first, end)
    elif lost is not None and start < min(first, until):
        lost.append(Range(queue, start, min(first, until)))
    start = min(max(start, first), end)
    return Range(queue, start, max(start, min(until, end)))


def starting_offset(
    origin: Origin,
    options: ReadOptions,
    queue: Queue,
    bounds: tuple[int, int],
    now_ms: int,
) -> int:
    """Where a queue begins; offsets that were given by name may lie outside of it."""
    first, end = bounds
    starting = options.starting
    time = options.starting_time or named(options.starting_times, queue)
    found: int | None = None
    if time is not None:
        strategy = options.starting_strategy
        return offset_at(origin, queue, bounds, time.at(now_ms), strategy)
    if options.starting_times:
        pass
    elif starting == EARLIEST:
        return first
    elif starting == LATEST:
        return end
    elif isinstance(starting, BeforeLatest):
        return max(first, end - starting.count)
    elif isinstance(starting, GroupOffsets):
        found = origin.group_offset(queue, starting.group)
    elif isinstance(starting, tuple):
        found = named(starting, queue)
    else:
        raise AssertionError("where an export ended was not looked up")
    if found is None:
        return end if options.missing_queues == LATEST else first
    return found


def ending_offset(
    origin: Origin,
    options: ReadOptions,
    queue: Queue,
    bounds: tuple[int, int],
    now_ms: int,
) -> int:
    """Where a queue ends; offsets that were given by name may lie outside of it."""
    time = options.ending_time or named(options.ending_times, queue)
    if time is not None:
        strategy = options.ending_strategy
        return offset_at(origin, queue, bounds, time.at(now_ms), strategy)
    found = None
    if isinstance(options.ending, tuple) and not options.ending_times:
        found = named(options.ending, queue)
    return bounds[1] if found is None else found


def offset_at(
    origin: Origin, queue: Queue, bounds: tuple[int, int], ms: int, strategy: str
) -> int:
    """The offset of the first message stored at C{ms} or later.

    @param strategy: what to do if there is none.
    @raise ConfigurationError: there is none, and that is an error.
    """
    first, end = bounds
    found = origin.offset_at(queue, ms)
    if found < end:
        return max(found, first)
    if strategy == ERROR:
        raise ConfigurationError(
            f"{queue} has no message stored at {ms} (ms since 1970) or later"
        )
    return first if strategy == EARLIEST else end


def named(given: Iterable[tuple[Queue, Value]], queue: Queue) -> Value | None:
    """What is given for a queue by name."""
    return next((value for known, value in given if known == queue), None)


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

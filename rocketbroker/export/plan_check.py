# -*- test-case-name: tests.export.test_plan_check -*-
"""The binding of plans and exports to clusters, brokers and messages, and its check.

The same command with another name server, another store, or after a topic was deleted
and made again, must not carry out a plan with other messages, nor go on with an export
of others. Each refusal is a sentence that says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.export.plans import End, Mark, Plan, PlanSource
from rocketbroker.export.queue_identity import first_mark, last_mark, other_message
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import DataLoss, Origin


def kind_of(options: ReadOptions) -> str:
    """Where messages come from, as a ledger says it."""
    return "store" if options.store else "nameServer"


def source_of(origin: Origin, options: ReadOptions, topic: str) -> PlanSource:
    """Where the messages of a topic come from."""
    brokers = sorted({queue.broker for queue in origin.queues(topic)})
    clusters = tuple(origin.clusters(topic))
    return PlanSource(kind_of(options), clusters, tuple(brokers))


def reading_of(options: ReadOptions) -> dict[str, str]:
    """The options that rows depend on."""
    return {
        "decompress": "true" if options.decompress else "false",
        "columns": ",".join(options.select),
        "tags": options.tags,
        "sqlFilter": options.sql_filter,
    }


def as_planned(options: ReadOptions, plan: Plan) -> ReadOptions:
    """The options with which a plan is carried out; version 1 has none of its own."""
    if not plan.reading:
        return options
    names = plan.reading.get("columns", "")
    return attrs.evolve(
        options,
        decompress=plan.reading.get("decompress") != "false",
        select=tuple(names.split(",")) if names else (),
        tags=plan.reading.get("tags", "*"),
        sql_filter=plan.reading.get("sqlFilter", ""),
    )


def marks_of(origin: Origin, wanted: Range) -> tuple[Mark, ...]:
    """The first and the last message of a range that can be read."""
    found = (first_mark(origin, wanted), last_mark(origin, wanted))
    return tuple(sorted({mark for mark in found if mark is not None}))


def check_plan(origin: Origin, options: ReadOptions, plan: Plan, address: str) -> None:
    """See that a plan is of what it would be carried out with.

    @param address: the export's.
    @raise ConfigurationError: it is of another cluster, or of brokers or queues that
        are not there.
    @raise DataLoss: it is of other messages.
    """
    drop = f"`rocketbroker export abandon {address} {plan.topic}` drops the plan"
    what = f"plan {plan.number} of {plan.topic}"
    here = source_of(origin, options, plan.topic)
    known = plan.source.clusters
    if known and here.clusters and not {*known} & {*here.clusters}:
        raise ConfigurationError(
            f"{what} is of cluster {names(known)}, not of {names(here.clusters)}: "
            f"name its name servers, or {drop}"
        )
    gone = {wanted.queue.broker for wanted in plan.ranges} - {*here.brokers}
    if gone:
        hint = "--broker-name says which broker a store is of"
        if not options.store:
            hint = "name the name servers that know it"
        raise ConfigurationError(
            f"{what} is of {names(gone)}, not of {names(here.brokers)}: {hint}; or "
            f"{drop}"
        )
    there = {*origin.queues(plan.topic)}
    for wanted in plan.ranges:
        if wanted.queue not in there:
            raise ConfigurationError(
                f"{what} covers {wanted.queue}, which cannot be read now: give the "
                f"topic its read queues back, or export its store's files, or {drop}"
            )
        problem = other_message(origin, wanted.queue, plan.marks.get(wanted.queue, ()))
        if problem:
            raise DataLoss(
                f"TOPIC_RECREATED: {wanted.queue} {problem} when {what} was made; "
                f"{drop}, then export into another directory"
            )


def check_end(origin: Origin, queue: Queue, end: End) -> None:
    """See that a queue is the one that was exported up to an end.

    @raise DataLoss: it is not.
    """
    _, until = origin.bounds(queue)
    problem = ""
    if until < end.offset:
        problem = f"ends at {until}, but was exported up to {end.offset}"
    else:
        found = other_message(origin, queue, end.marks)
        problem = found and f"{found} when it was exported"
    if problem:
        raise DataLoss(
            f"TOPIC_RECREATED: {queue} {problem}; export into another directory"
        )


def check_job(
    address: str, topic: str, known: PlanSource, now: PlanSource, ends: Iterable[Queue]
) -> None:
    """See that a topic goes on to be exported from where it was.

    A store's files do not say what their broker is called, nor its cluster.

    @param address: the export's.
    @param known: where it has come from so far; without kind if it has not.
    @param ends: the queues that are exported.
    @raise ConfigurationError: the same messages might come twice, under two names, or
        other ones under the same name.
    """
    if known.clusters and now.clusters and not {*known.clusters} & {*now.clusters}:
        raise ConfigurationError(
            f"{address} holds {topic} of cluster {names(known.clusters)}, not of "
            f"{names(now.clusters)}; export into another directory"
        )
    brokers = {*known.brokers, *(queue.broker for queue in ends if queue[0] == topic)}
    if not brokers or brokers & {*now.brokers}:
        return
    if known.kind == now.kind and (known.clusters or now.kind == "store"):
        # Other brokers of the same cluster, or one store after the other.
        return
    raise ConfigurationError(
        f"{address} holds {topic} of {names(brokers)}, not of {names(now.brokers)}; "
        "--broker-name says which broker a store is of"
    )


def unreadable(
    origin: Origin, topic: str, ends: Mapping[Queue, End]
) -> tuple[list[Range], list[Queue]]:
    """What a topic has in queues from which nobody may read now.

    @return: messages that are not exported; and exported queues that are not there.
    """
    there = {*origin.queues(topic)}
    known = {queue for queue in ends if queue.topic == topic}
    hidden = {*origin.hidden_queues(topic)}
    behind: list[Range] = []
    gone: list[Queue] = []
    for queue in sorted((hidden | known) - there):
        try:
            first, until = origin.bounds(queue)
        except RocketbrokerError:
            if queue in known:
                gone.append(queue)
            continue
        start = max(first, ends[queue].offset) if queue in ends else first
        if start < until:
            behind.append(Range(queue, start, until))
        elif queue in known and queue not in hidden:
            gone.append(queue)
    return behind, gone


def names(of: Iterable[str]) -> str:
    """Names in a sentence."""
    return ", ".join(sorted(of))

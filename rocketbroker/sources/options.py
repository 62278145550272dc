# -*- test-case-name: tests.sources.test_options -*-
"""The options of a read, from the words that a user gives to Spark.

Names are case-insensitive. An unknown one is refused: a misspelled C{endingOfsets} that
is passed over would export the wrong messages without a word. docs/facts/spark.md 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.access import AccessOptions
from rocketbroker.sources.option_table import BATCH, LOCAL_BROKER, OPTIONS, STREAM
from rocketbroker.sources.option_values import (
    EARLIEST,
    LATEST,
    GroupOffsets,
    Named,
    NamedTimes,
    Start,
    Time,
)
from rocketbroker.sources.ranges import MAX_RECORDS, Queue
from rocketbroker.sources.source import EVERYTHING, SQL92, TAG, Filter


@attrs.frozen
class ReadOptions(AccessOptions):
    """What a read was told; picklable, hashable.

    @ivar topics: from C{subscribe}; one of this and the next two is given.
    @ivar pattern: from C{subscribePattern}.
    @ivar assigned: from C{assign}.
    @ivar starting_times: by queue; L{starting_time} goes before them, and both before
        L{starting}. The same for ends.
    @ivar least_partitions: 0: as many as there are cores.
    @ivar select: names of columns of the set; empty for all.
    @ivar record_data_loss: without L{fail_on_data_loss}: list what is gone.
    @ivar broker_name: what the broker of a store's files is called.
    @ivar max_offsets: of a micro-batch; 0 for no limit, as in the next two.
    @ivar commit_group: empty for none.
    @ivar metrics_port: 0 for none.
    """

    name_server: str = ""
    store: str = ""
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[Queue, ...] = ()
    starting: Start = EARLIEST
    ending: str | Named = LATEST
    starting_time: Time | None = None
    ending_time: Time | None = None
    starting_times: NamedTimes = ()
    ending_times: NamedTimes = ()
    starting_strategy: str = LATEST
    ending_strategy: str = LATEST
    missing_queues: str = EARLIEST
    tags: str = "*"
    sql_filter: str = ""
    push_down: bool = False
    columns: str = "native"
    select: tuple[str, ...] = ()
    max_records: int = MAX_RECORDS
    least_partitions: int = 0
    fail_on_data_loss: bool = True
    record_data_loss: bool = False
    verify_counts: bool = True
    detect_reset: bool = True
    decompress: bool = True
    pull_batch_size: int = 1024
    pull_bytes: int = 4 << 20
    pull_concurrency: int = 4
    pull_timeout_ms: int = 30_000
    retry_timeout_ms: int = 120_000
    broker_name: str = LOCAL_BROKER
    max_offsets: int = 0
    max_bytes: int = 0
    min_offsets: int = 0
    max_delay_ms: int = 900_000
    limits_on_old_spark: bool = False
    discovery_ms: int = 30_000
    commit_group: str = ""
    metrics_port: int = 0

    @property
    def filtered(self) -> bool:
        """Whether the broker passes over some messages."""
        return self.filter != EVERYTHING

    @property
    def filter(self) -> Filter:
        """Which messages are wanted."""
        if self.sql_filter:
            return Filter(SQL92, self.sql_filter)
        return Filter(TAG, self.tags)


def parse_options(given: Mapping[str, str], purpose: str | None = BATCH) -> ReadOptions:
    """The options of a read.

    @param purpose: L{BATCH} or L{STREAM}; None if it is not known yet.
    @raise ConfigurationError: one is unknown or of no use here, or its value makes no
        sense.
    """
    words = {name.lower(): value for name, value in given.items()}
    unknown = sorted(set(words) - {option.name.lower() for option in OPTIONS})
    if unknown:
        known = ", ".join(option.name for option in OPTIONS)
        raise ConfigurationError(f"unknown option {unknown[0]!r}; known are {known}")
    values: dict[str, object] = {"starting": LATEST} if purpose == STREAM else {}
    for option in OPTIONS:
        text = words.get(option.name.lower())
        if text is None:
            continue
        if purpose is not None and purpose not in option.scope:
            raise ConfigurationError(
                f"{option.name} is an option of a {option.scope}, not of a {purpose}"
            )
        try:
            found = option.read(text.strip())
        except ValueError as error:
            raise ConfigurationError(f"{option.name}={text!r}: {error}") from None
        if len(option.attributes) == 1:
            values[option.attributes[0]] = found
        else:
            values.update(zip(option.attributes, found, strict=True))
    options = ReadOptions(**values)  # type: ignore[arg-type]  # by the table below
    check_options(options)
    return options


def check_options(options: ReadOptions) -> None:
    """See that the options go together.

    @raise ConfigurationError: they do not.
    """
    if bool(options.name_server) == bool(options.store):
        raise ConfigurationError("one of nameServer and store is needed, not both")
    options.check_access()
    if options.store and (options.tls or options.access_key):
        raise ConfigurationError("tls and accessKey go with nameServer, not with store")
    given = [
        each for each in (options.topics, options.pattern, options.assigned) if each
    ]
    if len(given) != 1:
        raise ConfigurationError(
            "subscribe is needed: topics, separated by commas; or else "
            "subscribePattern or assign, one of the three"
        )
    if 0 < options.max_offsets < options.min_offsets:
        raise ConfigurationError(
            "minOffsetsPerTrigger is more than maxOffsetsPerTrigger"
        )
    if options.sql_filter and options.tags != "*":
        raise ConfigurationError("one of tags and sqlFilter is enough, not both")
    if options.store and isinstance(options.starting, GroupOffsets):
        raise ConfigurationError(
            "startingOffsets=group: needs nameServer: brokers know what groups have "
            "consumed, a store's files do not"
        )
    for name, queues in named_queues(options):
        check_topics(options, name, queues)


def named_queues(options: ReadOptions) -> Iterable[tuple[str, list[Queue]]]:
    """The queues that options name, with the name of each such option."""
    for name, found in (
        ("startingOffsets", options.starting),
        ("endingOffsets", options.ending),
        ("startingOffsetsByTimestamp", options.starting_times),
        ("endingOffsetsByTimestamp", options.ending_times),
    ):
        if isinstance(found, tuple):
            yield name, [queue for queue, _ in found]


def check_topics(options: ReadOptions, name: str, queues: Iterable[Queue]) -> None:
    """See that an option names only what is read.

    @raise ConfigurationError: it does not.
    """
    for queue in queues:
        if options.topics and queue.topic not in options.topics:
            raise ConfigurationError(
                f"{name} names topic {queue.topic!r}, but subscribe does not"
            )
        if options.assigned and queue not in options.assigned:
            raise ConfigurationError(f"{name} names {queue}, but assign does not")

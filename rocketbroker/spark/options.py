# -*- test-case-name: tests.spark.test_options -*-
"""The options of a read, from the words that a user gives to Spark.

Names are case-insensitive. An unknown one is refused: a misspelled C{endingOfsets} that
is passed over would export the wrong messages without a word. The Spark sheet, 7.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.columns import columns_of
from rocketbroker.spark.ranges import MAX_RECORDS

#: Offsets given by name: topic, broker name, queue, offset; sorted, so that equal
#: options are equal.
Named: TypeAlias = tuple[tuple[str, str, int, int], ...]

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

#: A pull never asks for more than this, whatever the option says: the answer is one
#: frame, held in memory whole.
MAX_PULL_BYTES: Final = 64 << 20

#: The broker of a store's files is not named in them.
LOCAL_BROKER: Final = "local"


@attrs.frozen
class Time:
    """A point in time.

    @ivar ms: since 1970, or, if C{relative}, from now on (mostly negative).
    """

    ms: int
    relative: bool = False

    def at(self, now_ms: int) -> int:
        """In ms since 1970."""
        return self.ms + now_ms if self.relative else self.ms


@attrs.frozen
class ReadOptions:
    """What a read was told; picklable, hashable.

    @ivar topics: from C{subscribe}.
    @ivar starting: L{EARLIEST}, L{LATEST}, or offsets by name.
    @ivar least_partitions: 0: as many as there are cores.
    @ivar broker_name: what the broker of a store's files is called.
    """

    name_server: str = ""
    store: str = ""
    topics: tuple[str, ...] = ()
    starting: str | Named = EARLIEST
    ending: str | Named = LATEST
    starting_time: Time | None = None
    ending_time: Time | None = None
    tags: str = "*"
    columns: str = "native"
    max_records: int = MAX_RECORDS
    least_partitions: int = 0
    fail_on_data_loss: bool = True
    verify_counts: bool = True
    decompress: bool = True
    pull_batch_size: int = 1024
    pull_bytes: int = 4 << 20
    pull_concurrency: int = 4
    pull_timeout_ms: int = 30_000
    broker_name: str = LOCAL_BROKER

    @property
    def filtered(self) -> bool:
        """Whether the broker passes over some messages."""
        return self.tags != "*"


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a read.

    @raise ConfigurationError: one is unknown, or its value makes no sense.
    """
    words = {name.lower(): value for name, value in given.items()}
    unknown = sorted(set(words) - set(READERS))
    if unknown:
        known = ", ".join(name for name, _, _ in OPTIONS)
        raise ConfigurationError(f"unknown option {unknown[0]!r}; known are {known}")
    values: dict[str, object] = {}
    for name, attribute, reader in OPTIONS:
        text = words.get(name.lower())
        if text is None:
            continue
        try:
            values[attribute] = reader(text.strip())
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            raise ConfigurationError(f"{name}={text!r}: {error}") from None
    options = ReadOptions(**values)  # type: ignore[arg-type]  # by the table below
    check_options(options)
    return options


def check_options(options: ReadOptions) -> None:
    """See that the options go together.

    @raise ConfigurationError: they do not.
    """
    if bool(options.name_server) == bool(options.store):
        raise ConfigurationError("one of nameServer and store is needed, not both")
    if not options.topics:
        raise ConfigurationError("subscribe is needed: topics, separated by commas")


def topics(text: str) -> tuple[str, ...]:
    """Names separated by commas, each once."""
    return tuple(
        dict.fromkeys(filter(None, (each.strip() for each in text.split(","))))
    )


def offsets(text: str) -> str | Named:
    """C{earliest}, C{latest}, or JSON: topic to broker name to queue to offset."""
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        tree = json.loads(text)
    except ValueError:
        raise ValueError("is neither earliest nor latest nor JSON") from None
    found: list[tuple[str, str, int, int]] = []
    for topic, brokers in tree.items():
        for broker, queues in brokers.items():
            for queue, offset in queues.items():
                if type(offset) is not int or offset < 0:
                    raise ValueError(f"{offset!r} is no queue offset")
                found.append((topic, broker, int(queue), offset))
    return tuple(sorted(found))


def ending_offsets(text: str) -> str | Named:
    """The same, but an end is never the earliest."""
    found = offsets(text)
    if found == EARLIEST:
        raise ValueError("an end cannot be the earliest")
    return found


def moment(text: str) -> Time:
    """Milliseconds, ISO 8601 (UTC if it names no zone), or C{-10m} before now."""
    if re.fullmatch(r"\d+", text):
        return Time(int(text))
    match = re.fullmatch(r"-(\d+)(ms|s|m|h|d)", text)
    if match:
        return Time(-int(match[1]) * UNITS[match[2]], relative=True)
    parsed = datetime.datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=datetime.UTC)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return Time((parsed - epoch) // datetime.timedelta(milliseconds=1))


def truth(text: str) -> bool:
    """C{true} or C{false}."""
    if text.lower() not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return text.lower() == "true"


def natural(text: str) -> int:
    """A whole number of 1 or more."""
    number = int(text)
    if number < 1:
        raise ValueError("must be 1 or more")
    return number


def byte_count(text: str) -> int:
    """A number of bytes: C{65536}, C{64k}, C{4m}."""
    match = re.fullmatch(r"(\d+)\s*([kmg]?)(?:i?b)?", text.lower())
    if match is None or not int(match[1]):
        raise ValueError("is no number of bytes")
    return min(int(match[1]) * BYTES[match[2]], MAX_PULL_BYTES)


def duration(text: str) -> int:
    """A time span, C{30s} or in ms, as ms."""
    match = re.fullmatch(r"(\d+)\s*(ms|s|m|h|d)?", text)
    if match is None or not int(match[1]):
        raise ValueError("is no time span")
    return int(match[1]) * UNITS[match[2] or "ms"]


def column_set(text: str) -> str:
    """The name of a set of columns."""
    columns_of(text)
    return text.lower()


def word(text: str) -> str:
    """A text that is not empty."""
    if not text:
        raise ValueError("is empty")
    return text


#: Each option: its name, its attribute, what reads its value.
OPTIONS: Final = (
    ("nameServer", "name_server", word),
    ("store", "store", word),
    ("subscribe", "topics", topics),
    ("startingOffsets", "starting", offsets),
    ("endingOffsets", "ending", ending_offsets),
    ("startingTimestamp", "starting_time", moment),
    ("endingTimestamp", "ending_time", moment),
    ("tags", "tags", word),
    ("columns", "columns", column_set),
    ("maxRecordsPerPartition", "max_records", natural),
    ("minPartitions", "least_partitions", natural),
    ("failOnDataLoss", "fail_on_data_loss", truth),
    ("verifyCounts", "verify_counts", truth),
    ("decompress", "decompress", truth),
    ("pullBatchSize", "pull_batch_size", natural),
    ("pullBytes", "pull_bytes", byte_count),
    ("pullConcurrency", "pull_concurrency", natural),
    ("pullTimeout", "pull_timeout_ms", duration),
    ("brokerName", "broker_name", word),
)

READERS: Final = {name.lower() for name, _, _ in OPTIONS}

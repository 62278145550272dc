# -*- test-case-name: tests.sources.test_options -*-
"""The values of a read's options, and their reading from text.

Each reader raises C{ValueError} with the rest of a sentence that begins with the
option's name and its value.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, TypeVar

import attrs

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering.sql import compiled
from rocketbroker.filtering.tags import parse
from rocketbroker.records.names import group_problem, topic_problem
from rocketbroker.sources.ranges import Queue

Value = TypeVar("Value")

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
ERROR: Final = "error"

UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTES: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

#: A pull never asks for more than this, whatever the option says: the answer is one
#: frame, held in memory whole.
MAX_PULL_BYTES: Final = 64 << 20

#: The last millisecond of the year 9999.
MAX_MS: Final = 253_402_300_799_999

#: The largest number and queue offset on the wire.
MAX_INT: Final = (1 << 31) - 1
MAX_LONG: Final = (1 << 63) - 1
MAX_PORT: Final = (1 << 16) - 1

#: What offsets in JSON look like.
EXAMPLE: Final = '{"topic": {"broker-a": {"0": 5}}}'


@attrs.frozen
class Time:
    """A point in time.

    @ivar ms: since 1970, or, if C{relative}, from now on (mostly negative).
    """

    ms: int
    relative: bool = False

    def at(self, now_ms: int) -> int:
        """In ms since 1970."""
        return max(0, self.ms + now_ms) if self.relative else self.ms


@attrs.frozen
class BeforeLatest:
    """A number of messages before the end of each queue."""

    count: int


@attrs.frozen
class GroupOffsets:
    """Where a consumer group goes on."""

    group: str


@attrs.frozen
class ExportEnds:
    """Where an export into a directory ended."""

    root: str


#: Offsets given by name, sorted, so that equal options are equal.
Named: TypeAlias = tuple[tuple[Queue, int], ...]

#: Times given by name.
NamedTimes: TypeAlias = tuple[tuple[Queue, Time], ...]

#: Where a read begins: L{EARLIEST}, L{LATEST}, or one of these.
Start: TypeAlias = str | Named | BeforeLatest | GroupOffsets | ExportEnds


def by_queue(
    text: str, read: Callable[[Any], Value]
) -> tuple[tuple[Queue, Value], ...]:
    """JSON: topic to broker name to queue to a value."""
    found: dict[Queue, Value] = {}
    for topic, brokers in members(parsed(text)):
        for broker, queues in members(brokers):
            for queue_id, value in members(queues):
                queue = Queue(topic, broker, queue_number(queue_id))
                found[queue] = read(value)
    return tuple(sorted(found.items()))


def parsed(text: str) -> Any:
    """JSON of any kind."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None


def members(tree: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of a JSON object."""
    if not isinstance(tree, dict):
        raise ValueError(f"is not of the form {EXAMPLE}")
    yield from tree.items()


def queue_number(value: object) -> int:
    """The number of a queue, as text or as a number."""
    if type(value) is str and re.fullmatch("[0-9]{1,9}", value):
        return int(value)
    if type(value) is int and 0 <= value <= MAX_INT:
        return value
    raise ValueError(f"{value!r} is no number of a queue")


def queue_offset(value: object) -> int:
    """A queue offset in JSON."""
    if type(value) is not int or not 0 <= value <= MAX_LONG:
        raise ValueError(f"{value!r} is no queue offset")
    return value


def json_moment(value: object) -> Time:
    """A time in JSON: a number, or text as L{moment} reads it."""
    if type(value) not in (int, str):
        raise ValueError(f"{value!r} is no time")
    return moment(str(value))


def topics(text: str) -> tuple[str, ...]:
    """Names separated by commas, each once."""
    names = dict.fromkeys(filter(None, (each.strip() for each in text.split(","))))
    if not names:
        raise ValueError("names no topic")
    for name in names:
        problem = topic_problem(name)
        if problem is not None:
            raise ValueError(f"{name!r} is no name of a topic: {problem}")
    return tuple(names)


def pattern(text: str) -> str:
    """A regular expression for whole names of topics."""
    try:
        return re.compile(word(text)).pattern
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is no regular expression: {error}") from None


def assigned(text: str) -> tuple[Queue, ...]:
    """JSON: topic to broker name to a list of queues."""
    form = 'is not of the form {"topic": {"broker-a": [0, 1]}}'
    found: set[Queue] = set()
    tree = parsed(text)
    for brokers in tree.values() if isinstance(tree, dict) else (None,):
        if not isinstance(brokers, dict):
            raise ValueError(form)
        for queues in brokers.values():
            if not isinstance(queues, list):
                raise ValueError(form)
    for topic, brokers in tree.items():
        for broker, queues in brokers.items():
            found.update(Queue(topic, broker, queue_number(each)) for each in queues)
    if not found:
        raise ValueError("names no queue")
    return tuple(sorted(found))


def offsets(text: str) -> str | Named:
    """C{earliest}, C{latest}, or JSON: topic to broker name to queue to offset."""
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    if not text.startswith("{"):
        raise ValueError(f"is neither earliest nor latest nor JSON like {EXAMPLE}")
    return by_queue(text, queue_offset)


def starting_offsets(text: str) -> Start:
    """The same, and C{latest-N}, C{group:G}, C{export:DIR}."""
    match = re.fullmatch("(latest-|group:|export:)(.*)", text, re.I | re.S)
    if match is None:
        return offsets(text)
    kind, rest = match[1].lower(), match[2].strip()
    if kind == "latest-":
        return BeforeLatest(whole_number(rest))
    if not rest:
        raise ValueError("names nothing")
    if kind == "export:":
        return ExportEnds(rest)
    return GroupOffsets(group(rest))


def group(text: str) -> str:
    """The name of a consumer group."""
    problem = group_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text


def ending_offsets(text: str) -> str | Named:
    """C{latest} or JSON: an end is never the earliest."""
    found = offsets(text)
    if found == EARLIEST:
        raise ValueError("an end cannot be the earliest")
    return found


def moments(text: str) -> NamedTimes:
    """JSON: topic to broker name to queue to time."""
    return by_queue(text, json_moment)


def moment(text: str) -> Time:
    """Milliseconds, ISO 8601 (UTC if it names no zone), or C{-10m} before now."""
    if re.fullmatch("[0-9]+", text):
        return Time(bounded(text, MAX_MS))
    match = re.fullmatch("-([0-9]+)(ms|s|m|h|d)", text)
    if match:
        return Time(-bounded(match[1], MAX_MS) * UNITS[match[2]], relative=True)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is neither ms since 1970 nor ISO 8601 nor -10m") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return Time(max(0, (time - epoch) // datetime.timedelta(milliseconds=1)))


def bounded(digits: str, most: int) -> int:
    """A whole number."""
    if len(digits) > len(str(most)) or int(digits) > most:
        raise ValueError(f"is more than {most}")
    return int(digits)


def truth(text: str) -> bool:
    """C{true} or C{false}."""
    if text.lower() not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return text.lower() == "true"


def on_data_loss(text: str) -> tuple[bool, bool]:
    """Whether the read fails; whether it lists what is gone."""
    if text.lower() not in ("true", "false", "record"):
        raise ValueError("is neither true nor false nor record")
    return text.lower() == "true", text.lower() == "record"


def one_of(*known: str) -> Callable[[str], str]:
    """Reads one of certain words."""

    def read(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(f"is neither {' nor '.join(known)}")
        return text.lower()

    return read


def natural(text: str) -> int:
    """A whole number of 1 or more."""
    number = whole_number(text)
    if number < 1:
        raise ValueError("must be 1 or more")
    return number


def whole_number(text: str) -> int:
    """A whole number of 0 or more."""
    if not re.fullmatch("[0-9]+", text):
        raise ValueError("is no whole number")
    return bounded(text, MAX_INT)


def port(text: str) -> int:
    """The number of a port."""
    number = natural(text)
    if number > MAX_PORT:
        raise ValueError(f"must be {MAX_PORT} or less")
    return number


def byte_count(text: str) -> int:
    """How many bytes a pull asks for: C{65536}, C{64k}, C{4m}."""
    return min(size(text), MAX_PULL_BYTES)


def size(text: str) -> int:
    """A number of bytes: C{65536}, C{64k}, C{4m}."""
    match = re.fullmatch("([0-9]{1,18}) *([kmg]?)(?:i?b)?", text.lower())
    if match is None or not int(match[1]):
        raise ValueError("is no number of bytes")
    return int(match[1]) * BYTES[match[2]]


def duration(text: str) -> int:
    """A time span, C{30s} or in ms, as ms; not 0."""
    ms = time_span(text)
    if ms == 0:
        raise ValueError("must be more than 0")
    return ms


def time_span(text: str) -> int:
    """The same, and 0 is one."""
    match = re.fullmatch("([0-9]{1,9}) *(ms|s|m|h|d)?", text)
    if match is None:
        raise ValueError("is no time span")
    return int(match[1]) * UNITS[match[2] or "ms"]


def tag_expression(text: str) -> str:
    """Tags between which C{||} stands, or C{*}."""
    try:
        return parse(word(text)).expression
    except SubscriptionParseFailed as error:
        raise ValueError(error.remark) from None


def condition(text: str) -> str:
    """A condition in SQL92."""
    try:
        return compiled(word(text)).expression
    except SubscriptionParseFailed as error:
        raise ValueError(error.remark) from None


def column_names(text: str) -> tuple[str, tuple[str, ...]]:
    """The name of a set of columns, or names of columns of the native set."""
    if text.lower() in ("native", "kafka"):
        return text.lower(), ()
    names = tuple(each.strip() for each in text.split(","))
    if not all(names):
        raise ValueError("is neither native nor kafka nor names of columns")
    if len(set(names)) < len(names):
        raise ValueError("names a column twice")
    return "native", names


def word(text: str) -> str:
    """A text that is not empty."""
    if not text:
        raise ValueError("is empty")
    return text

"""Random sets of options, and a model that says what each of them reads.

A set is made of parts, each of which has its text and what it means; the model goes by
the meaning and by a list of all messages, one by one, so it shares nothing with the
code that it stands beside. Some sets are spoiled on purpose: they must be refused.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from rocketbroker.arrow.columns import KAFKA, NATIVE, columns_of
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.reading import RangeReader
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, splits
from rocketbroker.sources.resolving import resolve
from rocketbroker.sources.source import Origin


class Message(NamedTuple):
    """What the model knows of a message."""

    offset: int
    store_ms: int
    tag: str


#: Queue and offset of each row.
Rows: TypeAlias = list[tuple[Queue, int]]

#: A place in a queue: its offset, None where nothing is said.
Place: TypeAlias = Callable[[Queue, Sequence[Message]], int | None]


class Refused(Exception):
    """The model says that a read is refused."""


@attrs.frozen
class World:
    """All messages there are.

    @ivar queues: the messages that can be read.
    @ivar groups: where groups go on.
    @ivar now_ms: the time when it is read.
    """

    queues: Mapping[Queue, Sequence[Message]]
    groups: Mapping[tuple[str, Queue], int]
    now_ms: int

    @property
    def topics(self) -> list[str]:
        """The names of all topics."""
        return sorted({queue.topic for queue in self.queues})


@attrs.define
class OptionSet:
    """A set of options.

    @ivar given: names and texts.
    @ivar sound: whether each option, for itself and with the others, makes sense.
    @ivar wanted: the queues to read; None where one does not exist.
    @ivar start: where each begins, None where it is not named.
    @ivar until: where each ends.
    @ivar runs: whether the model can say what it reads.
    """

    given: dict[str, str]
    sound: bool = True
    wanted: list[Queue] | None = None
    start: Place = lambda queue, messages: first_of(messages)
    until: Place = lambda queue, messages: end_of(messages)
    tags: frozenset[str] | None = None
    strict: bool = True
    late: bool = False
    columns: Sequence[str] = tuple(NATIVE)
    runs: bool = True


def first_of(messages: Sequence[Message]) -> int:
    """The first offset."""
    return messages[0].offset if messages else 0


def end_of(messages: Sequence[Message]) -> int:
    """One more than the last offset."""
    return messages[-1].offset + 1 if messages else 0


def expected(world: World, chosen: OptionSet) -> Rows:
    """What a set of options reads.

    @raise Refused: it must not be read.
    """
    if chosen.wanted is None:
        raise Refused
    rows: Rows = []
    for queue in chosen.wanted:
        messages = world.queues[queue]
        first, end = first_of(messages), end_of(messages)
        start, until = chosen.start(queue, messages), chosen.until(queue, messages)
        if start is None:
            start = end if chosen.late else first
        if until is None:
            until = end
        if chosen.strict and (max(start, until) > end or start < min(first, until)):
            raise Refused
        rows += [
            (queue, each.offset)
            for each in messages
            if start <= each.offset < until
            and (chosen.tags is None or each.tag in chosen.tags)
        ]
    return sorted(rows)


def read(origin: Origin, options: ReadOptions, now_ms: int) -> tuple[Rows, list[str]]:
    """What is read, and the names of its columns; as a job of Spark does it."""
    rows: Rows = []
    columns = columns_of(options)
    ranges = resolve(origin, options, now_ms)
    for split in splits(ranges, options.least_partitions or 2, options.max_records):
        assert 0 < split.size <= options.max_records
        for wanted in split.ranges:
            decoder = Decoder(columns, wanted.queue.broker, options.decompress)
            for layout in RangeReader(origin, wanted, options).layouts():
                offsets = layout.front["queue_offset"].tolist()
                rows += [(wanted.queue, offset) for offset in offsets]
                batches = list(decoder.batches(layout))
                assert sum(batch.num_rows for batch in batches) == len(offsets)
                assert all(batch.schema.names == [*columns] for batch in batches)
    return sorted(rows), [*columns]


#: Values that make no sense, by option.
SPOILED: Final = {
    "nameServer": ("",),
    "store": (" ",),
    "subscribe": ("", ",", "a b", "t" * 300, "x/y"),
    "subscribePattern": ("(", "[", "*", ""),
    "assign": ("", "{}", "[]", "0", '{"t": [0]}', '{"t": {"b": [-1]}}', '{"t": {"b"'),
    "startingOffsets": ("first", "latest-", "latest--1", "group:", "export: ", "{}}")
    + (
        '{"t": 1}',
        '{"t": {"b": {"0": -1}}}',
        '{"t": {"b": {"x": 1}}}',
        "5",
        "[" * 9999,
    ),
    "endingOffsets": ("earliest", "latest-5", "group:g", '{"t": {"b": {"0": 0.5}}}'),
    "startingTimestamp": (
        "yesterday",
        "-10",
        "-5 years",
        "9" * 19,
        "2024-13-01",
        "10m",
    ),
    "endingTimestamp": ("", "tomorrow", "-1w", "2024-01-01T25:00:00"),
    "startingOffsetsByTimestamp": ("5", '{"t": {"b": {"0": null}}}', '{"t": []}'),
    "endingOffsetsByTimestamp": ("{", '{"t": {"b": {"0": "soon"}}}'),
    "startingOffsetsByTimestampStrategy": ("", "never"),
    "endingOffsetsByTimestampStrategy": ("earliest", "maybe"),
    "missingQueues": ("error", "none"),
    "tags": ("", "||", " || "),
    "sqlFilter": ("", "a >", "a = 'x", "(((", "a BETWEEN 1", "a IN ()"),
    "columns": ("", ",", "body,body", "body,,tags"),
    "maxRecordsPerPartition": ("0", "-1", "1e3", "many", "9" * 5000),
    "minPartitions": ("0", "1.5", "٣"),
    "failOnDataLoss": ("", "yes", "1"),
    "verifyCounts": ("no", "0"),
    "detectReset": ("maybe",),
    "decompress": ("on",),
    "pullBatchSize": ("0", "99999999999"),
    "pullBytes": ("0", "4t", "-1", "1.5m"),
    "pullConcurrency": ("0", "four"),
    "pullTimeout": ("0", "0s", "-1s", "soon", "1w"),
    "retryTimeout": ("-1", "2 minutes"),
    "pushDown": ("always",),
    "maxOffsetsPerTrigger": ("5",),
    "endingOfsets": ("latest",),
    "topic": ("t",),
}


class Maker:
    """Makes random sets of options.

    @ivar world: what they are about.
    """

    def __init__(
        self, world: World, where: Sequence[dict[str, str]], seed: int
    ) -> None:
        """
        @param where: the places to read from, as options.
        """
        self.world = world
        self._where = where
        self._random = Random(seed)

    def sets(self, count: int) -> Iterator[OptionSet]:
        """Random sets; two of five are spoiled."""
        for _ in range(count):
            chosen = self._sound()
            if self._random.random() < 0.4:
                self._spoil(chosen)
            yield self._in_any_case(chosen)

    def sound_sets(self, count: int) -> Iterator[OptionSet]:
        """Random sets that the model can say the rows of."""
        while count:
            chosen = self._sound()
            if chosen.runs:
                count -= 1
                yield self._in_any_case(chosen)

    def _sound(self) -> OptionSet:
        chosen = OptionSet(dict(self._random.choice(self._where)))
        topics = self._topics(chosen)
        self._start(chosen, topics)
        self._end(chosen, topics)
        self._filter(chosen)
        self._others(chosen)
        return chosen

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _topics(self, chosen: OptionSet) -> list[str]:
        """Choose topics; those that options may name."""
        random, queues = self._random, sorted(self.world.queues)
        kind = random.choice(("subscribe", "subscribe", "subscribePattern", "assign"))
        if kind == "assign":
            some = random.sample(queues, random.randint(1, len(queues)))
            chosen.given[kind] = tree(dict.fromkeys(some), as_lists=True)
            chosen.wanted = some
            return sorted({queue.topic for queue in some})
        if kind == "subscribe":
            topics = random.sample(self.world.topics, random.randint(1, 2))
            chosen.given[kind] = random.choice((",", " , ")).join(topics)
        else:
            topics = [random.choice(self.world.topics)]
            chosen.given[kind] = "|".join((*topics, "nothing-.*"))
        chosen.wanted = [queue for queue in queues if queue.topic in topics]
        return topics

    def _some_queues(self, chosen: OptionSet, topics: list[str]) -> list[Queue]:
        """Some of the queues that are read, now and then one that does not exist."""
        random, wanted = self._random, chosen.wanted or []
        some = random.sample(wanted, random.randint(0, len(wanted)))
        if "assign" not in chosen.given and self._chance(0.05):
            some.append(random.choice(self._strangers(random.choice(topics))))
            chosen.wanted = None
        return some

    def _strangers(self, topic: str) -> list[Queue]:
        broker = next(iter(self.world.queues)).broker
        return [Queue(topic, broker, 99), Queue(topic, "nobody", 0)]

    def _offset(self, queue: Queue) -> int:
        """An offset, often one that exists."""
        messages = self.world.queues.get(queue, ())
        low, high = first_of(messages), end_of(messages)
        if self._chance(0.1):
            low, high = max(0, low - 3), high + 3
        return self._random.randint(low, high)

    def _time(self) -> int:
        """A time, often one around which messages were stored."""
        queue = self._random.choice(sorted(self.world.queues))
        messages = self.world.queues[queue]
        if not messages or self._chance(0.1):
            return self._random.choice((0, self.world.now_ms + 5))
        return self._random.choice(messages).store_ms + self._random.randint(-2, 2)

    def _time_text(self, ms: int) -> str:
        kind = self._random.randrange(3)
        if kind == 0 and ms < self.world.now_ms:
            return f"-{self.world.now_ms - ms}ms"
        if kind == 1:
            epoch = datetime.datetime(1970, 1, 1)
            return (epoch + datetime.timedelta(milliseconds=ms)).isoformat()
        return str(ms)

    def _start(self, chosen: OptionSet, topics: list[str]) -> None:
        """Choose where to begin; what goes before others is chosen last."""
        random, given = self._random, chosen.given
        if self._chance(0.3):
            chosen.late = self._chance(0.5)
            given["missingQueues"] = "latest" if chosen.late else "Earliest"
        kind = random.choice(("", "word", "count", "group", "json", "json", "export"))
        if kind == "word":
            word = given["startingOffsets"] = random.choice(("earliest", "latest"))
            if word == "latest":
                chosen.start = lambda queue, messages: end_of(messages)
        elif kind == "count":
            count = random.randint(0, 30)
            given["startingOffsets"] = f"latest-{count}"
            chosen.start = lambda queue, messages: max(
                first_of(messages), end_of(messages) - count
            )
        elif kind == "group" and "store" not in given:
            name = random.choice(("readers", "strangers"))
            given["startingOffsets"] = f"group:{name}"
            chosen.start = lambda queue, messages: self.world.groups.get((name, queue))
        elif kind == "json":
            named = {
                queue: self._offset(queue)
                for queue in self._some_queues(chosen, topics)
            }
            given["startingOffsets"] = tree(named)
            chosen.start = lambda queue, messages: named.get(queue)
        elif kind == "export":
            given["startingOffsets"] = "export:/somewhere"
            chosen.runs = False
        place = self._times(chosen, topics, "starting", ("error", "latest", "earliest"))
        if place is not None:
            chosen.start = place

    def _end(self, chosen: OptionSet, topics: list[str]) -> None:
        random, given = self._random, chosen.given
        if self._chance(0.4):
            named = {
                queue: self._offset(queue)
                for queue in self._some_queues(chosen, topics)
            }
            given["endingOffsets"] = tree(named)
            chosen.until = lambda queue, messages: named.get(queue)
        elif self._chance(0.2):
            given["endingOffsets"] = random.choice(("latest", "LATEST"))
        place = self._times(chosen, topics, "ending", ("error", "latest"))
        if place is not None:
            chosen.until = place

    def _times(
        self, chosen: OptionSet, topics: list[str], side: str, strategies: Sequence[str]
    ) -> Place | None:
        """Choose times, perhaps; the place that they mean."""
        random, given = self._random, chosen.given
        strategy = "latest"
        if self._chance(0.2):
            strategy = random.choice(strategies)
            given[f"{side}OffsetsByTimestampStrategy"] = strategy
        times: dict[Queue, int] | None = None
        common: int | None = None
        if self._chance(0.2):
            some = self._some_queues(chosen, topics)
            times = {queue: self._time() for queue in some}
            texts = {queue: self._time_text(ms) for queue, ms in times.items()}
            given[f"{side}OffsetsByTimestamp"] = tree(texts)
        if self._chance(0.25):
            common = self._time()
            given[f"{side}Timestamp"] = self._time_text(common)
        if common is None and not times:
            return None

        def place(queue: Queue, messages: Sequence[Message]) -> int | None:
            ms = common if common is not None else (times or {}).get(queue)
            if ms is None:
                return None
            later = [each.offset for each in messages if each.store_ms >= ms]
            if later:
                return later[0]
            if strategy == "error":
                raise Refused
            return first_of(messages) if strategy == "earliest" else end_of(messages)

        return place

    def _filter(self, chosen: OptionSet) -> None:
        random = self._random
        tags = random.sample(("a", "b", "c"), random.randint(1, 2))
        if self._chance(0.2):
            chosen.given["tags"] = random.choice(("||", " || ")).join(tags)
            chosen.tags = frozenset(tags)
        elif self._chance(0.25):
            words = ", ".join(f"'{tag}'" for tag in tags)
            chosen.given["sqlFilter"] = f"TAGS IN ({words})"
            chosen.tags = frozenset(tags)

    def _others(self, chosen: OptionSet) -> None:
        random, given = self._random, chosen.given
        loss = random.choice(("", "", "true", "false", "record"))
        if loss:
            given["failOnDataLoss"] = loss
            chosen.strict = loss == "true"
        kind = random.randrange(4)
        if kind == 0:
            given["columns"], chosen.columns = "kafka", tuple(KAFKA)
        elif kind == 1:
            chosen.columns = random.sample([*NATIVE], random.randint(1, 5))
            given["columns"] = random.choice((",", ", ")).join(chosen.columns)
        for name, texts in {
            "maxRecordsPerPartition": ("1", "7", "1000"),
            "minPartitions": ("1", "5", "64"),
            "verifyCounts": ("true", "false"),
            "detectReset": ("true", "False"),
            "decompress": ("true", "FALSE"),
            "pullBatchSize": ("1", "5", "4096"),
            "pullBytes": ("1k", "4m", "100g", "2 MiB"),
            "pullConcurrency": ("1", "9"),
            "pullTimeout": ("5s", "30000"),
            "retryTimeout": ("0", "10s"),
            "pushDown": ("false",),
        }.items():
            if self._chance(0.15):
                given[name] = random.choice(texts)

    def _spoil(self, chosen: OptionSet) -> None:
        """Make a set one that must be refused."""
        random, given = self._random, chosen.given
        chosen.sound = False
        kind = random.randrange(8)
        if kind == 0:
            given |= {"nameServer": "a:1", "store": "/somewhere"}
        elif kind == 1:
            given.pop("nameServer", None)
            given.pop("store", None)
        elif kind == 2:
            given |= {"subscribe": "T", "subscribePattern": "U.*"}
        elif kind == 3:
            given |= {"tags": "a", "sqlFilter": "TAGS = 'a'"}
        elif kind == 4:
            for name in ("subscribePattern", "assign"):
                given.pop(name, None)
            given |= {"subscribe": "T", "endingOffsets": '{"U": {"b": {"0": 1}}}'}
        else:
            name = random.choice(sorted(SPOILED))
            given[name] = random.choice(SPOILED[name])

    def _in_any_case(self, chosen: OptionSet) -> OptionSet:
        words = [*chosen.given.items()]
        self._random.shuffle(words)
        changes = (str, str, str.lower, str.upper)
        chosen.given = {
            self._random.choice(changes)(name): text for name, text in words
        }
        return chosen


def tree(values: Mapping[Queue, Any], as_lists: bool = False) -> str:
    """JSON of values by topic, broker and queue."""
    found: dict[str, dict[str, Any]] = {}
    for queue, value in values.items():
        brokers = found.setdefault(queue.topic, {})
        if as_lists:
            brokers.setdefault(queue.broker, []).append(queue.queue_id)
        else:
            brokers.setdefault(queue.broker, {})[str(queue.queue_id)] = value
    return json.dumps(found)

# -*- test-case-name: tests.broker.stats.test_keyed_stats -*-
"""The statistics of topics and groups, by RocketMQ's names and keys.

The parts count where it happens, in plain integers. Here the integers of queues and
types of messages are added up by topic or group, and kept as samples
(L{rocketbroker.broker.stats.stats_items}). What a name means: L{NAMES}.

docs/facts/broker.md 22.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol, final

from rocketbroker.broker.stats.stats_items import (
    KEYS_A_STEP,
    MINUTE,
    VIEWS,
    Looks,
    StatsItems,
    Window,
)
from rocketbroker.records.names import SCHEDULE_CONSUMER, SCHEDULE_TOPIC
from rocketbroker.store.interfaces import IQueue

#: The kinds of keys, and their counters; the last is how often there was something.
TOPIC: Final = "topic"  # messages, bytes, sends
LEVEL: Final = "topic@queue of delayed messages"  # the same
GROUP: Final = "topic@group"  # messages, bytes, ms of reading, pulls
SENT_BACK: Final = "topic@group of messages that came back"  # messages, messages
CLUSTER: Final = "cluster"  # put, got, the same without those of the system, 0
COLUMNS: Final = {TOPIC: 3, LEVEL: 3, GROUP: 4, SENT_BACK: 2, CLUSTER: 5}

#: Name: kind of key, and which of the counters.
NAMES: Final = {
    "TOPIC_PUT_NUMS": (TOPIC, 0),
    "TOPIC_PUT_SIZE": (TOPIC, 1),
    "QUEUE_PUT_NUMS": (LEVEL, 0),
    "QUEUE_PUT_SIZE": (LEVEL, 1),
    "GROUP_GET_NUMS": (GROUP, 0),
    "GROUP_GET_SIZE": (GROUP, 1),
    "GROUP_GET_LATENCY": (GROUP, 2),
    "SNDBCK_PUT_NUMS": (SENT_BACK, 0),
    "BROKER_PUT_NUMS": (CLUSTER, 0),
    "BROKER_GET_NUMS": (CLUSTER, 1),
    "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC": (CLUSTER, 2),
    "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC": (CLUSTER, 3),
}


class SendCounter(Protocol):
    """What was sent to one queue as one type of message."""

    queue: IQueue
    topic: str
    is_system: bool
    messages: int
    bytes: int

    def appends(self) -> int:
        """How many sends it was."""


class PullCounter(Protocol):
    """What one group has pulled of one topic."""

    group: str
    topic: str
    is_system: bool
    messages: int
    bytes: int
    pulls: int
    read_ms: int


class SendCounters(Protocol):
    """The counters of L{rocketbroker.broker.send.send.SendRequests}."""

    forgotten_messages: int

    def counters(self) -> Iterable[SendCounter]:
        """All that are kept; a topic may come more than once."""


class PullCounters(Protocol):
    """The counters of L{rocketbroker.broker.pull.pull_checks.PullChecks}."""

    forgotten_messages: int

    def counters(self) -> Iterable[PullCounter]:
        """All that are kept."""


@final
class KeyedStats:
    """The statistics of a broker.

    @ivar cluster: the key of the statistics of the whole broker.
    """

    def __init__(
        self,
        seconds: Callable[[], float],
        cluster: str,
        sends: SendCounters,
        pulls: PullCounters,
        sent_back: Mapping[tuple[str, str], int],
        delivered: Callable[[], tuple[int, int]],
    ) -> None:
        """
        @param seconds: monotonic time.
        @param sent_back: the messages that came back, by group and topic.
        @param delivered: the delayed messages that were delivered, and their bytes;
            they count as the pulls of a group.
        """
        self.cluster = cluster
        self._sends = sends
        self._pulls = pulls
        self._sent_back = sent_back
        self._delivered = delivered
        self._looks = Looks(seconds)
        self._items = {
            kind: StatsItems(self._looks, columns) for kind, columns in COLUMNS.items()
        }

    def find(self, name: str, key: str) -> dict[str, Window] | None:
        """The windows of one statistic, by the names of the views; None without it.

        They are 0 until the first look after something was counted.
        """
        kind, column = NAMES.get(name, ("", 0))
        items = self._items.get(kind)
        if items is None or not (key in items or self._is_counted(kind, key)):
            return None
        return {view.name: items.window(key, view, column) for view in VIEWS}

    def _is_counted(self, kind: str, key: str) -> bool:
        """Whether something was counted for a key that is not of a level."""
        topic, _, group = key.partition("@")
        sends = (each for each in self._sends.counters() if each.messages)
        if kind == TOPIC:
            return any(each.topic == key for each in sends)
        pulls = (each for each in self._pulls.counters() if each.messages)
        if kind == GROUP:
            return any((each.topic, each.group) == (topic, group) for each in pulls)
        if kind == SENT_BACK:
            return (group, topic) in self._sent_back
        return key == self.cluster and (any(sends) or any(pulls))

    def minute(self, name: str, key: str) -> Window:
        """The last minute of one statistic."""
        kind, column = NAMES[name]
        return self._items[kind].window(key, MINUTE, column)

    def keys(self, name: str) -> list[str]:
        """All keys of a statistic."""
        return self._items[NAMES[name][0]].keys()

    def put_tps(self, topic: str) -> float:
        """How many messages came into a topic a second in the last minute."""
        return self.minute("TOPIC_PUT_NUMS", topic).tps

    def taken_tps(self, group: str, topic: str) -> float:
        """How many messages of a topic a group got a second in the last minute."""
        return self.minute("GROUP_GET_NUMS", f"{topic}@{group}").tps

    def look(self) -> Iterator[None]:
        """Take a sample, in steps."""
        items = self._items
        put = other_put = self._sends.forgotten_messages
        topics: dict[str, tuple[int, ...]] = {}
        levels: dict[str, tuple[int, ...]] = {}
        for at, sent in enumerate(self._sends.counters(), 1):
            if at % KEYS_A_STEP == 0:
                yield
            if not sent.messages:
                continue
            added = sent.messages, sent.bytes, sent.appends()
            add(topics, sent.topic, added)
            put += sent.messages
            if not sent.is_system:
                other_put += sent.messages
            elif sent.topic == SCHEDULE_TOPIC:
                add(levels, f"{sent.topic}@{sent.queue.queue_id}", added)
        yield from items[TOPIC].take(topics)
        yield from items[LEVEL].take(levels)

        got = other_got = self._pulls.forgotten_messages
        groups: dict[str, tuple[int, ...]] = {}
        for at, pulled in enumerate(self._pulls.counters(), 1):
            if at % KEYS_A_STEP == 0:
                yield
            if not pulled.messages:
                continue
            key = f"{pulled.topic}@{pulled.group}"
            numbers = pulled.messages, pulled.bytes, pulled.read_ms, pulled.pulls
            add(groups, key, numbers)
            got += pulled.messages
            if not pulled.is_system:
                other_got += pulled.messages
        messages, size = self._delivered()
        if messages:
            key = f"{SCHEDULE_TOPIC}@{SCHEDULE_CONSUMER}"
            add(groups, key, (messages, size, 0, messages))
        yield from items[GROUP].take(groups)

        back = {
            f"{topic}@{group}": (count, count)
            for (group, topic), count in self._sent_back.items()
        }
        yield from items[SENT_BACK].take(back)
        whole = (put, got, other_put, other_got, 0)
        yield from items[CLUSTER].take({self.cluster: whole} if put or got else {})
        self._looks.end()


def add(sums: dict[str, tuple[int, ...]], key: str, numbers: tuple[int, ...]) -> None:
    """Add up what has the same key."""
    before = sums.get(key)
    sums[key] = (
        numbers
        if before is None
        else tuple([one + other for one, other in zip(before, numbers, strict=True)])
    )

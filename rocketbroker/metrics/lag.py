# -*- test-case-name: tests.metrics.test_lag -*-
"""How far consumer groups are behind: C{docs/facts/security-metrics.md 5.3}."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, final

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.broker.metadata.topics import READ, WRITE, TopicTable
from rocketbroker.records.names import is_retry_topic
from rocketbroker.records.record import decode
from rocketbroker.store.interfaces import IQueue, IStore

#: How many store times one scrape reads. Each may cost a read of the disk, and a
#: scraper waits ten seconds at most; queues beyond it show no latency.
MAX_TIMES: Final = 2048

#: Topic, queue and offset of a message whose store time is wanted.
Place = tuple[str, int, int]


@final
class Lag:
    """One group in one topic.

    @ivar behind: messages that are stored and not committed.
    @ivar in_flight: messages that are pulled and not committed.
    @ivar ready: messages that are stored and not pulled.
    @ivar committed: the first message that is not committed, of each queue with one.
    @ivar pulled: the first message that is not pulled, likewise.
    """

    __slots__ = (
        "behind",
        "committed",
        "group",
        "in_flight",
        "pulled",
        "ready",
        "topic",
    )

    def __init__(self, group: str, topic: str) -> None:
        self.group = group
        self.topic = topic
        self.behind = 0
        self.in_flight = 0
        self.ready = 0
        self.committed: list[tuple[IQueue, int]] = []
        self.pulled: list[tuple[IQueue, int]] = []

    def add(self, queue: IQueue, committed: int, pulled: int) -> None:
        """Take one queue in.

        @param committed: the committed offset, L{NONE} if there is none.
        @param pulled: where the group pulls next, L{NONE} if it never did.
        """
        end = queue.max_offset
        if end <= 0:
            return
        self.behind += end if committed == NONE else max(0, end - committed)
        self.ready += end if pulled == NONE else max(0, end - pulled)
        if pulled != NONE:
            self.in_flight += (
                pulled if committed == NONE else max(0, pulled - committed)
            )
        for offset, places in ((committed, self.committed), (pulled, self.pulled)):
            first = max(offset, queue.min_offset)
            if first < end:
                places.append((queue, first))

    def age(self, times: Mapping[Place, int], now: int, pulled: bool) -> int:
        """The age in ms of the oldest message that waits; 0 if none does."""
        places = self.pulled if pulled else self.committed
        stored = [
            time
            for queue, offset in places
            if (time := times.get((queue.topic, queue.queue_id, offset), -1)) > 0
        ]
        return max(0, now - min(stored)) if stored else 0


def lags_of(
    consumers: ConsumerRegistry, topics: TopicTable, offsets: OffsetTable, store: IStore
) -> list[Lag]:
    """How far each group that is online is behind in each topic that it wants."""
    found = []
    for group in consumers.groups():
        for topic in group.subscriptions:
            config = topics.config(topic)
            if config is None or is_retry_topic(topic):
                continue
            if not config.perm & (READ | WRITE):
                continue
            lag = Lag(group.name, topic)
            for queue_id in range(config.write_queue_nums):
                lag.add(
                    store.queue(topic, queue_id),
                    offsets.query(group.name, topic, queue_id),
                    offsets.pull_offset(group.name, topic, queue_id),
                )
            found.append(lag)
    return found


def overdue(lag: Lag) -> Iterator[tuple[IQueue, int]]:
    """The messages whose store times C{lag} wants."""
    yield from lag.committed
    yield from lag.pulled


def read_times(store: IStore, wanted: Iterable[tuple[IQueue, int]]) -> dict[Place, int]:
    """I{Blocking.} The store times of messages in ms, -1 for unreadable ones."""
    times: dict[Place, int] = {}
    for queue, offset in wanted:
        if len(times) >= MAX_TIMES:
            break
        place = queue.topic, queue.queue_id, offset
        if place not in times:
            times[place] = store.store_time(queue, offset)
    return times


def first_store_time(store: IStore) -> int:
    """I{Blocking.} When the oldest record was stored; -1 if there is none."""
    record = store.record_at(store.min_position)
    return -1 if record is None else decode(record).store_ms

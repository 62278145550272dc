# -*- test-case-name: tests.metrics.test_lag -*-
"""The lag of consumer groups: C{docs/facts/security-metrics.md 5.3}.

RocketMQ shows groups that are online. Here a group without members that has committed
offsets keeps its lag: what nobody consumes is what an operator has to know of. It has
nothing in flight, as its next pull begins where it has committed.

Groups that broadcast have no lag here, though RocketMQ shows all messages as theirs:
their members keep offsets themselves, and what a broker knows of them says nothing.

Ages need store times, which stand in the log and may cost a read of the disk each. So
families are written in two steps, and what is still missing is read between them, in a
thread. Times are known from scrape to scrape as long as no offset moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, final

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.clients.consumers import BROADCASTING
from rocketbroker.broker.metadata.message_request_mode import POP
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.broker.metadata.topics import READ, WRITE
from rocketbroker.config.keyed import text_of
from rocketbroker.metrics.samples import Samples, Values
from rocketbroker.records.names import (
    is_retry_topic,
    is_system_group,
    pop_retry_topic,
)
from rocketbroker.store.interfaces import IQueue
from rocketbroker.wire.bodies.topics import TopicConfig

#: How many store times one scrape reads. Each may cost a read of the disk, and a
#: scraper waits ten seconds at most; what is beyond it has its turn in a later scrape.
MAX_TIMES: Final = 2048

#: So many are read in one go. A thread that computes holds the interpreter for as long
#: as that takes, half a millisecond here.
BATCH_SIZE: Final = 16

#: So many offline groups are passed over in one step.
PASSED: Final = 64

#: A queue and the first message of it that waits.
Place: TypeAlias = tuple[IQueue, int]

#: A topic, and the hash of the places in it.
Places: TypeAlias = tuple[str, int]


@final
class Lag:
    """One group in one topic.

    @ivar behind: messages that are stored and not committed.
    @ivar in_flight: messages that are pulled and not committed.
    @ivar ready: messages that are stored and not pulled.
    @ivar committed: the first message that is not committed, of each queue with one.
    @ivar pulled: the first message that is not pulled, likewise.
    """

    __slots__ = ("behind", "committed", "in_flight", "pulled", "ready")

    def __init__(self) -> None:
        self.behind = 0
        self.in_flight = 0
        self.ready = 0
        self.committed: list[Place] = []
        self.pulled: list[Place] = []

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
        least = queue.min_offset
        for offset, places in ((committed, self.committed), (pulled, self.pulled)):
            first = max(offset, least)
            if first < end:
                places.append((queue, first))


@final
class _Families:
    """The families of one scrape."""

    def __init__(self, samples: Samples) -> None:
        gauges = samples.gauges
        self.members = gauges(
            "rocketbroker_group_members", "members of a group; 0: it is offline"
        )
        self.behind = gauges(
            "rocketmq_consumer_lag_messages", "messages stored, not committed"
        )
        self.in_flight = gauges(
            "rocketmq_consumer_inflight_messages", "messages pulled, not committed"
        )
        self.ready = gauges(
            "rocketmq_consumer_ready_messages", "messages stored, not pulled"
        )
        self.age = gauges(
            "rocketmq_consumer_lag_latency_milliseconds",
            "age of the oldest message that is not committed",
        )
        self.age_pulled = gauges(
            "rocketmq_consumer_queueing_latency_milliseconds",
            "age of the oldest message that is not pulled",
        )


@final
class LagFamilies:
    """The lags of all groups, scrape by scrape.

    For each scrape L{measure} comes first, then each of L{batches} in a thread, then
    L{add_ages}.

    @ivar broadcasting: the groups that broadcast, or did when they were last online at
        a scrape: what they may have committed before is no progress of theirs.
    """

    def __init__(self, broker: Broker, max_times: int = MAX_TIMES) -> None:
        self.broadcasting: set[str] = set()
        self._broker = broker
        self._max_times = max_times
        # The store time of the oldest message of some places; -1: it cannot be read.
        self._oldest: dict[Places, int] = {}
        self._unread: dict[Places, list[Place]] = {}
        self._waiting: list[tuple[Values, str, Places]] = []

    def note_models(self) -> None:
        """See which groups broadcast now."""
        found, groups = self.broadcasting, self._broker.metadata.groups
        found.difference_update([g for g in found if groups.config(g) is None])
        for group in self._broker.clients.consumers.groups():
            if group.message_model == BROADCASTING:
                found.add(group.name)
            else:
                found.discard(group.name)

    def measure(self, samples: Samples, now: int) -> Iterator[None]:
        """Write all that needs no store time that is not known, after L{note_models}.

        @param now: the time of day in ms.
        """
        broker, families = self._broker, _Families(samples)
        known, self._oldest = self._oldest, {}
        self._unread, self._waiting = {}, []
        self._room = self._max_times
        online = broker.clients.consumers.groups()
        for group in online:
            name = group.name
            families.members.add(
                samples.labels(consumer_group=name), len(group.members)
            )
            if name in self.broadcasting:
                continue
            for topic in list(group.subscriptions):
                self._add(samples, families, name, topic, True, now, known)
                yield
        names = {group.name for group in online}
        shown: set[str] = set()
        for at, key in enumerate(broker.metadata.offsets.keys()):
            if at % PASSED == 0:
                yield
            topic, _, name = key.partition("@")
            if name in names or not self._is_offline_group(name):
                continue
            if name not in shown:
                shown.add(name)
                families.members.add(samples.labels(consumer_group=name), 0)
            if name in self.broadcasting:
                continue
            self._add(samples, families, name, topic, False, now, known)
            yield

    def _is_offline_group(self, name: str) -> bool:
        """Whether a group without members is one that had some."""
        return not is_system_group(name) and (
            self._broker.metadata.groups.config(name) is not None
        )

    def _add(
        self,
        samples: Samples,
        families: _Families,
        name: str,
        topic: str,
        is_online: bool,
        now: int,
        known: Mapping[Places, int],
    ) -> None:
        """One group in one topic.

        @param known: the store times of the scrape before.
        """
        broker = self._broker
        config = broker.metadata.topics.config(topic)
        if config is None or is_retry_topic(topic):
            return
        if not config.perm & (READ | WRITE):
            return
        pops = self._pops(name, topic)
        if pops:
            retry = self._popped(name, self._retry_topics(name, topic))
            self._show(samples, families, name, topic, retry, True, now, known)
            lag = self._popped(name, [topic])
        else:
            lag = self._pulled(name, config, is_online)
        self._show(samples, families, name, topic, lag, False, now, known)

    def _pulled(self, name: str, config: TopicConfig, is_online: bool) -> Lag:
        """A group that pulls."""
        lag, broker, topic = Lag(), self._broker, config.topic_name
        committed, pulled = broker.metadata.offsets.progress(name, topic)
        if not is_online:
            pulled = committed
        for queue_id in range(config.write_queue_nums):
            lag.add(
                broker.store.queue(topic, queue_id),
                committed.get(queue_id, NONE),
                pulled.get(queue_id, NONE),
            )
        return lag

    def _pops(self, name: str, topic: str) -> bool:
        """Whether a group pops a topic."""
        broker = self._broker
        group = broker.clients.consumers.group(name)
        if group is not None and group.consume_type == "CONSUME_POP":
            return True
        return broker.metadata.request_modes.mode(topic, name).mode == POP

    def _retry_topics(self, name: str, topic: str) -> list[str]:
        names = [pop_retry_topic(name, topic, v2) for v2 in (False, True)]
        return [
            each
            for each in names
            if self._broker.metadata.topics.config(each) is not None
        ]

    def _popped(self, name: str, topics: list[str]) -> Lag:
        """A group that pops: what is in flight is counted, not told by offsets."""
        lag, broker, progress = Lag(), self._broker, self._broker.pop.progress
        for topic in topics:
            config = broker.metadata.topics.config(topic)
            for queue_id in range(config.write_queue_nums if config else 0):
                queue, place = (
                    broker.store.queue(topic, queue_id),
                    (name, topic, queue_id),
                )
                popped = progress.next_offset(place)
                if popped == NONE:
                    # It has not begun, and RocketMQ takes it to be at the end.
                    popped = queue.max_offset
                first = max(0, popped - progress.in_flight(*place))
                lag.add(queue, first, popped)
        return lag

    def _show(
        self,
        samples: Samples,
        families: _Families,
        name: str,
        topic: str,
        lag: Lag,
        is_retry: bool,
        now: int,
        known: Mapping[Places, int],
    ) -> None:
        """Write the lag of a group in a topic.

        @param is_retry: whether it is that in the topic's retry topics.
        """
        broker = self._broker
        is_system = broker.metadata.topics.is_system(topic) or is_system_group(name)
        labels = samples.labels(
            consumer_group=name,
            topic=topic,
            is_retry=text_of(is_retry),
            is_system=text_of(is_system),
        )
        families.behind.add(labels, lag.behind)
        families.in_flight.add(labels, lag.in_flight)
        families.ready.add(labels, lag.ready)
        self._add_age(families.age, labels, topic, lag.committed, now, known)
        self._add_age(families.age_pulled, labels, topic, lag.pulled, now, known)

    def _add_age(
        self,
        family: Values,
        labels: str,
        topic: str,
        places: list[Place],
        now: int,
        known: Mapping[Places, int],
    ) -> None:
        """The age of the oldest of C{places}, now or, if it is not known, later."""
        if not places:
            family.add(labels, 0)
            return
        key = topic, hash(tuple((queue.queue_id, first) for queue, first in places))
        oldest = known.get(key)
        if oldest is not None:
            self._oldest[key] = oldest
            family.add(labels, age(oldest, now))
            return
        if key not in self._unread:
            if self._room <= 0:
                return
            self._room -= len(places)
            self._unread[key] = places
        self._waiting.append((family, labels, key))

    def batches(self) -> Iterator[list[tuple[Places, Place]]]:
        """What L{read} has to read, piece by piece."""
        wanted = [
            (key, place) for key, those in self._unread.items() for place in those
        ]
        for start in range(0, len(wanted), BATCH_SIZE):
            yield wanted[start : start + BATCH_SIZE]

    def read(self, batch: list[tuple[Places, Place]]) -> None:
        """I{Blocking.} Read some store times."""
        store, oldest = self._broker.store, self._oldest
        for key, (queue, offset) in batch:
            both = oldest.get(key, -1), store.store_time(queue, offset)
            oldest[key] = min(both) if min(both) > 0 else max(both)

    def add_ages(self, now: int) -> Iterator[None]:
        """Write the ages whose store times were read."""
        for family, labels, key in self._waiting:
            family.add(labels, age(self._oldest.get(key, -1), now))
            yield
        self._unread, self._waiting = {}, []


def age(stored: int, now: int) -> int:
    """The age in ms of a message; 0 if its store time is not known."""
    return max(0, now - stored) if stored > 0 else 0

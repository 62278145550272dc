# -*- test-case-name: tests.metrics.test_broker_families -*-
"""The metrics of a broker, under RocketMQ's names where it has them.

C{docs/facts/security-metrics.md 5.3} and C{5.4}; names that begin with rocketbroker_
are ours. C{docs/metrics.rst} lists all.

Topics and groups are gone through in slices of the reactor's thread, over snapshots of
their tables, from counters without locks; what has to be read from the disk is read in
threads. What is written first is what the bound on samples leaves out last: lag before
what went in and out, and the sizes of messages at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.send_answers import SIZE_BOUNDS, QueueSends
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.broker import Broker
from rocketbroker.broker.clients.consumers import ConsumerGroup
from rocketbroker.broker.clients.members import Member
from rocketbroker.broker.stats.creation_times import CREATION_BOUNDS, CreationTimes
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.keyed import text_of
from rocketbroker.metrics.existing import ExistingNames
from rocketbroker.metrics.failures import add_access, add_limits, add_services
from rocketbroker.metrics.lag import LagFamilies
from rocketbroker.metrics.pops import add_pops
from rocketbroker.metrics.process_families import add_process, read_process
from rocketbroker.metrics.remoting_families import add_longest_turns, add_port
from rocketbroker.metrics.replica_families import add_replicas
from rocketbroker.metrics.retries import add_dead_letters, add_sent_back
from rocketbroker.metrics.samples import Samples, Values, constant_labels
from rocketbroker.metrics.store_families import (
    add_disk,
    add_followers,
    add_oldest,
    add_positions,
    add_store,
    first_store_time,
)
from rocketbroker.metrics.timers import add_timers
from rocketbroker.metrics.transactions import add_transactions
from rocketbroker.metrics.worker_families import add_workers
from rocketbroker.records.names import (
    SCHEDULE_CONSUMER,
    SCHEDULE_TOPIC,
    is_dlq_topic,
    is_retry_topic,
    is_system_group,
)
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.wire.versions import version_name
from rocketbroker.workers.workers import Workers

#: RocketMQ's labels for the consume types of a heartbeat.
CONSUME_MODES: Final = {
    "CONSUME_ACTIVELY": "pull",
    "CONSUME_PASSIVELY": "push",
    "CONSUME_POP": "pop",
}

#: RocketMQ's labels for what became of a request.
STATUSES: Final = {True: "success", False: "failure"}

#: So many counters of queues are added up in one step, and so many topics or groups are
#: written: some fifty microseconds.
QUEUES_A_STEP: Final = 32
TOPICS_A_STEP: Final = 8


@final
class _Sends:
    """What was sent to one topic as one type of message."""

    __slots__ = ("beyond_average", "bytes", "messages", "sizes")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.beyond_average = 0
        self.sizes = [0] * (len(SIZE_BOUNDS) + 1)

    def add(self, queue: QueueSends) -> None:
        """Take one queue in."""
        self.messages += queue.messages
        self.bytes += queue.bytes
        self.beyond_average += queue.beyond_average
        sizes = self.sizes
        sizes[0] += queue.small
        for at, count in enumerate(queue.sizes):
            if count:
                sizes[at] += count


@final
class BrokerFamilies:
    """The families of one broker.

    @ivar scrapes: how often they were collected.
    """

    def __init__(
        self,
        broker: Broker,
        ports: dict[str, ConnectionGroup],
        wall_ms: Callable[[], int],
        in_thread: InThread,
        workers: Workers | None = None,
    ) -> None:
        """
        @param ports: the connections of each port, by its name.
        @param in_thread: runs what may wait for the disk.
        @param workers: those of the broker, if it has any.
        """
        self.scrapes = 0
        self._broker = broker
        self._ports = ports
        self._wall_ms = wall_ms
        self._in_thread = in_thread
        self._workers = workers
        self._lags = LagFamilies(broker)
        self._existing = ExistingNames(broker.metadata.topics, broker.metadata.groups)
        options = broker.settings.broker
        self._common = {
            **constant_labels(options.metrics_label),
            "cluster": options.broker_cluster_name,
            "node_type": "broker",
            "node_id": options.broker_name,
        }

    @property
    def _options(self) -> BrokerOptions:
        """The settings in force."""
        return self._broker.settings.broker

    def collect(self, names: frozenset[str]) -> Deferred[Samples]:
        """The families as they are now; once at a time.

        @param names: the samples that are wanted, by their final names; empty: all.
        """
        most = self._options.rocketbroker_max_metric_samples
        samples = Samples(self._common, names, most)
        return Deferred.fromCoroutine(self._collected(samples))

    async def _collected(self, samples: Samples) -> Samples:
        self.scrapes += 1
        options, broker = self._options, self._broker
        run = partial(broker.slices.run, self)
        self._lags.note_models()
        if options.enable_lag_and_dlq_metrics:
            await run(self._lags.measure(samples, self._wall_ms()))
            for batch in self._lags.batches():
                await self._in_thread(partial(self._lags.read, batch))
            await run(self._lags.add_ages(self._wall_ms()))
        oldest = -1
        if options.enable_message_store_metrics:
            oldest = await self._in_thread(partial(first_store_time, broker.store))
        process = await self._in_thread(read_process)
        await run(self._add_topics_and_groups(samples))
        self._add_totals(samples, oldest)
        add_process(samples, process)
        return samples

    def _add_topics_and_groups(self, samples: Samples) -> Iterator[None]:
        options, broker, existing = self._options, self._broker, self._existing
        if options.enable_lag_and_dlq_metrics:
            letters = broker.send.dead_letters.counts
            yield from add_dead_letters(
                samples, letters, broker.metadata.topics, existing
            )
        if options.enable_connection_metrics:
            yield from self._add_consumers(samples)
            yield from self._add_producers(samples)
        if options.enable_transaction_metrics:
            yield from add_transactions(samples, broker.transactions, existing)
        if options.enable_pop_metrics:
            yield from add_pops(samples, broker.pop, self._wall_ms(), existing)
        if options.enable_message_store_metrics:
            yield from add_timers(samples, broker.timer.service, existing)
        if options.enable_request_metrics:
            yield from add_sent_back(samples, broker.send.send_back, existing)
            yield from self._add_pulls(samples)
            yield from self._add_sends(samples)

    def _add_totals(self, samples: Samples, oldest: int) -> None:
        """What is not of single topics and groups.

        @param oldest: the store time of the oldest message.
        """
        options, broker = self._options, self._broker
        if options.enable_stats_metrics:
            self._add_stats(samples)
        if options.enable_request_metrics:
            self._add_delays(samples)
            add_creations(samples, broker.figures.creation_times)
        if options.enable_connection_metrics:
            self._add_problems(samples)
        if options.enable_message_store_metrics:
            add_positions(samples, broker.store)
            add_store(samples, broker)
            add_oldest(samples, oldest, self._wall_ms())
            add_disk(samples, broker.store)
            add_services(samples, broker.services)
            add_limits(samples, broker)
            add_access(samples, broker)
            add_followers(samples, broker)
            add_replicas(samples, broker, self._wall_ms())
        for name, group in self._ports.items():
            add_port(samples, name, group, options.enable_remoting_metrics)
        add_workers(samples, self._workers)
        calls = self._broker.services.calls.values()
        add_longest_turns(samples, self._ports, self._broker.slices, calls)
        samples.gauge(
            "rocketbroker_metric_samples_left_out",
            "samples of topics and groups beyond rocketbrokerMaxMetricSamples",
            samples.left_out,
        )

    def _add_stats(self, samples: Samples) -> None:
        broker = self._broker
        gauge = samples.gauge
        for processor, size in (
            ("send", broker.appends.group_commit.waiting),
            ("pull", broker.pull.long_polling.held_everywhere),
        ):
            gauge(
                "rocketmq_processor_watermark",
                "requests that wait: sends for the disk, pulls for messages",
                size,
                processor=processor,
            )
        gauge(
            "rocketmq_broker_permission",
            "brokerPermission",
            self._options.broker_permission,
        )
        name_servers = len(broker.registration.name_servers.current)
        gauge(
            "rocketbroker_name_servers", "name servers, as they are known", name_servers
        )
        gauge(
            "rocketbroker_name_servers_unreachable",
            "name servers whose last registration failed",
            len(broker.registration.registration.unreachable),
        )
        gauge("rocketmq_topic_number", "topics", len(broker.metadata.topics))
        gauge(
            "rocketmq_consumer_group_number",
            "consumer groups",
            len(broker.metadata.groups),
        )
        filters = broker.clients.filters
        gauge("rocketbroker_sql_filters", "SQL92 filters", len(filters.all()))
        samples.counter(
            "rocketbroker_sql_filters_refused_total",
            "SQL92 filters that do not compile, or are beyond the limit",
            filters.refused,
        )

    def _add_sends(self, samples: Samples) -> Iterator[None]:
        sends: dict[tuple[str, str], _Sends] = {}
        for at, queue in enumerate(self._broker.send.sending.counters()):
            if at % QUEUES_A_STEP == 0:
                yield
            if queue.messages:
                key = queue.topic, queue.message_type
                each = sends.get(key)
                if each is None:
                    each = sends[key] = _Sends()
                each.add(queue)
        messages = samples.counters("rocketmq_messages_in_total", "messages stored")
        size = samples.counters("rocketmq_throughput_in_total", "bytes stored")
        written: list[tuple[str, _Sends]] = []
        for at, ((topic, message_type), each) in enumerate(sends.items()):
            if at % TOPICS_A_STEP == 0:
                yield
            if is_retry_topic(topic) or is_dlq_topic(topic):
                continue
            if not self._existing.topic(topic):
                continue
            labels = samples.labels(
                topic=topic,
                message_type=message_type,
                is_system=text_of(self._broker.metadata.topics.is_system(topic)),
            )
            messages.add(labels, each.messages)
            size.add(labels, each.bytes)
            written.append((labels, each))
        sizes = samples.histograms(
            "rocketmq_message_size",
            "bytes of a message, averaged over those of one request",
            SIZE_BOUNDS,
        )
        for at, (labels, each) in enumerate(written):
            if at % TOPICS_A_STEP == 0:
                yield
            sizes.add(labels, each.sizes, each.bytes - each.beyond_average)

    def _add_pulls(self, samples: Samples) -> Iterator[None]:
        messages = samples.counters("rocketmq_messages_out_total", "messages pulled")
        size = samples.counters("rocketmq_throughput_out_total", "bytes pulled")
        for at, pulls in enumerate(self._broker.pull.checks.counters()):
            if at % TOPICS_A_STEP == 0:
                yield
            if is_retry_topic(pulls.topic) or is_dlq_topic(pulls.topic):
                continue
            if not self._existing.both(pulls.group, pulls.topic):
                continue
            labels = samples.labels(
                topic=pulls.topic,
                consumer_group=pulls.group,
                is_system=text_of(pulls.is_system or is_system_group(pulls.group)),
            )
            messages.add(labels, pulls.messages)
            size.add(labels, pulls.bytes)

        # RocketMQ counts delivery as the pulls of a group of its own.
        schedule = self._broker.schedule.service
        if (
            schedule.delivered
            and self._broker.settings.store.enable_schedule_message_stats
        ):
            labels = samples.labels(
                topic=SCHEDULE_TOPIC, consumer_group=SCHEDULE_CONSUMER, is_system="true"
            )
            messages.add(labels, schedule.delivered)
            size.add(labels, schedule.delivered_bytes)

    def _add_delays(self, samples: Samples) -> None:
        schedule = self._broker.schedule.service
        for level, (offset, end) in schedule.progress().items():
            samples.gauge(
                "rocketbroker_delayed_messages",
                "messages that wait for their delay level",
                end - offset,
                delay_level=str(level),
            )
        for name, words, value in (
            (
                "rocketbroker_delayed_delivered_total",
                "delayed messages delivered",
                schedule.delivered,
            ),
            (
                "rocketbroker_delayed_lost_total",
                "delayed messages that retention removed before they were due",
                schedule.lost,
            ),
            (
                "rocketbroker_delayed_unreadable_total",
                "delayed messages that cannot be read, or have no topic to go to",
                schedule.unreadable,
            ),
            (
                "rocketbroker_delayed_refused_total",
                "delayed messages that are too large for the store",
                schedule.refused,
            ),
            (
                "rocketbroker_delayed_retries_total",
                "deliveries that the store refused and that were tried again",
                schedule.failures,
            ),
        ):
            samples.counter(name, words, value)

    def _add_producers(self, samples: Samples) -> Iterator[None]:
        producers = self._broker.clients.producers
        found: Counter[tuple[str, str]] = Counter()
        for at, name in enumerate(producers.names()):
            if at % TOPICS_A_STEP == 0:
                yield
            found.update(releases(producers.members(name)))
        connections = samples.gauges(
            "rocketmq_producer_connections",
            "producers that are connected, once per group",
        )
        for (language, version), count in found.items():
            labels = samples.labels(
                language=language, version=version, protocol_type="remoting"
            )
            connections.add(labels, count)

    def _add_consumers(self, samples: Samples) -> Iterator[None]:
        connections = samples.gauges(
            "rocketmq_consumer_connections", "consumers that are connected"
        )
        for at, group in enumerate(self._broker.clients.consumers.groups()):
            if at % TOPICS_A_STEP == 0:
                yield
            self._add_group(samples, connections, group)

    def _add_group(
        self, samples: Samples, connections: Values, group: ConsumerGroup
    ) -> None:
        found = Counter(releases(group.members.values()))
        for (language, version), count in found.items():
            labels = samples.labels(
                consumer_group=group.name,
                language=language,
                version=version,
                consume_mode=CONSUME_MODES.get(group.consume_type or "", "unknown"),
                protocol_type="remoting",
                is_system=text_of(is_system_group(group.name)),
            )
            connections.add(labels, count)

    def _add_problems(self, samples: Samples) -> None:
        diagnosis = self._broker.diagnostics.diagnosis
        for (kind, new), count in diagnosis.counts().items():
            samples.gauge(
                "rocketbroker_group_problems",
                "problems of consumer groups now; new: for some minutes only",
                count,
                kind=kind,
                new=text_of(new),
            )
        for kind, count in diagnosis.found.items():
            samples.counter(
                "rocketbroker_group_problems_found_total",
                "problems of consumer groups found since the start",
                count,
                kind=kind,
            )

        samples.counter(
            "rocketbroker_pulls_refused_total",
            "pulls refused because the group or the topic may not be read",
            diagnosis.refusals.count,
        )


def add_creations(samples: Samples, times: CreationTimes) -> None:
    """Add how long requests took that make or change topics and groups."""
    for (succeeded, is_system), each in times.topics.items():
        samples.histogram(
            "rocketmq_topic_create_execution_time_milliseconds",
            "how long requests took that make or change topics",
            CREATION_BOUNDS,
            each.counts,
            each.total_ms,
            invocation_status=STATUSES[succeeded],
            is_system=text_of(is_system),
        )
    for succeeded, each in times.groups.items():
        samples.histogram(
            "rocketmq_consumer_group_create_execution_time_milliseconds",
            "how long requests took that make or change groups",
            CREATION_BOUNDS,
            each.counts,
            each.total_ms,
            invocation_status=STATUSES[succeeded],
        )


def releases(members: Iterable[Member]) -> Iterator[tuple[str, str]]:
    """The language and the release of each client."""
    for member in members:
        yield (member.language or "").lower(), version_name(member.version)

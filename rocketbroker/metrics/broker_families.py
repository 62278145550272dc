# -*- test-case-name: tests.metrics.test_broker_families -*-
"""The metrics of a broker, under RocketMQ's names where it has them.

C{docs/facts/security-metrics.md 5.3} and C{5.4}; names that begin with rocketbroker_
are ours. C{docs/metrics.rst} lists all. A store time has to be read from the log,
which may wait for the disk; so a scrape has two steps: L{BrokerFamilies.prepare} reads
all that it will need in a thread, and L{BrokerFamilies.collect} makes the families on
the reactor's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.broker import Broker
from rocketbroker.broker.clients.consumers import ConsumerGroup
from rocketbroker.broker.send.append_batcher import SIZE_BOUNDS, QueueSends
from rocketbroker.metrics.failures import add_limits, add_periodic, periodic_calls
from rocketbroker.metrics.lag import (
    Lag,
    first_store_time,
    lags_of,
    overdue,
    read_times,
)
from rocketbroker.metrics.remoting_families import add_longest_turns, add_port
from rocketbroker.metrics.retries import add_dead_letters, add_sent_back
from rocketbroker.metrics.samples import Samples, constant_labels
from rocketbroker.metrics.store_families import (
    add_disk,
    add_followers,
    add_oldest,
    add_positions,
    add_store,
)
from rocketbroker.metrics.transactions import add_transactions
from rocketbroker.metrics.versions import version_name
from rocketbroker.records.names import (
    SCHEDULE_CONSUMER,
    SCHEDULE_TOPIC,
    is_dlq_topic,
    is_retry_topic,
    is_system_group,
)
from rocketbroker.remoting.connection_group import ConnectionGroup

if TYPE_CHECKING:
    from prometheus_client.core import Metric

#: RocketMQ's labels for the consume types of a heartbeat.
CONSUME_MODES: Final = {
    "CONSUME_ACTIVELY": "pull",
    "CONSUME_PASSIVELY": "push",
    "CONSUME_POP": "pop",
}


def text_of(value: bool) -> str:
    """A boolean as a label."""
    return "true" if value else "false"


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
    ) -> None:
        """
        @param ports: the connections of each port, by its name.
        @param in_thread: runs what may wait for the disk.
        """
        self.scrapes = 0
        self._broker = broker
        self._ports = ports
        self._wall_ms = wall_ms
        self._in_thread = in_thread
        self._times: dict[tuple[str, int, int], int] = {}
        self._oldest = -1
        options = broker.settings.broker
        self._options = options
        self._common = {
            **constant_labels(options.metrics_label),
            "cluster": options.broker_cluster_name,
            "node_type": "broker",
            "node_id": options.broker_name,
        }

    def prepare(self) -> Deferred[None]:
        """Read the store times that the next L{collect} shows."""
        broker = self._broker
        store = broker.store
        wanted = [queue for lag in self._lags() for queue in overdue(lag)]

        def read() -> None:
            self._times = read_times(store, wanted)
            self._oldest = first_store_time(store)

        return self._in_thread(read)

    def collect(self) -> list[Metric]:
        """The families as they are now."""
        self.scrapes += 1
        samples = Samples(self._common)
        options = self._options
        if options.enable_stats_metrics:
            self._add_stats(samples)
        if options.enable_request_metrics:
            self._add_sends(samples)
            self._add_pulls(samples)
            self._add_delays(samples)
            add_sent_back(samples, self._broker.send_back)
        if options.enable_connection_metrics:
            self._add_connections(samples)
            self._add_problems(samples)
        if options.enable_lag_and_dlq_metrics:
            self._add_lags(samples)
            letters = self._broker.dead_letters.counts
            add_dead_letters(samples, letters, self._broker.topics)
        if options.enable_message_store_metrics:
            add_positions(samples, self._broker.store)
            add_store(samples, self._broker)
            add_oldest(samples, self._oldest, self._wall_ms())
            add_disk(samples, self._broker.store)
            add_periodic(samples, self._broker)
            add_limits(samples, self._broker)
            add_followers(samples, self._broker)
        if options.enable_transaction_metrics:
            add_transactions(samples, self._broker.transactions)
        for name, group in self._ports.items():
            add_port(samples, name, group, options.enable_remoting_metrics)
        calls = periodic_calls(self._broker)
        add_longest_turns(samples, self._ports, self._broker.slices, calls)
        return samples.families()

    def _lags(self) -> list[Lag]:
        broker = self._broker
        return lags_of(broker.consumers, broker.topics, broker.offsets, broker.store)

    def _add_stats(self, samples: Samples) -> None:
        broker = self._broker
        gauge = samples.gauge
        for processor, size in (
            ("send", broker.group_commit.waiting),
            ("pull", broker.long_polling.held),
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
        gauge("rocketmq_topic_number", "topics", len(broker.topics.names()))
        gauge(
            "rocketmq_consumer_group_number",
            "consumer groups",
            len(broker.groups.configs()),
        )
        filters = broker.filters
        gauge("rocketbroker_sql_filters", "SQL92 filters", len(filters.all()))
        samples.counter(
            "rocketbroker_sql_filters_refused_total",
            "SQL92 filters that do not compile, or are beyond the limit",
            filters.refused,
        )

    def _add_sends(self, samples: Samples) -> None:
        merged: dict[tuple[str, str], list[QueueSends]] = {}
        for sends in self._broker.sending.counters():
            if sends.messages and not (
                is_retry_topic(sends.topic) or is_dlq_topic(sends.topic)
            ):
                key = sends.topic, sends.message_type
                merged.setdefault(key, []).append(sends)
        for (topic, message_type), parts in merged.items():
            labels = {
                "topic": topic,
                "message_type": message_type,
                "is_system": text_of(self._broker.topics.is_system(topic)),
            }
            samples.counter(
                "rocketmq_messages_in_total",
                "messages stored",
                sum(part.messages for part in parts),
                **labels,
            )
            size = sum(part.bytes for part in parts)
            samples.counter(
                "rocketmq_throughput_in_total", "bytes stored", size, **labels
            )
            columns = zip(*(part.sizes for part in parts), strict=True)
            classes = [sum(column) for column in columns]
            classes[0] += sum(part.small for part in parts)
            samples.histogram(
                "rocketmq_message_size",
                "bytes of a message, averaged over those of one request",
                SIZE_BOUNDS,
                classes,
                size - sum(part.beyond_average for part in parts),
                **labels,
            )

    def _add_pulls(self, samples: Samples) -> None:
        for pulls in self._broker.pull_checks.counters():
            if is_retry_topic(pulls.topic) or is_dlq_topic(pulls.topic):
                continue
            system = self._broker.topics.is_system(pulls.topic)
            labels = {
                "topic": pulls.topic,
                "consumer_group": pulls.group,
                "is_system": text_of(system or is_system_group(pulls.group)),
            }
            self._add_out(samples, pulls.messages, pulls.bytes, labels)

        # RocketMQ counts delivery as the pulls of a group of its own.
        schedule = self._broker.schedule
        if (
            schedule.delivered
            and self._broker.settings.store.enable_schedule_message_stats
        ):
            labels = {
                "topic": SCHEDULE_TOPIC,
                "consumer_group": SCHEDULE_CONSUMER,
                "is_system": "true",
            }
            self._add_out(samples, schedule.delivered, schedule.delivered_bytes, labels)

    def _add_out(
        self, samples: Samples, messages: int, size: int, labels: dict[str, str]
    ) -> None:
        for name, words, value in (
            ("rocketmq_messages_out_total", "messages pulled", messages),
            ("rocketmq_throughput_out_total", "bytes pulled", size),
        ):
            samples.counter(name, words, value, **labels)

    def _add_delays(self, samples: Samples) -> None:
        schedule = self._broker.schedule
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

    def _add_connections(self, samples: Samples) -> None:
        broker = self._broker
        found: dict[tuple[str, str], int] = {}
        for name in broker.producers.names():
            for member in broker.producers.members(name):
                kind = (member.language or "").lower(), version_name(member.version)
                found[kind] = found.get(kind, 0) + 1
        for (language, version), count in found.items():
            samples.gauge(
                "rocketmq_producer_connections",
                "producers that are connected, once per group",
                count,
                language=language,
                version=version,
                protocol_type="remoting",
            )
        for group in broker.consumers.groups():
            self._add_consumers(samples, group)

    def _add_problems(self, samples: Samples) -> None:
        diagnosis = self._broker.diagnosis
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

    def _add_consumers(self, samples: Samples, group: ConsumerGroup) -> None:
        found: dict[tuple[str, str], int] = {}
        for member in group.members.values():
            kind = (member.language or "").lower(), version_name(member.version)
            found[kind] = found.get(kind, 0) + 1
        for (language, version), count in found.items():
            samples.gauge(
                "rocketmq_consumer_connections",
                "consumers that are connected",
                count,
                consumer_group=group.name,
                language=language,
                version=version,
                consume_mode=CONSUME_MODES.get(group.consume_type or "", "unknown"),
                protocol_type="remoting",
                is_system=text_of(is_system_group(group.name)),
            )

    def _add_lags(self, samples: Samples) -> None:
        now = self._wall_ms()
        for lag in self._lags():
            system = self._broker.topics.is_system(lag.topic)
            labels = {
                "consumer_group": lag.group,
                "topic": lag.topic,
                "is_retry": "false",
                "is_system": text_of(system or is_system_group(lag.group)),
            }
            for name, words, value in (
                ("rocketmq_consumer_lag_messages", "stored, not committed", lag.behind),
                (
                    "rocketmq_consumer_inflight_messages",
                    "pulled, not committed",
                    lag.in_flight,
                ),
                ("rocketmq_consumer_ready_messages", "stored, not pulled", lag.ready),
                (
                    "rocketmq_consumer_lag_latency_milliseconds",
                    "age of the oldest message that is not committed",
                    lag.age(self._times, now, pulled=False),
                ),
                (
                    "rocketmq_consumer_queueing_latency_milliseconds",
                    "age of the oldest message that is not pulled",
                    lag.age(self._times, now, pulled=True),
                ),
            ):
                samples.gauge(name, words, value, **labels)

# -*- test-case-name: tests.metrics.test_exporter_families -*-
"""The metrics of the official exporter, under its names, with metricsExporterNames.

Who has dashboards and alerts for rocketmq-exporter can scrape the broker itself. The
values are those that the exporter would take from the broker's answers, rates those of
the last minute (request 315); what it asks clients for is not here.
C{docs/facts/security-metrics.md 6.2}.

Each sample has the broker's common labels, besides, of which C{cluster} is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final, final

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.metrics.existing import Existing
from rocketbroker.metrics.samples import Samples
from rocketbroker.records.names import (
    DLQ_PREFIX,
    is_dlq_topic,
    is_retry_topic,
    is_system_group,
)

#: So many topics or groups are written in one step.
KEYS_A_STEP: Final = 8

#: The number of the message model CLUSTERING.
CLUSTERING: Final = "1"


@final
class ExporterFamilies:
    """The exporter's families of one broker and one scrape."""

    def __init__(
        self,
        samples: Samples,
        broker: Broker,
        broadcasting: Set[str],
        existing: Existing,
    ) -> None:
        """
        @param broadcasting: the groups that broadcast, which are never behind.
        """
        self._samples = samples
        self._broadcasting = broadcasting
        self._existing = existing
        self._broker = broker
        self._name = broker.settings.broker.broker_name

    def add(self) -> Iterator[None]:
        """Add all of them, in steps."""
        self._add_rates()
        yield from self._add_topic_rates()
        yield from self._add_group_rates()
        yield from self._add_topics()
        yield from self._add_producers()
        yield from self._add_groups()

    def _add_rates(self) -> None:
        """Messages in and out of the whole broker."""
        stats, broker = self._broker.figures.keyed, self._broker
        for metric, words, name in (
            ("rocketmq_broker_tps", "messages stored a second", "BROKER_PUT_NUMS"),
            ("rocketmq_broker_qps", "messages pulled a second", "BROKER_GET_NUMS"),
        ):
            self._samples.gauge(
                metric,
                words,
                stats.minute(name, stats.cluster).tps,
                brokerIP=broker.address,
                broker=self._name,
            )

    def _add_topic_rates(self) -> Iterator[None]:
        """Messages and bytes into each topic."""
        samples, stats = self._samples, self._broker.figures.keyed
        messages = samples.gauges(
            "rocketmq_producer_tps", "messages stored a second, by topic"
        )
        size = samples.gauges(
            "rocketmq_producer_message_size", "bytes stored a second, by topic"
        )
        for at, topic in enumerate(stats.keys("TOPIC_PUT_NUMS")):
            if at % KEYS_A_STEP == 0:
                yield
            if is_retry_topic(topic) or is_dlq_topic(topic):
                continue
            if not self._existing.topic(topic):
                continue
            labels = samples.labels(broker=self._name, topic=topic)
            messages.add(labels, stats.minute("TOPIC_PUT_NUMS", topic).tps)
            size.add(labels, stats.minute("TOPIC_PUT_SIZE", topic).tps)

    def _add_group_rates(self) -> Iterator[None]:
        """Messages and bytes to each group, and messages that came back."""
        samples, stats = self._samples, self._broker.figures.keyed
        messages = samples.gauges(
            "rocketmq_consumer_tps", "messages pulled a second, by topic and group"
        )
        size = samples.gauges(
            "rocketmq_consumer_message_size",
            "bytes pulled a second, by topic and group",
        )
        back = samples.gauges(
            "rocketmq_send_back_nums",
            "messages that a group sent back in the last minute",
        )
        for at, key in enumerate(stats.keys("GROUP_GET_NUMS")):
            if at % KEYS_A_STEP == 0:
                yield
            labels = self._labels_of_key(key)
            if labels is not None:
                messages.add(labels, stats.minute("GROUP_GET_NUMS", key).tps)
                size.add(labels, stats.minute("GROUP_GET_SIZE", key).tps)
        for at, key in enumerate(stats.keys("SNDBCK_PUT_NUMS")):
            if at % KEYS_A_STEP == 0:
                yield
            labels = self._labels_of_key(key)
            if labels is not None:
                back.add(labels, stats.minute("SNDBCK_PUT_NUMS", key).sum)

    def _labels_of_key(self, key: str) -> str | None:
        """The labels for C{topic@group}; None for topics that the exporter skips, and
        for what is gone."""
        topic, _, group = key.partition("@")
        if is_retry_topic(topic) or is_dlq_topic(topic):
            return None
        if not self._existing.both(group, topic):
            return None
        return self._samples.labels(broker=self._name, topic=topic, group=group)

    def _add_topics(self) -> Iterator[None]:
        """How many messages each topic has ever had."""
        samples, broker, name = self._samples, self._broker, self._name
        topics = samples.gauges(
            "rocketmq_producer_offset", "the sum of a topic's maximum offsets"
        )
        retries = samples.gauges(
            "rocketmq_topic_retry_offset", "the same of a group's retry topic"
        )
        letters = samples.gauges(
            "rocketmq_topic_dlq_offset", "the same of a group's dead letters"
        )
        for at, config in enumerate(broker.metadata.topics.configs()):
            if at % KEYS_A_STEP == 0:
                yield
            topic = config.topic_name
            count = max(config.read_queue_nums, config.write_queue_nums)
            value = sum(
                max(0, broker.store.queue(topic, number).max_offset)
                for number in range(count)
            )
            if is_dlq_topic(topic):
                group = topic.removeprefix(DLQ_PREFIX)
                letters.add(samples.labels(broker=name, group=group), value)
                continue
            family = retries if is_retry_topic(topic) else topics
            family.add(samples.labels(broker=name, topic=topic), value)

    def _add_producers(self) -> Iterator[None]:
        """Producers that are connected, by group."""
        samples, producers = self._samples, self._broker.clients.producers
        counts = samples.gauges(
            "rocketmq_producer_count", "producers of a group that are connected"
        )
        for at, group in enumerate(producers.names()):
            if at % KEYS_A_STEP == 0:
                yield
            labels = samples.labels(broker=self._name, group=group)
            counts.add(labels, len(producers.members(group)))

    def _add_groups(self) -> Iterator[None]:
        """Members of groups, and how far they are."""
        samples, broker = self._samples, self._broker
        counts = samples.gauges("rocketmq_group_count", "members of a group")
        diffs = samples.gauges(
            "rocketmq_group_diff", "messages stored, not committed, by topic and group"
        )
        retries = samples.gauges(
            "rocketmq_group_retrydiff", "the same of a group's retry topic"
        )
        letters = samples.gauges(
            "rocketmq_group_dlqdiff", "the same of a group's dead letters"
        )
        offsets = samples.gauges(
            "rocketmq_consumer_offset", "the sum of a group's committed offsets"
        )
        counted: set[str] = set()
        for at, key in enumerate(broker.metadata.offsets.keys()):
            if at % KEYS_A_STEP == 0:
                yield
            topic, _, group = key.partition("@")
            config = broker.metadata.topics.config(topic)
            if (
                config is None
                or broker.metadata.groups.config(group) is None
                or is_system_group(group)
            ):
                continue
            online = broker.clients.consumers.group(group)
            members = 0 if online is None else len(online.members)
            if group not in counted:
                counted.add(group)
                counts.add(samples.labels(group=group), members)
            committed, _ = broker.metadata.offsets.progress(group, topic)
            behind = total = 0
            for number in range(config.read_queue_nums):
                end = max(0, broker.store.queue(topic, number).max_offset)
                offset = max(0, committed.get(number, NONE))
                behind += end - offset
                total += offset
            labels = samples.labels(broker=self._name, topic=topic, group=group)
            offsets.add(labels, total)
            if group in self._broadcasting:
                continue
            family = diffs
            if is_retry_topic(topic):
                family = retries
            elif is_dlq_topic(topic):
                family = letters
            family.add(
                samples.labels(
                    group=group,
                    topic=topic,
                    countOfOnlineConsumers=str(members),
                    msgModel=CLUSTERING,
                ),
                behind,
            )

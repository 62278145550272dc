# -*- test-case-name: tests.metrics.test_retries -*-
"""Messages sent back and dead letters, as Prometheus sees them.

RocketMQ's family: C{docs/facts/security-metrics.md 5.3}, group L. There a dead letter
that a client sent itself counts for the group of the client's producer, which is the
same for all clients, and for the retry topic; here for the consumer group, and for the
topic that it came from.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.send.dead_letters import FailureCounts
from rocketbroker.broker.send.send_back import SendBack
from rocketbroker.config.keyed import text_of
from rocketbroker.metrics.existing import ExistingNames
from rocketbroker.metrics.samples import Samples
from rocketbroker.records.names import is_system_group


def add_dead_letters(
    samples: Samples, counts: FailureCounts, topics: TopicTable, existing: ExistingNames
) -> Iterator[None]:
    """Add the dead letters of each group."""
    letters = samples.counters(
        "rocketmq_send_to_dlq_messages_total", "messages that became dead letters"
    )
    for (group, topic), count in list(counts.messages.items()):
        yield
        if not existing.both(group, topic):
            continue
        system = topics.is_system(topic) or is_system_group(group)
        labels = samples.labels(
            consumer_group=group,
            topic=topic,
            is_system=text_of(system),
        )
        letters.add(labels, count)


def add_sent_back(
    samples: Samples, send_back: SendBack, existing: ExistingNames
) -> Iterator[None]:
    """Add the messages that consumers sent back."""
    messages = samples.counters(
        "rocketbroker_sent_back_messages_total",
        "messages that consumers sent back, stored again",
    )
    for (group, topic), count in list(send_back.counts.messages.items()):
        if existing.both(group, topic):
            messages.add(samples.labels(consumer_group=group, topic=topic), count)
        yield

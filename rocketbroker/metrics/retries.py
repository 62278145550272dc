# -*- test-case-name: tests.metrics.test_retries -*-
"""Messages sent back and dead letters, as Prometheus sees them.

RocketMQ's family: C{docs/facts/security-metrics.md 5.3}, group L. There a dead letter
that a client sent itself counts for the group of the client's producer, which is the
same for all clients, and for the retry topic; here for the consumer group, and for the
topic that it came from.
"""

from __future__ import annotations

from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.send.dead_letters import FailureCounts
from rocketbroker.broker.send.send_back import SendBack
from rocketbroker.metrics.samples import Samples
from rocketbroker.records.names import is_system_group


def add_dead_letters(
    samples: Samples, counts: FailureCounts, topics: TopicTable
) -> None:
    """Add the dead letters of each group."""
    for (group, topic), count in counts.messages.items():
        system = topics.is_system(topic) or is_system_group(group)
        samples.counter(
            "rocketmq_send_to_dlq_messages_total",
            "messages that became dead letters",
            count,
            consumer_group=group,
            topic=topic,
            is_system="true" if system else "false",
        )


def add_sent_back(samples: Samples, send_back: SendBack) -> None:
    """Add the messages that consumers sent back."""
    for (group, topic), count in send_back.counts.messages.items():
        samples.counter(
            "rocketbroker_sent_back_messages_total",
            "messages that consumers sent back, stored again",
            count,
            consumer_group=group,
            topic=topic,
        )

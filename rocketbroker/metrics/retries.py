# -*- test-case-name: tests.metrics.test_retries -*-
"""What consumers failed at, as Prometheus sees it.

RocketMQ's family: the metrics sheet, section 5.3, group L. There a dead letter that a
client sent itself counts for the group of the client's producer, which is the same for
all clients, and for the retry topic; here for the group that gave it up, and for the
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
    """Add what groups gave up."""
    for (group, topic), count in counts.messages.items():
        system = topics.is_system(topic) or is_system_group(group)
        samples.counter(
            "rocketmq_send_to_dlq_messages_total",
            "messages that were given up",
            count,
            consumer_group=group,
            topic=topic,
            is_system="true" if system else "false",
        )


def add_sent_back(samples: Samples, send_back: SendBack) -> None:
    """Add what consumers gave back."""
    for (group, topic), count in send_back.counts.messages.items():
        samples.counter(
            "rocketbroker_sent_back_messages_total",
            "messages that consumers gave back, stored again",
            count,
            consumer_group=group,
            topic=topic,
        )

# -*- test-case-name: tests.metrics.test_transactions -*-
"""Transactions as Prometheus sees them: RocketMQ's families, and what is ours.

RocketMQ's: the metrics sheet, section 5.3, group T. The histogram counts seconds, as
its bounds say and its name does not.
"""

from __future__ import annotations

from rocketbroker.broker.transaction.counters import LATENCY_BOUNDS
from rocketbroker.broker.transaction.service import Transactions
from rocketbroker.metrics.samples import Samples


def add_transactions(samples: Samples, transactions: Transactions) -> None:
    """Add the families of transactions."""
    for topic, counts in transactions.counts.topics.items():
        samples.gauge(
            "rocketmq_half_messages",
            "transactions that are open",
            counts.open,
            topic=topic,
        )
        for name, words, value in (
            ("commit", "transactions committed", counts.commits),
            ("rollback", "transactions rolled back", counts.rollbacks),
        ):
            family = f"rocketmq_{name}_messages_total"
            samples.counter(family, words, value, topic=topic)
        if counts.commits:
            samples.histogram(
                "rocketmq_finish_message_latency_milliseconds",
                "seconds from the birth of a message to its commit",
                LATENCY_BOUNDS,
                counts.latencies,
                counts.seconds,
                topic=topic,
            )
    checks = transactions.checks
    for name, words, value in (
        ("checks_sent", "questions sent to producers", checks.asked),
        (
            "checks_without_producer",
            "questions that no producer of the group was there for",
            checks.unasked,
        ),
        ("discarded", "transactions that were given up", checks.discarded),
        (
            "unreadable",
            "half messages that cannot be read or say not where they belong",
            checks.unreadable,
        ),
        (
            "reopened",
            "ended transactions whose messages a power loss has taken",
            transactions.marks.doubted,
        ),
        (
            "retries",
            "copies and marks that the store did not take and that are tried again",
            checks.failures + transactions.marks.failures,
        ),
    ):
        samples.counter(f"rocketbroker_transaction_{name}_total", words, value)
    samples.gauge(
        "rocketbroker_transaction_marks_waiting",
        "marks of transactions that the disk has not taken yet",
        len(transactions.marks.waiting),
    )

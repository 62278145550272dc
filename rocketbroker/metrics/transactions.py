# -*- test-case-name: tests.metrics.test_transactions -*-
"""Transactions as Prometheus sees them: RocketMQ's families, and ours.

RocketMQ's: C{docs/facts/security-metrics.md 5.3}, group T. The histogram counts
seconds, as its bounds say and its name does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.broker.transaction.counters import LATENCY_BOUNDS
from rocketbroker.broker.transaction.room import TransactionRoom
from rocketbroker.metrics.existing import ExistingNames
from rocketbroker.metrics.samples import Samples


def add_transactions(
    samples: Samples, transactions: TransactionRoom, existing: ExistingNames
) -> Iterator[None]:
    """Add the families of transactions."""
    half = samples.gauges("rocketmq_half_messages", "transactions that are open")
    commits = samples.counters(
        "rocketmq_commit_messages_total", "transactions committed"
    )
    rollbacks = samples.counters(
        "rocketmq_rollback_messages_total", "transactions rolled back"
    )
    latencies = samples.histograms(
        "rocketmq_finish_message_latency_milliseconds",
        "seconds from the birth of a message to its commit",
        LATENCY_BOUNDS,
    )
    for topic, counts in list(transactions.counts.topics.items()):
        yield
        if not existing.topic(topic):
            continue
        labels = samples.labels(topic=topic)
        half.add(labels, counts.open)
        commits.add(labels, counts.commits)
        rollbacks.add(labels, counts.rollbacks)
        if counts.commits:
            latencies.add(labels, counts.latencies, counts.seconds)
    add_checks(samples, transactions)


def add_checks(samples: Samples, transactions: TransactionRoom) -> None:
    """Add what became of half messages that were not ended."""
    checks = transactions.checks
    for name, words, value in (
        (
            "rocketbroker_transaction_checks_sent_total",
            "half messages checked back with a producer",
            checks.asked,
        ),
        (
            "rocketbroker_transaction_checks_without_producer_total",
            "checks that found no producer of the group",
            checks.unasked,
        ),
        (
            "rocketbroker_transaction_discarded_total",
            "half messages discarded after transactionCheckMax checks",
            checks.discarded,
        ),
        (
            "rocketbroker_transaction_unreadable_total",
            "half messages that cannot be read, or have no topic to go to",
            checks.unreadable,
        ),
        (
            "rocketbroker_transaction_reopened_total",
            "ended transactions whose messages were lost with the power",
            transactions.marks.doubted,
        ),
        (
            "rocketbroker_transaction_retries_total",
            "commits and op messages that the store refused and that are tried again",
            checks.failures + transactions.marks.failures,
        ),
    ):
        samples.counter(name, words, value)
    samples.gauge(
        "rocketbroker_transaction_op_messages_waiting",
        "op messages that are not on the disk yet",
        len(transactions.marks.waiting),
    )

"""Tests of L{rocketbroker.metrics.transactions}."""

from __future__ import annotations

from rocketbroker.metrics.samples import Samples
from rocketbroker.metrics.transactions import add_transactions
from tests.broker.transactions import COMMIT, ROLLBACK, ROUND, TransactionCase
from tests.metrics.scraped import existing, parsed


class TransactionFamiliesTests(TransactionCase):
    """Counters in, samples out."""

    def values(self) -> dict[tuple[str, str], float]:
        """All samples, by name and topic."""
        samples = Samples({"cluster": "c"})
        for _ in add_transactions(samples, self.rig.transactions, existing(self.rig)):
            pass
        found = [s for family in parsed(samples) for s in family.samples]
        return {(s.name, s.labels.get("topic", "")): s.value for s in found}

    def test_counts(self) -> None:
        """What is open, committed and rolled back, by topic, and how long it took."""
        halves = [self.half() for _ in range(4)]
        self.pass_by(5)
        self.end(halves[0], COMMIT)
        self.pass_by(1)
        self.end(halves[1], COMMIT)
        self.end(halves[2], ROLLBACK)
        values = self.values()
        self.assertEqual(values["rocketmq_half_messages", "T"], 1)
        self.assertEqual(values["rocketmq_commit_messages_total", "T"], 2)
        self.assertEqual(values["rocketmq_rollback_messages_total", "T"], 1)
        latency = "rocketmq_finish_message_latency_milliseconds"
        self.assertEqual(values[f"{latency}_count", "T"], 2)
        self.assertEqual(values[f"{latency}_sum", "T"], 11)

    def test_checks(self) -> None:
        """How many questions were sent, and how many found nobody."""
        self.half()
        self.pass_by(ROUND)
        self.producer.close()
        self.pass_by(ROUND)
        values = self.values()
        self.assertEqual(values["rocketbroker_transaction_checks_sent_total", ""], 1)
        name = "rocketbroker_transaction_reopened_total"
        self.assertEqual(values[name, ""], 0)
        name = "rocketbroker_transaction_checks_without_producer_total"
        self.assertEqual(values[name, ""], 1)
        self.assertEqual(values["rocketbroker_transaction_op_messages_waiting", ""], 0)

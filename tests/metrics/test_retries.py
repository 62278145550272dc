"""Tests of L{rocketbroker.metrics.retries}."""

from __future__ import annotations

from rocketbroker.metrics.retries import add_dead_letters, add_sent_back
from rocketbroker.metrics.samples import Samples
from tests.broker.send.sent_back import SendBackCase
from tests.metrics.scraped import existing, parsed


class RetryFamiliesTests(SendBackCase):
    """Counters in, samples out."""

    def values(self) -> dict[tuple[str, ...], float]:
        """All samples, by the values of their labels."""
        samples = Samples({})
        shown = existing(self.rig)
        counts = self.rig.dead_letters.counts
        for _ in add_dead_letters(samples, counts, self.rig.topics, shown):
            pass
        for _ in add_sent_back(samples, self.rig.send_back, shown):
            pass
        return {
            (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): (
                sample.value
            )
            for family in parsed(samples)
            for sample in family.samples
            if sample.name.endswith("_total")
        }

    def test_nothing(self) -> None:
        """As long as nothing failed there are none."""
        self.send()
        self.assertEqual(self.values(), {})

    def test_counts(self) -> None:
        """Messages sent back, and those of them that became dead letters, by group
        and topic."""
        position = self.send()
        self.back(position)
        self.back(position, -1)
        self.back(position, -1, group="CID_RMQ_SYS_A")
        dead, back = (
            "rocketmq_send_to_dlq_messages_total",
            "rocketbroker_sent_back_messages_total",
        )
        self.assertEqual(
            self.values(),
            {
                (back, "G", "T"): 2,
                (back, "CID_RMQ_SYS_A", "T"): 1,
                (dead, "G", "false", "T"): 1,
                (dead, "CID_RMQ_SYS_A", "true", "T"): 1,
            },
        )

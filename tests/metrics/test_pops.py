"""Tests of L{rocketbroker.metrics.pops}."""

from __future__ import annotations

from rocketbroker.metrics.lag import LagFamilies
from rocketbroker.metrics.pops import add_pops, status_name
from rocketbroker.metrics.samples import Samples
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from tests.broker.pop.pops import PopCase, handles
from tests.metrics.scraped import existing, parsed


class PopFamiliesTests(PopCase):
    """Counters in, samples out."""

    def values(self, samples: Samples, *labels: str) -> dict[tuple[str, ...], float]:
        """All samples, by name and labels."""
        found = [s for family in parsed(samples) for s in family.samples]
        return {
            (s.name, *(s.labels.get(label, "") for label in labels)): s.value
            for s in found
        }

    def scrape(self, *labels: str) -> dict[tuple[str, ...], float]:
        """The families of POP."""
        samples = Samples({"cluster": "c"})
        for _ in add_pops(
            samples, self.rig.broker.pop, self.rig.wall_ms(), existing(self.rig)
        ):
            pass
        return self.values(samples, *labels)

    def test_counts(self) -> None:
        """What is written, read and given out again, by group, topic and outcome."""
        self.send("a", "b")
        self.ack(handles(self.pop())[0])
        values = self.scrape("consumer_group", "topic", "revive_message_type")
        written = "rocketmq_pop_revive_in_message_total"
        self.assertEqual(values[written, "G", "T", "CK"], 1)
        self.assertEqual(values[written, "G", "T", "ACK"], 1)
        self.assertEqual(values["rocketmq_pop_offset_buffer_size", "", "", ""], 1)
        self.assertEqual(values["rocketbroker_pops_found_total", "", "", ""], 1)
        self.pass_by(34)
        values = self.scrape("consumer_group", "topic", "put_status")
        revived = "rocketmq_pop_revive_retry_messages_total"
        self.assertEqual(values[revived, "G", "T", "PUT_OK"], 1)
        self.assertEqual(status_name(99), "UNKNOWN_ERROR")

    def test_reviveQueues(self) -> None:
        """How much of a revive queue is not worked off, and for how long that is."""
        self.send("a")
        (handle,) = handles(self.pop())
        self.pass_by(29.5)
        queue = str(handle.revive_queue)
        values = self.scrape("queue_id")
        self.assertEqual(values["rocketmq_pop_revive_lag_milliseconds", queue], 1)
        latency = "rocketmq_pop_revive_latency_milliseconds"
        self.assertEqual(values[latency, queue], 0)
        self.pass_by(1.5)
        self.assertEqual(self.scrape("queue_id")[latency, queue], 1000)
        self.pass_by(3)
        values = self.scrape("queue_id")
        self.assertEqual(values["rocketmq_pop_revive_lag_milliseconds", queue], 0)

    def test_lag(self) -> None:
        """What a group that pops has in flight is counted, and its retry topic has a
        line of its own."""
        wants = SubscriptionData(topic="T", sub_string="*")
        data = ConsumerData(
            group_name="G", consume_type="CONSUME_POP", subscription_data_set=[wants]
        )
        self.rig.consumers.register(
            self.rig.connection, "client", "JAVA", 479, data, False
        )
        self.send("a", "b", "c", "d")
        self.ack(handles(self.pop(maxMsgNums=3))[0])

        def lag(is_retry: str) -> list[float]:
            samples = Samples({"cluster": "c"})
            for _ in LagFamilies(self.rig.broker).measure(samples, self.rig.wall_ms()):
                pass
            values = self.values(samples, "topic", "is_retry")
            return [
                values[f"rocketmq_consumer_{name}_messages", "T", is_retry]
                for name in ("lag", "inflight", "ready")
            ]

        self.assertEqual(lag("false"), [3, 2, 1])
        self.assertEqual(lag("true"), [0, 0, 0])
        self.pass_by(34)
        self.assertEqual(lag("false"), [1, 0, 1])
        self.assertEqual(lag("true"), [2, 0, 2])

"""The metrics of the official exporter."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.services import LOOK_SECONDS
from rocketbroker.metrics.broker_families import BrokerFamilies
from rocketbroker.store.interfaces import Draft
from rocketbroker.testing.threads import at_once
from tests.broker.rig import HOST, Rig, heartbeat, pull_ext, send_ext
from tests.metrics.scraped import parsed

OF_GROUP = {"broker": "broker-a", "topic": "T", "group": "G"}


class ExporterFamiliesTests(SynchronousTestCase):
    """What a broker shows under the exporter's names."""

    def setUp(self) -> None:
        """A broker that shows them."""
        self.make(metricsExporterNames="true")

    def make(self, **settings: str) -> None:
        """A broker with a topic of one queue."""
        self.rig = Rig(settings)
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 1)
        self.rig.broker.start()
        self.families = BrokerFamilies(self.rig.broker, {}, self.rig.wall_ms, at_once)

    def look(self) -> None:
        """Let what was counted be sampled."""
        self.rig.clock.advance(LOOK_SECONDS)

    def scrape(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """The samples by name, without common labels."""
        samples = self.families.collect(frozenset())
        while not samples.called:
            self.rig.clock.advance(0)
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in parsed(self.successResultOf(samples)):
            for sample in family.samples:
                labels = dict(sample.labels)
                self.assertEqual(labels.pop("cluster"), "cluster-a")
                del labels["node_type"], labels["node_id"]
                found.setdefault(sample.name, []).append((labels, sample.value))
        return found

    def send(self, topic: str = "T", count: int = 1) -> None:
        """Send messages."""
        for _ in range(count):
            self.assertEqual(self.rig.ask(310, send_ext(topic), b"body").code, 0)

    def test_off(self) -> None:
        """Without the setting there are none; it may be changed while it runs."""
        self.make()
        self.send()
        self.look()
        self.assertNotIn("rocketmq_producer_tps", self.scrape())
        self.rig.change(metricsExporterNames=True)
        self.assertIn("rocketmq_producer_tps", self.scrape())

    def test_rates(self) -> None:
        """Rates are those of the last minute, which the exporter would ask for."""
        self.send(count=4)
        size = self.rig.store.published_position
        self.rig.ask(11, pull_ext(maxMsgNums="3"))
        self.look()
        found = self.scrape()
        of_broker = {"brokerIP": "10.0.0.1:10911", "broker": "broker-a"}
        self.assertEqual(found["rocketmq_broker_tps"], [(of_broker, 0.4)])
        self.assertEqual(found["rocketmq_broker_qps"], [(of_broker, 0.3)])
        of_topic = {"broker": "broker-a", "topic": "T"}
        self.assertEqual(found["rocketmq_producer_tps"], [(of_topic, 0.4)])
        bytes_in = found["rocketmq_producer_message_size"]
        self.assertEqual(bytes_in, [(of_topic, size / 10)])
        self.assertEqual(found["rocketmq_consumer_tps"], [(OF_GROUP, 0.3)])
        bytes_out = found["rocketmq_consumer_message_size"]
        self.assertEqual(bytes_out, [(OF_GROUP, size / 4 * 3 / 10)])

    def store(self, topic: str, count: int) -> None:
        """Store messages, past the intake."""
        self.rig.topic(topic, 1)
        queue = self.rig.store.queue(topic, 0)
        self.rig.store.append(
            [
                Draft(queue, b"body", b"", 0, 0, 0, HOST, 0, 0, None)
                for _ in range(count)
            ]
        )
        self.rig.scheduler.dispatch()

    def test_topics(self) -> None:
        """How many messages topics ever had: retries and dead letters by themselves."""
        for topic, count in (("T", 5), ("%RETRY%G", 2), ("%DLQ%G", 3)):
            self.store(topic, count)
        found = self.scrape()
        of_topic = {"broker": "broker-a", "topic": "T"}
        self.assertIn((of_topic, 5), found["rocketmq_producer_offset"])
        of_retries = {"broker": "broker-a", "topic": "%RETRY%G"}
        self.assertEqual(found["rocketmq_topic_retry_offset"], [(of_retries, 2)])
        of_letters = {"broker": "broker-a", "group": "G"}
        self.assertEqual(found["rocketmq_topic_dlq_offset"], [(of_letters, 3)])
        names = {labels["topic"] for labels, _ in found["rocketmq_producer_offset"]}
        self.assertNotIn("%RETRY%G", names)

    def test_groups(self) -> None:
        """How far groups are, and how many members they have; a group that is gone, or
        of the system, is left out."""
        for topic, count in (("T", 5), ("%RETRY%G", 2), ("%DLQ%G", 3)):
            self.store(topic, count)
            self.rig.offsets.commit("G", topic, 0, 1)
        self.rig.offsets.commit("gone", "T", 0, 1)
        self.rig.offsets.commit("CID_RMQ_SYS_TRANS", "T", 0, 1)
        self.rig.offsets.commit("G", "gone", 0, 1)
        self.rig.ask(34, {}, heartbeat())
        found = self.scrape()
        self.assertEqual(found["rocketmq_group_count"], [({"group": "G"}, 1)])
        for name, topic, behind in (
            ("rocketmq_group_diff", "T", 4),
            ("rocketmq_group_retrydiff", "%RETRY%G", 1),
            ("rocketmq_group_dlqdiff", "%DLQ%G", 2),
        ):
            labels = {
                "group": "G",
                "topic": topic,
                "countOfOnlineConsumers": "1",
                "msgModel": "1",
            }
            self.assertEqual(found[name], [(labels, behind)], name)
        self.assertIn((OF_GROUP, 1), found["rocketmq_consumer_offset"])
        of_producer = {"broker": "broker-a", "group": "P"}
        self.assertEqual(found["rocketmq_producer_count"], [(of_producer, 1)])

    def test_broadcasting(self) -> None:
        """A group whose members each get all is not behind, as they know themselves."""
        self.store("T", 5)
        self.rig.offsets.commit("G", "T", 0, 1)
        beat = heartbeat().replace(b"CLUSTERING", b"BROADCASTING")
        self.rig.ask(34, {}, beat)
        found = self.scrape()
        self.assertNotIn("rocketmq_group_diff", found)
        self.assertNotIn("rocketmq_group_get_latency_by_storetime", found)
        self.assertEqual(found["rocketmq_consumer_offset"], [(OF_GROUP, 1)])

    def test_age(self) -> None:
        """How old the first message is that a group has not committed."""
        self.store("T", 2)
        self.rig.groups.find("G")
        self.rig.offsets.commit("G", "T", 0, 1)
        self.rig.clock.advance(7)
        found = self.scrape()
        name = "rocketmq_group_get_latency_by_storetime"
        self.assertEqual(found[name], [(OF_GROUP, 7000)])

    def test_sentBack(self) -> None:
        """Messages that came back in the last minute; those of retry topics are left
        out, as by the exporter."""
        self.send()
        ext = {"offset": "0", "group": "G", "delayLevel": "1", "originTopic": "T"}
        self.assertEqual(self.rig.ask(36, ext).code, 0)
        self.rig.broker.send.send_back.counts.count("G", "%RETRY%G")
        self.look()
        found = self.scrape()
        self.assertEqual(found["rocketmq_send_back_nums"], [(OF_GROUP, 1)])

"""How far groups have come."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.consume_progress import ConsumeProgress
from rocketbroker.broker.admin.queue_tables import STEP_QUEUES
from rocketbroker.errors import TopicNotExist
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import WALL_MS, Rig, answered


class ProgressTests(SynchronousTestCase):
    """Requests 208, 303 and 317."""

    def setUp(self) -> None:
        """Topic T with two queues; three messages in the first, a second apart."""
        self.rig = rig = Rig({})
        self.addCleanup(rig.close)
        rig.topic("T", queues=2)
        rig.topic("U", queues=1)
        requests = ConsumeProgress(
            rig.broker.context,
            rig.broker.metadata,
            rig.consumers,
            lambda group, topic: {"T": 1.5, "U": 2.0, "O": 0.0}[topic],
            rig.scheduler.dispatch,
        )
        requests.register(rig.table)
        for _ in range(3):
            rig.clock.advance(1)
            rig.append()

    def statistics(self, **ext: str) -> dict[str, Any]:
        """The answer to request 208."""
        answer = self.rig.ask(208, {"consumerGroup": "G", **ext})
        found: Any = loads(answer.body)
        found["offsetTable"] = {
            (queue.topic, queue.queue_id): value
            for key, value in found["offsetTable"].items()
            for queue in [MessageQueue.from_json(key)]
        }
        return dict(found)

    def subscribe(self, *topics: str) -> None:
        """A member of G that subscribes to topics."""
        wanted = [SubscriptionData(topic=topic, sub_string="*") for topic in topics]
        data = ConsumerData(group_name="G", subscription_data_set=wanted)
        self.rig.consumers.register(
            RecordedConnection(), "id", "JAVA", 479, data, False
        )

    def test_statistics(self) -> None:
        """Where each queue ends, where the group is, and the time of its last one."""
        self.rig.offsets.commit("G", "T", 0, 2)
        self.rig.offsets.commit_pull("G", "T", 0, 3)
        found = self.statistics(topic="T")
        self.assertEqual(found["consumeTps"], 1.5)
        self.assertEqual(
            found["offsetTable"],
            {
                ("T", 0): {
                    "brokerOffset": 3,
                    "consumerOffset": 2,
                    "lastTimestamp": WALL_MS + 2000,
                    "pullOffset": 3,
                },
                ("T", 1): {
                    "brokerOffset": 0,
                    "consumerOffset": 0,
                    "lastTimestamp": 0,
                    "pullOffset": 0,
                },
            },
        )

    def test_allTopics(self) -> None:
        """Without a topic it is all in which the group has offsets and that are."""
        for topic in ("T", "U", "gone"):
            self.rig.offsets.commit("G", topic, 0, 1)
        found = self.statistics()
        self.assertEqual(found["consumeTps"], 3.5)
        self.assertEqual(set(found["offsetTable"]), {("T", 0), ("T", 1), ("U", 0)})
        self.assertEqual(self.statistics(topic="gone")["offsetTable"], {})

    def test_unsubscribed(self) -> None:
        """One that an online group does not subscribe to needs a list to be told."""
        self.rig.offsets.commit("G", "T", 0, 1)
        self.rig.offsets.commit("G", "U", 0, 1)
        self.subscribe("U")
        self.assertEqual(set(self.statistics()["offsetTable"]), {("U", 0)})
        self.assertEqual(self.statistics(topic="T")["offsetTable"], {})
        listed = self.statistics(topicList="T;;gone;T")["offsetTable"]
        self.assertEqual(set(listed), {("T", 0), ("T", 1)})

    def of_broker(self, **ext: str) -> dict[str, Any]:
        """The answer to request 317; groups by name, their topics by name."""
        begun = self.rig.begin(317, {"isOrder": "false", **ext})
        self.rig.clock.advance(0)
        found: Any = loads(answered(begun).body)
        groups: dict[str, dict[str, Any]] = {}
        for entry in found["consumeStatsList"]:
            ((group, topics),) = entry.items()
            groups[group] = {
                MessageQueue.from_json(next(iter(each["offsetTable"]))).topic: each
                for each in topics
            }
        return {**found, "consumeStatsList": groups}

    def test_ofBroker(self) -> None:
        """All groups, those without offsets too, and how far behind all of them are."""
        rig = self.rig
        rig.groups.find("G")
        rig.groups.find("H")
        for group, offset in (("G", 1), ("H", 2), ("unknown", 0)):
            rig.offsets.commit(group, "T", 0, offset)
        rig.offsets.commit("G", "U", 0, 0)
        rig.offsets.commit("G", "gone", 0, 1)
        rig.offsets.commit_pull("G", "T", 0, 3)
        found = self.of_broker()
        groups = found["consumeStatsList"]
        self.assertEqual(set(groups["G"]), {"T", "U"})
        self.assertEqual(set(groups["H"]), {"T"})
        self.assertEqual(groups["TOOLS_CONSUMER"], {})
        self.assertNotIn("unknown", groups)
        self.assertEqual(groups["G"]["T"]["consumeTps"], 1.5)
        entries = list(groups["G"]["T"]["offsetTable"].values())
        self.assertEqual(len(entries), 2)
        self.assertEqual(
            entries[0],
            {
                "brokerOffset": 3,
                "consumerOffset": 1,
                "lastTimestamp": WALL_MS + 1000,
                "pullOffset": 3,
            },
        )
        totals = found["totalDiff"], found["totalInflightDiff"], found["brokerAddr"]
        self.assertEqual(totals, (3, 2, "10.0.0.1:10911"))

    def test_ofBrokerChosen(self) -> None:
        """Only ordered topics if they are asked for; none that an online group does
        not subscribe to."""
        self.rig.groups.find("G")
        self.rig.topic("O", queues=1, order=True)
        for topic in ("T", "U", "O"):
            self.rig.offsets.commit("G", topic, 0, 1)
        ordered = self.of_broker(isOrder="true")["consumeStatsList"]["G"]
        self.assertEqual(set(ordered), {"O"})
        self.subscribe("U")
        self.assertEqual(set(self.of_broker()["consumeStatsList"]["G"]), {"U"})

    def test_ofBrokerManyTopics(self) -> None:
        """Thousands of queues are looked up in slices, and read a few at a time."""
        rig = Rig({}, threads=True)
        self.addCleanup(rig.close)
        rig.groups.find("G")
        for number in range(2 * STEP_QUEUES):
            rig.topic(f"T{number}", queues=2)
            rig.offsets.commit("G", f"T{number}", 0, 0)
        steps = rig.broker.slices.steps
        begun = rig.begin(317, {"isOrder": "false"})
        rig.clock.advance(0)
        self.assertEqual(rig.broker.slices.steps, steps + 2 * STEP_QUEUES + 1)
        for _ in range(4):
            self.assertEqual(len(rig.threads.waiting), 1)
            rig.threads.run()
        self.assertEqual(answered(begun).body.count(b'"consumeTps"'), 2 * STEP_QUEUES)

    def spans(self) -> list[dict[str, Any]]:
        """The answer to request 303, in the order of queues."""
        answer = self.rig.ask(303, {"group": "G", "topic": "T"})
        found: Any = loads(answer.body)
        return list(found["consumeTimeSpanSet"])

    def test_times(self) -> None:
        """From when to when a queue has messages, and how late the group is."""
        self.rig.offsets.commit("G", "T", 0, 1)
        self.rig.clock.advance(10)
        first, second = self.spans()
        self.assertEqual(
            first,
            {
                "consumeTimeStamp": WALL_MS + 1000,
                "delayTime": 11000,
                "maxTimeStamp": WALL_MS + 3000,
                "messageQueue": {"brokerName": "broker-a", "queueId": 0, "topic": "T"},
                "minTimeStamp": WALL_MS + 1000,
            },
        )
        self.assertEqual((second["minTimeStamp"], second["delayTime"]), (-1, 0))

    def test_timesWithoutOffset(self) -> None:
        """A group that has no offset is as late as the first message is old."""
        self.rig.clock.advance(10)
        first, _ = self.spans()
        self.assertEqual(first["delayTime"], 12000)
        self.rig.offsets.commit("G", "T", 0, 3)
        self.assertEqual(self.spans()[0]["delayTime"], 0)

    def test_timesUnknown(self) -> None:
        """A topic that is not there has none."""
        with self.assertRaises(TopicNotExist):
            self.rig.ask(303, {"group": "G", "topic": "gone"})

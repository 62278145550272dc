"""Groups made, changed, listed and deleted on request."""

from __future__ import annotations

import errno
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.group_admin import STEP_MEMBERS
from rocketbroker.errors import (
    BrokerError,
    InvalidParameter,
    SubscriptionGroupNotExist,
    SystemFailure,
)
from rocketbroker.records.names import MAX_QUEUES
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps, loads
from tests.broker.rig import WALL_MS, Rig, answered, logged


class GroupAdminTests(SynchronousTestCase):
    """Requests 43, 200 to 204, 207, 225, 300, 328, 343, 345, 352 and 353."""

    def setUp(self) -> None:
        """A broker."""
        self.make({})

    def make(self, settings: dict[str, str]) -> None:
        """A broker with these settings."""
        self.rig = Rig(settings)
        self.addCleanup(self.rig.close)

    def create(self, value: object, code: int = 200) -> Command:
        """Request 200 or 225."""
        return self.rig.ask(code, {}, dumps(value))

    def sliced(self, code: int, ext: dict[str, str]) -> dict[str, Any]:
        """The body of an answer that is made in slices."""
        answer = self.rig.begin(code, ext)
        self.rig.clock.advance(0)
        value = loads(answered(answer).body)
        assert isinstance(value, dict)
        return value

    def test_create(self) -> None:
        """A group is what the request says, and changed by the next one."""
        for times in (3, 5):
            config = SubscriptionGroupConfig(group_name="G", retry_max_times=times)
            self.assertEqual(self.create(config.to_json()).code, 0)
            self.assertEqual(self.rig.groups.config("G"), config)

    def test_logged(self) -> None:
        """Each change is one line of the log, with the address it came from."""
        config = SubscriptionGroupConfig(group_name="G", retry_max_times=3)
        (line,) = logged(lambda: self.create(config.to_json()))
        self.assertIn("10.0.0.2:4711 created group 'G': ", line)
        self.assertIn("retryMaxTimes=3", line)
        self.assertEqual(logged(lambda: self.create(config.to_json())), [])
        config = SubscriptionGroupConfig(group_name="G", retry_max_times=5)
        (line,) = logged(lambda: self.create(config.to_json()))
        self.assertEqual(
            line, "10.0.0.2:4711 changed group 'G': retryMaxTimes=5 (was 3)"
        )
        fields = {"groupName": "G", "cleanOffset": "true"}
        (line,) = logged(lambda: self.rig.ask(207, fields))
        self.assertEqual(line, "10.0.0.2:4711 deleted group 'G' and its offsets")

    def test_createRefused(self) -> None:
        """No name, a name that no topic could carry, attributes, no body."""
        for name in ("", "a.b", "x" * 256):
            with self.assertRaises(InvalidParameter):
                self.create({"groupName": name})
        wrong_bodies: list[object] = [{"groupName": "G", "attributes": {"+a": "b"}}, []]
        for value in wrong_bodies:
            with self.assertRaises(SystemFailure):
                self.create(value)
        with self.assertRaises(SystemFailure):
            self.rig.ask(200, {})
        self.assertIsNone(self.rig.groups.config("G"))

    def test_retryQueues(self) -> None:
        """Its retry topic has as many queues as any topic may have."""
        for count in (-1, MAX_QUEUES + 1):
            config = SubscriptionGroupConfig(group_name="G", retry_queue_nums=count)
            with self.assertRaises(InvalidParameter):
                self.create(config.to_json())
        config = SubscriptionGroupConfig(group_name="G", retry_queue_nums=MAX_QUEUES)
        self.assertEqual(self.create(config.to_json()).code, 0)

    def test_createList(self) -> None:
        """Several groups are made by one request, or none of them."""
        with self.assertRaises(InvalidParameter):
            wrong = {"groupConfigList": [{"groupName": "A"}, {"groupName": "a.b"}]}
            self.create(wrong, 225)
        self.assertIsNone(self.rig.groups.config("A"))
        self.create({"groupConfigList": [{"groupName": "A"}, {"groupName": "B"}]}, 225)
        self.assertIsNotNone(self.rig.groups.config("B"))

    def test_all(self) -> None:
        """All groups, with their version."""
        self.create({"groupName": "G"})
        value = loads(self.rig.ask(201, {}).body)
        assert isinstance(value, dict)
        self.assertIn("G", value["subscriptionGroupTable"])
        self.assertEqual(value["dataVersion"], self.rig.groups.version.to_json())
        self.assertEqual(value["forbiddenTable"], {})

    def test_one(self) -> None:
        """One group, made if that is allowed."""
        value = loads(self.rig.ask(352, {"group": "G"}).body)
        config = self.rig.groups.config("G")
        assert config is not None
        self.assertEqual(SubscriptionGroupConfig.from_json(value), config)
        self.make({"autoCreateSubscriptionGroup": "false"})
        with self.assertRaises(SubscriptionGroupNotExist):
            self.rig.ask(352, {"group": "G"})

    def test_notKept(self) -> None:
        """A change that cannot be written is answered with an error."""
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=2)
        with self.assertRaises(SystemFailure) as caught:
            self.create({"groupName": "G"})
        self.assertIn("No space left on device", str(caught.exception.remark))
        with self.assertRaises(SystemFailure):
            self.rig.ask(207, {"groupName": "G"})
        self.rig.disk.heal()
        self.assertEqual(self.create({"groupName": "G"}).code, 0)

    def test_delete(self) -> None:
        """A group goes, and its offsets if that is asked for; always with success."""
        for clean, left in (("false", ["T"]), ("true", [])):
            self.create({"groupName": "G"})
            self.rig.offsets.commit("G", "T", 0, 1)
            ext = {"groupName": "G", "cleanOffset": clean}
            self.assertEqual(self.rig.ask(207, ext).code, 0)
            self.assertEqual(self.rig.ask(207, ext).code, 0)
            self.assertIsNone(self.rig.groups.config("G"))
            self.assertEqual(self.rig.offsets.topics_of("G"), left)

    def test_offsets(self) -> None:
        """The whole table of offsets, in the form of its file."""
        self.rig.offsets.commit("G", "T", 1, 7)
        begun = self.rig.begin(43, {})
        self.rig.clock.advance(0)
        answer = answered(begun)
        self.assertIn(b'"offsetTable":{"T@G":{1:7}}', answer.body)

    def test_groupsOfTopic(self) -> None:
        """The groups of a topic are those online and those with offsets."""
        rig = self.rig
        online = ConsumerData(
            group_name="online",
            subscription_data_set=[SubscriptionData(topic="T", sub_string="*")],
        )
        rig.consumers.register(rig.connection, "c", "JAVA", 479, online, True)
        rig.offsets.commit("gone", "T", 0, 1)
        rig.offsets.commit("online", "T", 0, 1)
        rig.offsets.commit("other", "U", 0, 1)
        for topic, groups in (("T", ["gone", "online"]), ("V", [])):
            answer = loads(self.rig.ask(300, {"topic": topic}).body)
            self.assertEqual(answer, {"groupList": groups})

    def test_consumers(self) -> None:
        """The members of a group and what they subscribe to; 206 if there are none."""
        with self.assertRaises(BrokerError) as caught:
            self.rig.ask(203, {"consumerGroup": "G"})
        self.assertEqual(caught.exception.code, 206)
        data = ConsumerData(
            group_name="G",
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscription_data_set=[SubscriptionData(topic="T", sub_string="*")],
        )
        self.rig.consumers.register(self.rig.connection, "c", "JAVA", 479, data, True)
        value = self.sliced(203, {"consumerGroup": "G"})
        self.assertEqual(
            value["connectionSet"],
            [
                {
                    "clientAddr": "10.0.0.2:4711",
                    "clientId": "c",
                    "language": "JAVA",
                    "version": 479,
                }
            ],
        )
        self.assertEqual(value["consumeType"], "CONSUME_PASSIVELY")
        self.assertEqual(value["messageModel"], "CLUSTERING")
        self.assertEqual(value["subscriptionTable"]["T"]["subString"], "*")

    def test_producers(self) -> None:
        """The members of a producer group; an error if there are none."""
        with self.assertRaises(SystemFailure):
            self.rig.ask(204, {"producerGroup": "P"})
        self.rig.producers.register(self.rig.connection, "c", "GO", 317, "P")
        value = self.sliced(204, {"producerGroup": "P"})
        self.assertEqual(value["connectionSet"][0]["language"], "GO")

    def test_manyMembers(self) -> None:
        """Thousands of members are written in steps, beside other requests."""
        for number in range(10 * STEP_MEMBERS + 1):
            connection = RecordedConnection(port=number)
            self.rig.producers.register(connection, f"c{number}", "GO", 317, "P")
        before = self.rig.broker.slices.steps
        value = self.sliced(204, {"producerGroup": "P"})
        self.assertEqual(len(value["connectionSet"]), 10 * STEP_MEMBERS + 1)
        self.assertGreater(self.rig.broker.slices.steps, before + 10)

    def test_allProducers(self) -> None:
        """All groups of producers, with the time of each one's last heartbeat."""
        for number in range(STEP_MEMBERS + 1):
            connection = RecordedConnection(port=number)
            self.rig.producers.register(connection, f"c{number}", "GO", 317, "P")
        self.rig.clock.advance(2)
        self.rig.producers.register(self.rig.connection, "c", "JAVA", 479, "Q")
        self.rig.clock.advance(1)
        before = self.rig.broker.slices.steps
        found = self.sliced(328, {})["data"]
        self.assertGreaterEqual(self.rig.broker.slices.steps, before + 3)
        self.assertEqual(len(found["P"]), STEP_MEMBERS + 1)
        self.assertEqual(found["P"][0]["lastUpdateTimestamp"], WALL_MS)
        self.assertEqual(
            found["Q"],
            [
                {
                    "clientId": "c",
                    "language": "JAVA",
                    "lastUpdateTimestamp": WALL_MS + 2000,
                    "remoteIP": "/10.0.0.2:4711",
                    "version": 479,
                }
            ],
        )

    def test_topicsOfGroup(self) -> None:
        """The topics of a group are those in which it has offsets."""
        for topic in ("U", "T"):
            self.rig.offsets.commit("G", topic, 0, 1)
        for group, topics in (("G", ["T", "U"]), ("H", [])):
            answer = loads(self.rig.ask(343, {"group": group}).body)
            wanted = {"brokerAddr": "10.0.0.1:10911", "topicList": topics}
            self.assertEqual(answer, wanted)

    def test_subscription(self) -> None:
        """To what of a topic a group subscribes, if it has members that do."""
        data = ConsumerData(
            group_name="G",
            subscription_data_set=[SubscriptionData(topic="T", sub_string="a")],
        )
        self.rig.consumers.register(self.rig.connection, "c", "JAVA", 479, data, True)
        for topic, expression in (("T", "a"), ("U", None)):
            ext = {"group": "G", "topic": topic}
            value = loads(self.rig.ask(345, ext).body)
            assert isinstance(value, dict)
            found = value.pop("subscriptionData", {})
            assert isinstance(found, dict)
            self.assertEqual(found.get("subString"), expression)
            self.assertEqual(value, ext)
        with self.assertRaises(SystemFailure):
            self.rig.ask(345, {"group": "G"})

    def test_forbidden(self) -> None:
        """A group is forbidden a topic and allowed it again; asking changes nothing."""
        ext = {"group": "G", "topic": "T"}
        for change, readable in (("", True), ("false", False), ("", False)):
            more = {"readable": change} if change else {}
            value = loads(self.rig.ask(353, {**ext, **more}).body)
            self.assertEqual(value, {**ext, "readable": readable})
            self.assertEqual(self.rig.groups.read_forbidden("G", "T"), not readable)
        (line,) = logged(lambda: self.rig.ask(353, {**ext, "readable": "true"}))
        self.assertEqual(line, "10.0.0.2:4711 allowed group 'G' to read topic 'T'")
        self.assertFalse(self.rig.groups.read_forbidden("G", "T"))
        with self.assertRaises(SystemFailure):
            self.rig.ask(353, {"group": "G", "readable": "false"})

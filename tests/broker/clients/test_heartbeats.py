"""Heartbeats of clients."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from rocketbroker.broker.clients.heartbeats import (
    MAX_AT_ONCE,
    MAX_BYTES,
    MAX_GROUPS,
    MAX_WAITING,
    WaitingHeartbeats,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import (
    InvalidParameter,
    SubscriptionParseFailed,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.heartbeats import MAX_SUBSCRIPTIONS, MAX_TOPICS
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps, loads
from tests.broker.clients.heartbeatcase import HeartbeatCase
from tests.broker.rig import answered, heartbeat


class HeartbeatTests(HeartbeatCase):
    """Requests 34, 35 and 46."""

    def test_codes(self) -> None:
        """It answers heartbeats, farewells and the check of a subscription."""
        table = ResponderTable()
        self.heartbeats.register(table)
        self.assertEqual(sorted(table.responders), [34, 35, 46])

    def test_registered(self) -> None:
        """Consumers and producers are known after it, the group and its retry topic."""
        self.assertEqual(self.beat()["IS_SUB_CHANGE"], "true")
        group = self.consumers.group("G")
        assert group is not None
        self.assertEqual(group.client_ids(), ["10.0.0.9@1"])
        self.assertIn("T", group.subscriptions)
        self.assertEqual(len(self.producers.members("P")), 1)
        self.assertIsNotNone(self.groups.config("G"))
        retry = self.topics.config("%RETRY%G")
        assert retry is not None
        self.assertEqual((retry.read_queue_nums, retry.perm), (1, 6))
        self.assertEqual(self.heartbeats.received, 1)

    def test_retryQueues(self) -> None:
        """The retry topic has the group's number of queues, and order like its topics.

        The order flag follows with each heartbeat.
        """
        self.groups.put([SubscriptionGroupConfig(group_name="G", retry_queue_nums=3)])
        self.topics.put([TopicConfig(topic_name="T", order=True)])
        self.beat()
        retry = self.topics.config("%RETRY%G")
        assert retry is not None
        self.assertEqual((retry.write_queue_nums, retry.order), (3, True))
        self.topics.put([TopicConfig(topic_name="T", order=False)])
        self.beat()
        retry = self.topics.config("%RETRY%G")
        assert retry is not None
        self.assertFalse(retry.order)

    def test_retryTopicAwaited(self) -> None:
        """A member of a new group is answered and notified when name servers know its
        retry topic, but no longer than clients wait. Its next heartbeat is answered at
        once, and nobody is notified."""
        self.announced = Deferred()
        answer = self.begin()
        assert isinstance(answer, Deferred)
        self.assertNoResult(answer)
        self.assertEqual(self.waited, 2.0)
        self.assertIsNotNone(self.consumers.group("G"))
        self.clock.advance(1)
        self.assertEqual(self.connection.frames, [])
        self.announced.callback(None)
        self.assertEqual(answered(answer).code, 0)
        self.clock.advance(0)
        self.assertEqual([sent.code for sent in self.connection.answers()], [40])
        self.announced = Deferred()
        self.assertIsInstance(self.begin(), Command)
        self.clock.advance(1)
        self.assertEqual(len(self.connection.frames), 1)

    def test_goneMeanwhile(self) -> None:
        """A member may go while name servers are told of its retry topic."""
        self.announced = Deferred()
        answer = self.begin()
        self.connection.close()
        self.announced.callback(None)
        self.assertEqual(answered(answer).code, 0)
        self.assertIsNone(self.consumers.group("G"))

    def test_quietGroup(self) -> None:
        """A group that wants no notices gets none for its retry topic either."""
        quiet = SubscriptionGroupConfig(
            group_name="G", notify_consumer_ids_changed_enable=False
        )
        self.groups.put([quiet])
        self.beat()
        group = self.consumers.group("G")
        assert group is not None
        self.consumers.rebalances(group, self.connection)
        self.clock.advance(1)
        self.assertEqual(self.connection.frames, [])

    def test_unitMode(self) -> None:
        """The retry topic of consumers of a unit says that they read it, so that name
        servers list it; a topic that is there keeps its flag."""
        unit = heartbeat().replace(b'"unitMode":false', b'"unitMode":true')
        self.assertNotEqual(unit, heartbeat())
        self.beat(unit)
        self.beat()
        retry = self.topics.config("%RETRY%G")
        assert retry is not None
        self.assertEqual(retry.topic_sys_flag, 2)

    def test_unknownGroup(self) -> None:
        """A consumer of a group that may not be is skipped; the answer says nothing."""
        self.make(BrokerOptions(auto_create_subscription_group=False))
        self.beat()
        self.assertIsNone(self.consumers.group("G"))
        self.assertIsNone(self.topics.config("%RETRY%G"))
        self.assertEqual(len(self.producers.members("P")), 1)

    def test_pullConsumersRejected(self) -> None:
        """rejectPullConsumerEnable skips consumers that pull."""
        self.make(BrokerOptions(reject_pull_consumer_enable=True))
        self.beat(heartbeat(consumeType="CONSUME_ACTIVELY"))
        self.assertIsNone(self.consumers.group("G"))
        self.beat()
        self.assertIsNotNone(self.consumers.group("G"))

    def test_secondVersion(self) -> None:
        """A fingerprint that is another one than before asks for all again."""
        self.assertEqual(
            self.beat(heartbeat(heartbeatFingerprint=5))["IS_SUB_CHANGE"], "false"
        )
        without = heartbeat(heartbeatFingerprint=5, withoutSub=True)
        self.assertEqual(self.beat(without)["IS_SUB_CHANGE"], "false")
        other = heartbeat(heartbeatFingerprint=6)
        self.assertEqual(self.beat(other)["IS_SUB_CHANGE"], "true")
        self.assertEqual(self.beat(other)["IS_SUB_CHANGE"], "false")

    def test_secondVersionAfterRestart(self) -> None:
        """A heartbeat without subscriptions that nobody told here asks for them."""
        without = heartbeat(heartbeatFingerprint=5, withoutSub=True)
        self.assertEqual(self.beat(without)["IS_SUB_CHANGE"], "true")
        self.assertEqual(self.beat(without)["IS_SUB_CHANGE"], "true")
        full = heartbeat(heartbeatFingerprint=5)
        self.assertEqual(self.beat(full)["IS_SUB_CHANGE"], "false")
        self.assertEqual(self.beat(without)["IS_SUB_CHANGE"], "false")
        self.assertIsNotNone(self.consumers.subscription("G", "T"))

    def test_wrongBody(self) -> None:
        """A body that is no heartbeat is answered, in words."""
        for content in (b"", b"{", b"[]", b'{"consumerDataSet":7}'):
            with self.assertRaises(SystemFailure):
                self.beat(content)

    def test_unregister(self) -> None:
        """A client that leaves is gone; one that never was there gets the same
        answer."""
        self.beat()
        ext = {"clientID": "10.0.0.9@1", "producerGroup": "P", "consumerGroup": "G"}
        for _ in range(2):
            answer = self.heartbeats.unregister(self.connection, Command(35, ext))
            self.assertEqual(answered(answer).code, 0)
        self.assertIsNone(self.consumers.group("G"))
        self.assertEqual(self.producers.members("P"), [])

    def test_unregisterNothing(self) -> None:
        """Nothing is left where nothing is named."""
        self.beat()
        self.heartbeats.unregister(self.connection, Command(35, {"clientID": "x"}))
        self.assertIsNotNone(self.consumers.group("G"))

    def check(self, kind: str, expression: str) -> int:
        """Have a subscription checked."""
        subscription = {
            "topic": "T",
            "expressionType": kind,
            "subString": expression,
        }
        value = {"clientId": "c", "group": "G", "subscriptionData": subscription}
        request = Command(46, {}, dumps(value))
        return self.heartbeats.check_client(self.connection, request).code

    def test_check(self) -> None:
        """Tags can be checked; SQL92 is not supported unless it is switched on."""
        self.assertEqual(self.check("TAG", "a || b"), 0)
        with self.assertRaisesRegex(SystemFailure, "by SQL92"):
            self.check("SQL92", "a > 5")
        self.make(BrokerOptions(enable_property_filter=True))
        self.assertEqual(self.check("SQL92", "a > 5"), 0)
        with self.assertRaisesRegex(SubscriptionParseFailed, "the end at 3"):
            self.check("SQL92", "a >")

    def test_filters(self) -> None:
        """A subscription by SQL92 in a heartbeat is known as a filter; one that
        leaves its subscriptions out changes nothing."""
        value = loads(heartbeat(heartbeatFingerprint=5))
        assert isinstance(value, dict)
        (consumer,) = value["consumerDataSet"]
        consumer["subscriptionDataSet"][0].update(
            expressionType="SQL92", subString="a > 5"
        )
        self.beat(dumps(value))
        self.beat(heartbeat(heartbeatFingerprint=5, withoutSub=True))
        found = self.filters.get("T", "G")
        assert found is not None
        self.assertEqual(found.expression, "a > 5")

    def test_mostGroups(self) -> None:
        """A connection is in so many groups of a kind, whichever heartbeats say so."""
        producers = [{"groupName": f"P{n}"} for n in range(MAX_GROUPS)]
        full = heartbeat(consumerDataSet=[], producerDataSet=producers)
        self.sliced(full)
        more = heartbeat(producerDataSet=[{"groupName": "Q"}])
        with self.assertRaisesRegex(InvalidParameter, "1025 groups"):
            self.heartbeats.heart_beat(self.connection, Command(34, {}, more))
        self.assertIsNone(self.consumers.group("G"))
        fewer = heartbeat(producerDataSet=producers[:1])
        self.beat(fewer)
        self.assertEqual(self.consumers.groups_on(self.connection), ("G",))

    def test_mostConsumers(self) -> None:
        """The same number of groups of consumers; then none of them is taken."""
        consumers = [{"groupName": f"G{n}"} for n in range(MAX_GROUPS + 1)]
        with self.assertRaisesRegex(InvalidParameter, "1025 groups"):
            self.sliced(heartbeat(consumerDataSet=consumers))
        self.assertEqual(self.consumers.groups(), [])


class LongTests(HeartbeatCase):
    """Heartbeats that are taken over in slices."""

    def long(self, topics: int = 1000, version: int = 1, groups: int = 2) -> bytes:
        """A heartbeat of two groups, with so many topics each."""
        subscriptions = [
            {"topic": f"T{number}", "subString": "*", "subVersion": version}
            for number in range(topics)
        ]
        consumers = [
            {
                "groupName": f"G{number}",
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "subscriptionDataSet": subscriptions,
            }
            for number in range(groups)
        ]
        return heartbeat(consumerDataSet=consumers)

    def topics_of(self, group: str) -> int:
        """How many topics a group subscribes to."""
        found = self.consumers.group(group)
        return 0 if found is None else len(found.subscriptions)

    def test_answeredAtItsEnd(self) -> None:
        """A long one is read and taken over in many short steps, and answered when all
        its groups are known."""
        answer = self.begin(self.long())
        assert isinstance(answer, Deferred)
        self.assertNoResult(answer)
        self.assertEqual(self.consumers.groups(), [])
        self.run_slices()
        self.assertEqual((self.topics_of("G0"), self.topics_of("G1")), (1000, 1000))
        self.assertEqual(len(self.producers.members("P")), 1)
        found = answered(answer)
        assert found.ext is not None
        self.assertEqual((found.code, found.opaque), (0, 7))
        self.assertEqual(found.ext["IS_SUB_CHANGE"], "true")
        self.assertIsNotNone(self.topics.config("%RETRY%G1"))
        # Of 64 subscriptions each, twice, and of eight kilobytes of text.
        self.assertGreater(self.slices.steps, 2 * 1000 // 64 + 10)
        self.assertEqual(self.heartbeats.received, 1)

    def test_manyGroups(self) -> None:
        """A short one of many groups takes a step for each."""
        consumers = [{"groupName": f"G{number}"} for number in range(500)]
        self.assertEqual(self.sliced(heartbeat(consumerDataSet=consumers)).code, 0)
        self.assertEqual(len(self.consumers.groups()), 500)
        self.assertGreater(self.slices.steps, 500)

    def test_lastWordCounts(self) -> None:
        """What follows on the same connection is done behind it, in its order."""
        first = self.begin(self.long())
        second = self.begin(heartbeat(["T1"], group="G0"))
        ext = {"clientID": "10.0.0.9@1", "producerGroup": "P", "consumerGroup": "G1"}
        last = self.heartbeats.unregister(self.connection, Command(35, ext))
        for each in (first, second, last):
            assert isinstance(each, Deferred)
            self.assertNoResult(each)
        self.run_slices()
        self.assertEqual(
            [answered(each).code for each in (first, second, last)], [0] * 3
        )
        self.assertEqual((self.topics_of("G0"), self.topics_of("G1")), (1, 0))
        self.assertEqual(self.producers.members("P"), [])
        self.beat(heartbeat(group="G0"))

    def test_othersDoNotWait(self) -> None:
        """Another connection is served meanwhile."""
        self.begin(self.long())
        other, self.connection = self.connection, RecordedConnection()
        self.beat()
        self.assertEqual(len(self.consumers.groups()), 1)
        self.run_slices()
        self.assertEqual(self.consumers.groups_on(other), ("G0", "G1"))

    def test_closedMeanwhile(self) -> None:
        """Of a connection that is closed in the middle nothing is left."""
        self.begin(self.long(groups=8))
        while not self.consumers.groups():
            self.clock.advance(0.001)
        self.connection.close()
        self.run_slices()
        self.assertEqual(self.consumers.groups(), [])
        self.assertEqual(self.producers.members("P"), [])

    def test_mostThatWait(self) -> None:
        """So many of one connection may wait; then it is told that that is too much."""
        for _ in range(MAX_WAITING):
            self.begin(self.long(400))
        with self.assertRaises(SystemBusy):
            self.begin()
        self.run_slices()
        self.beat(heartbeat(group="G0"))

    def test_mostBytes(self) -> None:
        """All bodies that wait have a limit together, and it is free again when they
        are done."""
        waiting = WaitingHeartbeats(self.slices)
        large = Command(34, {}, bytes(MAX_BYTES // 2))
        for _ in range(2):
            for connection in (RecordedConnection(), RecordedConnection()):
                waiting.run(connection, large, iter(()))
                self.assertIn(connection, waiting)
            with self.assertRaises(SystemBusy):
                waiting.run(self.connection, Command(34, {}, b"1"), iter(()))
            self.run_slices()
            self.assertNotIn(connection, waiting)

    def refused(self, content: bytes, why: str) -> None:
        """A heartbeat is refused in words, and nothing of it is taken."""
        with self.assertRaises((SystemFailure, InvalidParameter)) as caught:
            self.sliced(content)
        self.assertIn(why, caught.exception.remark)
        self.assertEqual(self.topics_of("G0"), 0)

    def test_beyondLimits(self) -> None:
        """More topics than one step takes over, or than are kept for one connection,
        are refused; and what is no JSON."""
        self.refused(self.long(MAX_TOPICS + 1, groups=1), "4097 topics")
        groups = MAX_SUBSCRIPTIONS // 1000 + 1
        self.refused(self.long(groups=groups), f"the most is {MAX_SUBSCRIPTIONS}")
        self.refused(b"{" + b" " * MAX_AT_ONCE, "JSON")

    def test_mostOfConnection(self) -> None:
        """The subscriptions of all groups of a connection count, as they are now."""
        most = MAX_SUBSCRIPTIONS // MAX_TOPICS
        full = self.long(MAX_TOPICS, groups=most)
        self.assertEqual(self.sliced(full).code, 0)
        self.assertEqual(self.sliced(full).code, 0)
        with self.assertRaisesRegex(InvalidParameter, "with 8193 subscriptions"):
            self.begin(heartbeat(group="H"))
        self.begin(heartbeat(group="G0"))
        self.beat(heartbeat(group="H"))

"""A slave's copies of its master's tables."""

from __future__ import annotations

from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.message_request_mode import RequestMode
from rocketbroker.broker.registration.masters import Master
from rocketbroker.broker.replicas.metadata_sync import METADATA_SYNC
from rocketbroker.broker.roles import Role
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.mappings import TopicQueueMappingDetail
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from tests.broker.callers import Call, Caller
from tests.broker.rig import WALL_MS, Rig, answered

MASTER = "10.0.0.7:10911"

#: The codes, in the order in which they are asked for.
CODES = [21, 43, 45, 201, 402]


class SyncTests(SynchronousTestCase):
    """L{MetadataSync}, of a slave whose master is another whole broker."""

    def setUp(self) -> None:
        """A master with one of everything, and a slave that has not heard of it."""
        self.master = Rig({"brokerIP1": "10.0.0.7"})
        self.addCleanup(self.master.close)
        self.caller = Caller()
        self.slave = Rig({"brokerRole": "SLAVE", "brokerId": "1"}, client=self.caller)
        self.addCleanup(self.slave.close)
        self.masters = self.slave.broker.registration.registration.masters
        self.sync = self.slave.broker.metadata_sync
        self.master.topic("T", queues=3, attributes={"message.type": "FIFO"})
        self.master.groups.put([SubscriptionGroupConfig(group_name="G")])
        self.master.offsets.commit("G", "T", 0, 7)
        self.master.broker.schedule.offsets.put(3, 5)
        self.master.broker.metadata.request_modes.put(
            RequestMode(topic="T", consumer_group="G")
        )
        mapping = TopicQueueMappingDetail(topic="T", bname="broker-a", epoch=3)
        self.master.broker.metadata.mappings.put(mapping, False)

    def begin(self) -> None:
        """The slave runs, and finds its master."""
        self.sync.start()
        self.addCleanup(self.slave.broker.services.stop)
        self.masters.say(Master("10.0.0.7:10912", MASTER))

    def answered(self, call: Call) -> None:
        """The master answers."""
        port = 10909 if call.command.code == 21 else 10911
        self.assertEqual(call.address, f"10.0.0.7:{port}")
        begun = self.master.begin(call.command.code, {})
        self.master.clock.advance(0)
        answer = answered(begun)
        call.answer(answer.code, answer.body)
        self.slave.clock.advance(0)

    def round(self, failing: int = 0) -> list[int]:
        """The master answers all that it is asked, but one request; what that was."""
        codes = []
        while calls := self.caller.take():
            for call in calls:
                codes.append(call.command.code)
                if call.command.code == failing:
                    call.fail()
                else:
                    self.answered(call)
        return codes

    def test_copied(self) -> None:
        """As soon as the master is known, a slave has all that it has, with its
        versions."""
        self.begin()
        self.assertEqual(self.round(), CODES)
        slave, master = self.slave, self.master
        self.assertEqual(slave.topics.config("T"), master.topics.config("T"))
        self.assertEqual(slave.topics.version, master.topics.version)
        self.assertEqual(slave.topics.names(), master.topics.names())
        self.assertEqual(slave.groups.config("G"), master.groups.config("G"))
        self.assertEqual(slave.groups.version, master.groups.version)
        self.assertEqual(slave.offsets.queues("G", "T"), {0: 7})
        self.assertEqual(slave.broker.schedule.offsets.get(3), 5)
        mappings = dumps(slave.broker.metadata.mappings.to_json())
        self.assertEqual(mappings, dumps(master.broker.metadata.mappings.to_json()))
        self.assertEqual(list(slave.broker.metadata.mappings.details), ["T"])
        modes = slave.broker.metadata.request_modes.to_json()
        self.assertEqual(modes, master.broker.metadata.request_modes.to_json())
        for table in self.sync.tables:
            self.assertEqual((table.last_ms, table.problem), (WALL_MS, ""))

    def test_kept(self) -> None:
        """What was copied is in the slave's files."""
        self.begin()
        self.round()
        self.slave.broker._save()
        for name, word in (
            ("topics.json", b'"FIFO"'),
            ("subscriptionGroup.json", b'"groupName":"G"'),
            ("consumerOffset.json", b'"T@G":{0:7}'),
            ("delayOffset.json", b'"offsetTable":{3:5}'),
            ("messageRequestMode.json", b'"consumerGroup":"G"'),
        ):
            self.assertIn(word, self.slave.disk.read(f"/store/config/{name}"))

    def test_periods(self) -> None:
        """It asks again each minute, at a tick of three seconds."""
        self.begin()
        self.round()
        asked: list[float] = []
        for _ in range(130):
            self.slave.clock.advance(1)
            if self.round():
                asked.append(self.slave.clock.seconds())
        self.assertEqual(asked, [61, 121])

    def test_unchanged(self) -> None:
        """What has the master's version is left alone."""
        self.begin()
        self.round()
        slave = self.slave
        before = slave.topics.generation, slave.groups.generation
        slave.clock.advance(61)
        self.assertEqual(self.round(), CODES)
        after = slave.topics.generation, slave.groups.generation
        self.assertEqual(after, before)

    def test_changes(self) -> None:
        """What the master has changed or deleted is changed or deleted here; what every
        broker has stays, and so do the offsets of groups that are gone."""
        self.begin()
        self.round()
        heard: list[list[str]] = []
        self.slave.topics.watch(heard.append)
        self.master.topic("T", queues=5)
        self.master.topic("New")
        self.master.topics.delete("SELF_TEST_TOPIC")
        self.master.groups.delete("G")
        self.master.groups.delete("TOOLS_CONSUMER")
        self.master.offsets.forget_group("G")
        self.slave.topic("Own")
        heard.clear()
        self.slave.clock.advance(61)
        self.round()
        slave = self.slave
        config = slave.topics.config("T")
        assert config is not None
        self.assertEqual(config.read_queue_nums, 5)
        self.assertEqual(heard, [["New", "T"]])
        names = slave.topics.names()
        self.assertIn("SELF_TEST_TOPIC", names)
        self.assertNotIn("Own", names)
        self.assertIsNone(slave.groups.config("G"))
        self.assertIsNotNone(slave.groups.config("TOOLS_CONSUMER"))
        self.assertEqual(slave.offsets.queues("G", "T"), {0: 7})

    def test_commits(self) -> None:
        """What was committed at the slave holds until the next copy."""
        self.begin()
        self.round()
        self.slave.offsets.commit("G", "T", 0, 9)
        self.slave.offsets.commit("H", "T", 0, 1)
        self.slave.clock.advance(61)
        self.round()
        self.assertEqual(self.slave.offsets.queues("G", "T"), {0: 7})
        self.assertEqual(self.slave.offsets.queues("H", "T"), {0: 1})

    def test_failures(self) -> None:
        """A table that cannot be had is logged once, and keeps no other from being
        copied."""
        with capturedLogs() as events:
            self.begin()
            self.assertEqual(self.round(43), CODES)
            self.slave.clock.advance(61)
            self.round(43)
        lines = [formatEvent(event) for event in events]
        (line,) = [line for line in lines if "cannot be had" in line]
        self.assertIn(f"The consumer offsets of the master {MASTER}", line)
        offsets = self.sync.tables[1]
        self.assertEqual((offsets.failures, offsets.last_ms), (2, 0))
        self.assertTrue(offsets.problem)
        self.slave.clock.advance(61)
        self.round()
        self.assertEqual((offsets.problem, offsets.failures), ("", 2))
        self.assertEqual(self.slave.offsets.queues("G", "T"), {0: 7})

    def test_masterThatControlsAccess(self) -> None:
        """It refuses who does not sign: the log says which setting helps."""
        with capturedLogs() as events:
            self.begin()
            for call in self.caller.take():
                call.answer(16)
        lines = [formatEvent(event) for event in events]
        (line,) = [line for line in lines if "cannot be had" in line]
        self.assertIn("innerClientAuthenticationCredentials", line)

    def test_nonsense(self) -> None:
        """An answer that is no table changes nothing."""
        self.begin()
        before = self.slave.topics.names()
        for body in (b"", b"[]", b"{}", b'{"topicConfigTable":{"T":3}}'):
            self.slave.clock.advance(61)
            while calls := self.caller.take():
                for call in calls:
                    call.answer(body=body)
                    self.slave.clock.advance(0)
        self.assertEqual(self.slave.topics.names(), before)
        self.assertTrue(self.sync.tables[0].problem)

    def test_olderMaster(self) -> None:
        """A master of 4.9 has no request modes: that is no problem. Its versions have
        no state."""
        self.begin()
        version = {"counter": 3, "timestamp": 5}
        config = TopicConfig(topic_name="T", read_queue_nums=2)
        table = {"dataVersion": version, "topicConfigTable": {"T": config.to_json()}}
        while calls := self.caller.take():
            for call in calls:
                if call.command.code == 402:
                    call.answer(code=3)
                elif call.command.code == 21:
                    call.answer(body=dumps(table))
                else:
                    self.answered(call)
        self.assertEqual(self.slave.topics.config("T"), config)
        self.assertEqual(self.slave.topics.version, DataVersion(timestamp=5, counter=3))
        self.assertEqual([table.problem for table in self.sync.tables], [""] * 5)

    def test_noMaster(self) -> None:
        """Without a master, or with one that is this broker, nobody is asked."""
        self.sync.start()
        self.addCleanup(self.slave.broker.services.stop)
        self.slave.clock.advance(100)
        self.masters.say(Master("10.0.0.1:10912", "10.0.0.1:10911"))
        self.slave.clock.advance(100)
        self.assertEqual(self.caller.take(), [])

    def test_role(self) -> None:
        """A master asks nobody, and what a slave has asked for does not count once it
        does the master's work."""
        self.begin()
        (call,) = self.caller.take()
        services = self.slave.broker.services
        services.act_as(Role.ACTING_MASTER)
        self.assertFalse(services.is_on(METADATA_SYNC))
        self.answered(call)
        self.assertEqual(self.caller.take(), [])
        self.assertIsNone(self.slave.topics.config("T"))
        self.slave.clock.advance(100)
        self.assertEqual(self.caller.take(), [])

    def test_stop(self) -> None:
        """What comes after the stop does not count, and is no failure."""
        self.begin()
        (call,) = self.caller.take()
        self.sync.stop()
        call.fail()
        self.assertEqual(self.sync.tables[0].failures, 0)
        self.assertEqual(self.caller.take(), [])
        self.assertIsInstance(call.command, Command)

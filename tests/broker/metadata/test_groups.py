"""The table of consumer groups."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.fastjson import dumps, loads

PATH = "/store/config/subscriptionGroup.json"


class GroupTableTests(SynchronousTestCase):
    """Groups: built in, created, changed, kept."""

    def setUp(self) -> None:
        """A broker's groups on an empty disk."""
        self.disk = MemoryDisk()
        self.groups = self.table()

    def table(self, **options: Any) -> GroupTable:
        """A table over the disk, as a start finds it."""
        file = JsonTable(self.disk, PATH, at_once, Clock())
        broker = attrs.evolve(BrokerOptions(), **options)
        table = GroupTable(broker, file, lambda: 1000)
        table.load()
        return table

    def test_limit(self) -> None:
        """With rocketbrokerMaxAutoGroups groups none is created by being used; those
        that are there go on."""
        groups = self.table(rocketbroker_max_auto_groups=9)
        self.assertIsNotNone(groups.find("G"))
        with capturedLogs() as events:
            self.assertIsNone(groups.find("H"))
        self.assertIn("rocketbrokerMaxAutoGroups is 9", formatEvent(events[0]))
        self.assertIsNotNone(groups.find("G"))
        self.assertEqual(groups.limit.refused, 1)

    def test_builtIn(self) -> None:
        """The system's groups are there at every start."""
        names = {config.group_name for config in self.groups.configs()}
        self.assertEqual(len(names), 8)
        self.assertLessEqual({"TOOLS_CONSUMER", "CID_RMQ_SYS_TRANS"}, names)

    def test_find(self) -> None:
        """A group is made on first use, with RocketMQ's defaults, and kept."""
        self.assertIsNone(self.groups.config("G"))
        found = self.groups.find("G")
        self.assertEqual(found, SubscriptionGroupConfig(group_name="G"))
        self.assertIs(self.groups.find("G"), found)
        self.assertEqual(self.table().config("G"), found)

    def test_findRefused(self) -> None:
        """Names that no topic could carry make no group."""
        for name in ("a b", "a.b", "x" * 256):
            self.assertIsNone(self.groups.find(name))
        self.assertIsNotNone(self.groups.find("x" * 255))

    def test_findDisabled(self) -> None:
        """Without automatic creation only the system's groups are made."""
        groups = self.table(auto_create_subscription_group=False)
        self.assertIsNone(groups.find("G"))
        self.assertIsNotNone(groups.find("CID_RMQ_SYS_X"))
        groups = self.table(
            auto_create_subscription_group=False, enable_create_sys_group=False
        )
        self.assertIsNone(groups.find("CID_RMQ_SYS_Y"))

    def test_put(self) -> None:
        """A change makes the version newer and tells caches."""
        version, generation = self.groups.version, self.groups.generation
        config = SubscriptionGroupConfig(group_name="G", retry_max_times=3)
        self.groups.put([config])
        self.assertGreater(self.groups.version.counter, version.counter)
        self.assertGreater(self.groups.generation, generation)
        self.assertEqual(self.table().config("G"), config)
        self.assertEqual(self.table().version, self.groups.version)

    def test_delete(self) -> None:
        """A deleted group is gone, with what was forbidden to it."""
        self.groups.find("G")
        self.assertTrue(self.groups.delete("G"))
        self.assertFalse(self.groups.delete("G"))
        self.assertIsNone(self.table().config("G"))

    def test_forbidden(self) -> None:
        """Topics that a group may not read are kept in the file."""
        self.disk.make_dirs("/store/config")
        text = b'{"forbiddenTable":{"G":{"T":4,"U":2,"V":"x"},"H":1}}'
        self.disk.open(PATH, create=True).pwrite(text, 0)
        groups = self.table()
        self.assertTrue(groups.read_forbidden("G", "T"))
        for group, topic in (("G", "U"), ("G", "V"), ("G", "W"), ("H", "T")):
            self.assertFalse(groups.read_forbidden(group, topic))
        groups.find("X")
        value = loads(self.disk.read(PATH))
        assert isinstance(value, dict)
        self.assertEqual(value["forbiddenTable"], {"G": {"T": 4, "U": 2}})

    def test_forbid(self) -> None:
        """A topic is forbidden and allowed alone, in memory and in the file."""
        for topic in ("T", "U"):
            self.groups.forbid_read("G", topic, True)
        generation = self.groups.generation
        self.groups.forbid_read("G", "U", True)
        self.assertEqual(self.groups.generation, generation)
        self.groups.forbid_read("G", "T", False)
        self.assertGreater(self.groups.generation, generation)
        for groups in (self.groups, self.table()):
            self.assertFalse(groups.read_forbidden("G", "T"))
            self.assertTrue(groups.read_forbidden("G", "U"))
        self.groups.forbid_read("G", "U", False)
        self.assertEqual(self.table().to_json()["forbiddenTable"], {})

    def test_text(self) -> None:
        """The text of a table that changed in parts is that of all of it, sorted."""
        for name in ("b", "a", "gone"):
            self.groups.find(name)
        self.groups.delete("gone")
        self.groups.put([SubscriptionGroupConfig(group_name="a", retry_max_times=1)])
        configs = self.groups.configs()
        self.assertEqual(len(self.groups), len(configs))
        table = {one.group_name: one.to_json() for one in configs}
        self.assertEqual(list(table), sorted(table))
        value = {**self.groups.to_json(), "subscriptionGroupTable": table}
        self.assertEqual(self.disk.read(PATH), dumps(value))

    def test_form(self) -> None:
        """The file has RocketMQ's shape."""
        self.groups.find("G")
        value = loads(self.disk.read(PATH))
        assert isinstance(value, dict)
        self.assertEqual(
            value["subscriptionGroupTable"]["G"],
            {
                "attributes": {},
                "brokerId": 0,
                "consumeBroadcastEnable": True,
                "consumeEnable": True,
                "consumeFromMinEnable": True,
                "consumeMessageOrderly": False,
                "consumeTimeoutMinute": 15,
                "groupName": "G",
                "groupRetryPolicy": {"type": "CUSTOMIZED"},
                "groupSysFlag": 0,
                "notifyConsumerIdsChangedEnable": True,
                "retryMaxTimes": 16,
                "retryQueueNums": 1,
                "whichBrokerWhenConsumeSlowly": 1,
            },
        )

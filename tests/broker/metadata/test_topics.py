"""The table of topics."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.topics import MAX_CHANGES, TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import ConfigurationError, TopicNotExist
from rocketbroker.records.names import MAX_QUEUES
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import Threads, at_once
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.fastjson import dumps, loads

PATH = "/store/config/topics.json"


class TopicTableTests(SynchronousTestCase):
    """Topics: built in, created, changed, kept."""

    def setUp(self) -> None:
        """A broker's topics on an empty disk."""
        self.disk = MemoryDisk()
        self.now = 1000
        self.options = BrokerOptions(broker_name="b", broker_cluster_name="C")
        self.topics = self.table()

    def table(self, **options: Any) -> TopicTable:
        """A table over the disk, as a start finds it."""
        changed = attrs.evolve(self.options, **options)
        file = JsonTable(self.disk, PATH, at_once, Clock())
        table = TopicTable(changed, file, lambda: self.now)
        table.load()
        return table

    def test_limit(self) -> None:
        """With rocketbrokerMaxAutoTopics topics none is created by sending to it, which
        the error says; operators create more, and so do known groups."""
        topics = self.table(rocketbroker_max_auto_topics=20)
        free = 20 - len(topics.names())
        for number in range(free):
            topics.create_for_send(f"T{number}", "TBW102", 4)
        self.assertEqual(len(topics.names()), 20)
        for name in ("T99", "%RETRY%G"):
            error = self.assertRaises(
                TopicNotExist, topics.create_for_send, name, "TBW102", 4
            )
            self.assertIn("rocketbrokerMaxAutoTopics allows (20)", str(error))
        self.assertIsNone(topics.create_for_send("T99", "", 4))
        self.assertEqual(topics.limit.refused, 2)
        for default in ("", "TBW102"):
            name = f"%RETRY%{default}"
            self.assertIsNotNone(topics.create_for_send(name, default, 1, exempt=True))
        self.assertIsNotNone(topics.create_for_send("T0", "TBW102", 4))
        topics.put([TopicConfig(topic_name="T99")])
        self.assertIsNotNone(topics.create_for_send("T99", "TBW102", 4))

    def test_damaged(self) -> None:
        """A damaged file refuses the start: without its topics nobody could read their
        messages."""
        self.disk.make_dirs("/store/config")
        self.disk.open(PATH, create=True).pwrite(b'{"topicConfigTable":', 0)
        error = self.assertRaises(ConfigurationError, self.table)
        self.assertIn(f"restore {PATH} from a backup", str(error))

    def test_mostQueues(self) -> None:
        """No topic has more queues than one may have, whatever file or group says."""
        self.assertEqual(self.topics.ensure("A", 1 << 30).read_queue_nums, MAX_QUEUES)
        self.topics.put(
            [TopicConfig(topic_name="B", read_queue_nums=-3, write_queue_nums=1 << 30)]
        )
        self.topics = self.table()
        self.assertEqual(self.queues("B"), (0, MAX_QUEUES, 6))

    def queues(self, name: str) -> tuple[int, int, int] | None:
        """Read queues, write queues and permission of a topic."""
        config = self.topics.config(name)
        if config is None:
            return None
        return config.read_queue_nums, config.write_queue_nums, config.perm

    def test_builtIn(self) -> None:
        """The system's topics are there at every start, as section 11.2 has them."""
        for name, queues, perm in (
            ("SELF_TEST_TOPIC", 1, 6),
            ("TBW102", 8, 7),
            ("BenchmarkTest", 1024, 6),
            ("C", 16, 7),
            ("b", 1, 7),
            ("OFFSET_MOVED_EVENT", 1, 6),
            ("SCHEDULE_TOPIC_XXXX", 18, 6),
            ("C_REPLY_TOPIC", 1, 6),
            ("rmq_sys_REVIVE_LOG_C", 8, 6),
            ("rmq_sys_SYNC_BROKER_MEMBER_b", 1, 1),
            ("RMQ_SYS_TRANS_HALF_TOPIC", 1, 6),
            ("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1, 6),
            ("rmq_sys_wheel_timer", 1, 6),
        ):
            self.assertEqual(self.queues(name), (queues, queues, perm), name)
        self.assertEqual(len(self.topics.names()), 13)

    def test_builtInBySettings(self) -> None:
        """Settings leave some out, add one, and take inheritance from others."""
        self.topics = self.table(
            auto_create_topic_enable=False,
            trace_topic_enable=True,
            cluster_topic_enable=False,
            broker_topic_enable=False,
        )
        self.assertIsNone(self.queues("TBW102"))
        self.assertEqual(self.queues("RMQ_SYS_TRACE_TOPIC"), (1, 1, 6))
        self.assertEqual(self.queues("C"), (16, 16, 1))
        self.assertEqual(self.queues("b"), (1, 1, 1))

    def test_system(self) -> None:
        """What is built in, or has a name of the system's, belongs to the system."""
        for name in ("TBW102", "b", "C_REPLY_TOPIC", "CHECKPOINT_TOPIC", "rmq_sys_X"):
            self.assertTrue(self.topics.is_system(name), name)
        self.assertFalse(self.topics.is_system("T"))
        self.assertIn("CHECKPOINT_TOPIC", self.topics.system_names())
        self.assertIn("C_REPLY_TOPIC", self.topics.system_names())

    def test_create(self) -> None:
        """A send creates its topic with at most the default topic's queues."""
        for wanted, got in ((4, 4), (100, 8), (-1, 0)):
            name = f"T{got}"
            config = self.topics.create_for_send(name, "TBW102", wanted)
            assert config is not None
            self.assertEqual(self.queues(name), (got, got, 6))
            self.assertEqual(config, self.topics.config(name))

    def test_createUnit(self) -> None:
        """A topic made in unit mode says so in its system flag."""
        config = self.topics.create_for_send("T", "TBW102", 4, unit_mode=True)
        assert config is not None
        self.assertEqual(config.topic_sys_flag, 1)

    def test_createKnown(self) -> None:
        """A topic that is there is what it is, whatever the default topic."""
        known = self.topics.create_for_send("T", "TBW102", 4)
        self.assertIs(self.topics.create_for_send("T", "nothing", 9), known)

    def test_createRefused(self) -> None:
        """Without a default topic that can be inherited from nothing is created."""
        self.topics.put([TopicConfig(topic_name="P", perm=6)])
        for default in ("nothing", "P", "BenchmarkTest"):
            self.assertIsNone(self.topics.create_for_send("T", default, 4))
        self.topics = self.table(auto_create_topic_enable=False)
        self.topics.put([TopicConfig(topic_name="TBW102", perm=7)])
        self.assertIsNone(self.topics.create_for_send("T", "TBW102", 4))

    def test_createByCluster(self) -> None:
        """The cluster's topic can be inherited from even without automatic creation."""
        self.topics = self.table(auto_create_topic_enable=False)
        self.assertIsNotNone(self.topics.create_for_send("T", "C", 4))

    def test_createRetry(self) -> None:
        """A retry topic is made where nothing else would be, with one queue."""
        self.topics = self.table(auto_create_topic_enable=False)
        self.assertIsNotNone(self.topics.create_for_send("%RETRY%G", "TBW102", 4))
        self.assertEqual(self.queues("%RETRY%G"), (1, 1, 6))

    def test_retryOfUnit(self) -> None:
        """A retry topic that somebody of a unit sends to is read by the unit's
        consumers, however it is made; one that is there stays as it is."""
        for enabled in (True, False):
            self.topics = self.table(auto_create_topic_enable=enabled)
            for default in ("TBW102", "none"):
                name = f"%RETRY%{default}"
                config = self.topics.create_for_send(name, default, 4, unit_mode=True)
                assert config is not None
                self.assertEqual(config.topic_sys_flag, 2)
                self.assertIs(self.topics.ensure(name, 1, sys_flag=0), config)

    def test_ensure(self) -> None:
        """A topic that must be there is made once, and its order flag kept right."""
        first = self.topics.ensure("%RETRY%G", 2)
        self.assertEqual(self.queues("%RETRY%G"), (2, 2, 6))
        self.assertIs(self.topics.ensure("%RETRY%G", 3), first)
        self.assertTrue(self.topics.ensure("%RETRY%G", 3, order=True).order)
        self.assertEqual(self.queues("%RETRY%G"), (2, 2, 6))

    def test_version(self) -> None:
        """Each change makes the version newer and tells caches and watchers."""
        changes: list[list[str]] = []
        self.topics.watch(changes.append)
        before, generation = self.topics.version, self.topics.generation
        self.now = 2000
        self.topics.put([TopicConfig(topic_name="A"), TopicConfig(topic_name="B")])
        after = self.topics.version
        self.assertEqual((after.counter, after.timestamp), (before.counter + 1, 2000))
        self.assertGreater(self.topics.generation, generation)
        self.assertEqual(changes, [["A", "B"]])

    def test_delete(self) -> None:
        """A deleted topic is gone, from the file too; name servers hear of it later."""
        changes: list[list[str]] = []
        self.topics.put([TopicConfig(topic_name="A")])
        self.topics.watch(changes.append)
        version = self.topics.version
        self.assertTrue(self.topics.delete("A"))
        self.assertFalse(self.topics.delete("A"))
        self.assertGreater(self.topics.version.counter, version.counter)
        self.assertEqual(changes, [])
        self.assertIsNone(self.table().config("A"))

    def test_kept(self) -> None:
        """The next start finds topics and version, merged over the built-in ones."""
        config = TopicConfig(
            topic_name="T", perm=4, order=True, attributes={"message.type": "FIFO"}
        )
        self.topics.put([config, TopicConfig(topic_name="TBW102", perm=7)])
        self.successResultOf(self.topics.saved())
        table = self.table(default_topic_queue_nums=3)
        self.assertEqual(table.config("T"), config)
        self.assertEqual(table.version, self.topics.version)
        default = table.config("TBW102")
        assert default is not None
        self.assertEqual(default.read_queue_nums, 16)

    def test_form(self) -> None:
        """The file has RocketMQ's shape."""
        self.topics.put([TopicConfig(topic_name="T", read_queue_nums=4)])
        value = loads(self.disk.read(PATH))
        assert isinstance(value, dict)
        self.assertEqual(
            value["dataVersion"], {"counter": 1, "stateVersion": 0, "timestamp": 1000}
        )
        self.assertEqual(
            value["topicConfigTable"]["T"],
            {
                "attributes": {},
                "order": False,
                "perm": 6,
                "readQueueNums": 4,
                "topicFilterType": "SINGLE_TAG",
                "topicName": "T",
                "topicSysFlag": 0,
                "writeQueueNums": 16,
            },
        )

    def test_text(self) -> None:
        """The text of a table that changed in parts is that of all of it, sorted; the
        text of a topic is made once for all tables that it is in."""
        for name in ("b", "a", "~", "%RETRY%g", "é", "gone"):
            self.topics.put([TopicConfig(topic_name=name, attributes={"+x": "y\n"})])
        self.topics.put([TopicConfig(topic_name="a", perm=2)])
        self.topics.delete("gone")
        names = self.topics.names()
        self.assertEqual(names, sorted(names))
        self.assertEqual(len(self.topics), len(names))
        config = self.topics.config("b")
        assert config is not None
        text = config.member
        self.topics.put([TopicConfig(topic_name="c")])
        table = {one.topic_name: one.to_json() for one in self.topics.configs()}
        version = self.topics.version.to_json()
        whole = dumps({"dataVersion": version, "topicConfigTable": table})
        self.assertEqual(self.disk.read(PATH), whole)
        self.assertEqual(dumps(self.topics.to_json()), whole)
        self.assertIs(config.member, text)
        self.assertEqual(self.table().names(), self.topics.names())

    def test_eachWatcherHearsOfAChange(self) -> None:
        """A second watcher does not take the place of the first; both hear of a change
        when it holds, but before it is written."""
        heard: list[tuple[str, int]] = []
        topics = self.topics
        topics.watch_changes(lambda: heard.append(("one", topics.generation)))
        topics.watch_changes(lambda: heard.append(("two", topics.generation)))
        topics.ensure("T", 1)
        after = topics.generation
        self.assertEqual(heard, [("one", after), ("two", after)])

    def test_changedSince(self) -> None:
        """The table tells which topics changed since some generation, as long as there
        were not too many changes."""
        before = self.topics.generation
        self.assertEqual(self.topics.changed_since(before), set())
        self.topics.put([TopicConfig(topic_name="T"), TopicConfig(topic_name="U")])
        middle = self.topics.generation
        self.topics.delete("T")
        self.assertEqual(self.topics.changed_since(before), {"T", "U"})
        self.assertEqual(self.topics.changed_since(middle), {"T"})
        self.assertIsNone(self.topics.changed_since(-1))
        for _ in range(MAX_CHANGES):
            self.topics.put([TopicConfig(topic_name="V")])
        self.assertIsNone(self.topics.changed_since(middle))
        self.assertEqual(self.topics.changed_since(middle + 1), {"V"})

    def test_saved(self) -> None:
        """Who waits for a topic waits until that topic is in the file, whatever other
        changes wait; who names none waits for all."""
        threads = Threads()
        file = JsonTable(self.disk, PATH, threads, Clock())
        topics = TopicTable(self.options, file, lambda: 1000)
        topics.put([TopicConfig(topic_name="old")])
        threads.run()
        topics.put([TopicConfig(topic_name="first")])
        topics.put([TopicConfig(topic_name="second"), TopicConfig(topic_name="third")])
        topics.delete("old")
        self.successResultOf(topics.saved("other"))
        self.assertTrue(topics.is_saved("other"))
        first = topics.saved("other", "first")
        second, gone, everything = (
            topics.kept("third"),
            topics.saved("old"),
            topics.saved(),
        )
        self.assertFalse(topics.is_saved("first"))
        threads.run()
        self.assertEqual(topics.is_saved("first"), True)
        self.successResultOf(first)
        for waits in (second, gone, everything):
            self.assertNoResult(waits)
        threads.run()
        for waits in (second, gone, everything):
            self.successResultOf(waits)
        self.assertTrue(topics.is_saved("second"))
        for perm in (2, 4):
            topics.put([TopicConfig(topic_name="again", perm=perm)])
        threads.run()
        self.assertFalse(topics.is_saved("again"))
        threads.run()
        self.assertTrue(topics.is_saved("again"))
        self.assertIsNotNone(self.table().config("third"))

    def test_failedWrite(self) -> None:
        """What the disk did not take is written again; what it took is not."""
        self.disk.capacity = 0
        self.topics.put([TopicConfig(topic_name="T")])
        self.disk.capacity = None
        self.successResultOf(self.topics.save())
        self.assertIsNotNone(self.table().config("T"))
        writes = self.disk.calls["rename"]
        self.topics.save()
        self.assertEqual(self.disk.calls["rename"], writes)

    def test_unreadableEntry(self) -> None:
        """A topic that makes no sense is left out; the others are there."""
        self.disk.make_dirs("/store/config")
        text = b'{"topicConfigTable":{"A":7,"B":{"topicName":"B","perm":4}}}'
        self.disk.open(PATH, create=True).pwrite(text, 0)
        self.topics = self.table()
        self.assertIsNone(self.queues("A"))
        self.assertEqual(self.queues("B"), (16, 16, 4))

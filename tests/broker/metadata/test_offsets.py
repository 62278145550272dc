"""The table of offsets."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.fastjson import dumps, loads

PATH = "/store/config/consumerOffset.json"
OTHER = "/store/config/lmqConsumerOffset.json"


class OffsetTableTests(SynchronousTestCase):
    """Offsets: committed, reset, forgotten, kept."""

    def setUp(self) -> None:
        """A broker's offsets on an empty disk."""
        self.disk = MemoryDisk()
        self.offsets = self.table()

    def table(self, **options: Any) -> OffsetTable:
        """A table over the disk, as a start finds it."""
        self.clock = Clock()
        self.file = JsonTable(self.disk, PATH, at_once, self.clock)
        other = JsonTable(self.disk, OTHER, at_once, self.clock)
        broker = attrs.evolve(BrokerOptions(), **options)
        self.slices = Slices(self.clock)
        table = OffsetTable(broker, self.file, other, self.slices, lambda: 1000)
        table.load()
        return table

    def test_commit(self) -> None:
        """What was committed last counts, also if it is lower."""
        self.assertEqual(self.offsets.query("G", "T", 0), NONE)
        self.offsets.commit("G", "T", 0, 7)
        self.offsets.commit("G", "T", 0, 5)
        self.assertEqual(self.offsets.query("G", "T", 0), 5)
        self.assertEqual(self.offsets.query("G", "T", 1), NONE)
        self.assertEqual(self.offsets.queues("G", "T"), {0: 5})

    def test_pullOffset(self) -> None:
        """Where a group pulls next is another thing than what it has consumed."""
        self.assertEqual(self.offsets.pull_offset("G", "T", 0), NONE)
        self.offsets.commit_pull("G", "T", 0, 9)
        self.assertEqual(self.offsets.pull_offset("G", "T", 0), 9)
        self.assertEqual(self.offsets.query("G", "T", 0), NONE)

    def test_progress(self) -> None:
        """All that is known of a group in a topic, with resets that are pending."""
        self.assertEqual(self.offsets.progress("G", "T"), ({}, {}))
        self.offsets.commit("G", "T", 0, 7)
        self.offsets.commit("G", "T", 1, 8)
        self.offsets.commit_pull("G", "T", 0, 9)
        self.offsets.reset("G", "T", 1, 3)
        self.offsets.commit("G", "T", 1, 8)
        self.assertEqual(self.offsets.progress("G", "T"), ({0: 7, 1: 3}, {0: 9}))
        self.assertEqual(self.offsets.keys(), ["T@G"])

    def test_lightGroups(self) -> None:
        """Groups of LMQs stand in a table of their own, without queues, as the
        reference has it."""
        self.offsets.commit("%LMQ%g", "%LMQ%t", 0, 5)
        self.offsets.commit("G", "T", 3, 7)
        self.offsets.save()
        content = loads(self.disk.read(PATH))
        assert isinstance(content, dict)
        self.assertEqual(content["lmqOffsetTable"], {"%LMQ%t@%LMQ%g": 5})
        self.assertEqual(list(content["offsetTable"]), ["T@G"])
        again = self.table()
        self.assertEqual(again.query("%LMQ%g", "%LMQ%t", 0), 5)
        self.assertEqual(again.query("G", "T", 3), 7)

    def test_damaged(self) -> None:
        """A damaged file refuses the start: without it all groups lose their places."""
        self.disk.make_dirs("/store/config")
        self.disk.open(PATH, create=True).pwrite(b'{"offsetTable":', 0)
        error = self.assertRaises(ConfigurationError, self.table)
        self.assertIn("start without the offsets of all consumer groups.", str(error))

    def test_version(self) -> None:
        """The version moves every so many commits."""
        offsets = self.table(consumer_offset_update_version_step=3)
        counters = []
        for offset in range(7):
            offsets.commit("G", "T", 0, offset)
            counters.append(offsets.version.counter)
        self.assertEqual(counters, [0, 0, 1, 1, 1, 2, 2])

    def test_reset(self) -> None:
        """A reset is what queries see until a pull comes from there."""
        self.offsets.commit("G", "T", 0, 7)
        self.offsets.reset("G", "T", 0, 2)
        self.offsets.reset("G", "T", 1, -1)
        self.assertTrue(self.offsets.has_reset("G", "T", 0))
        self.assertFalse(self.offsets.has_reset("G", "T", 1))
        self.assertEqual(self.offsets.query("G", "T", 0), 2)
        connection = RecordedConnection()
        self.assertEqual(self.offsets.reset_for_pull(connection, "G", "T", 0, 7), 2)
        self.assertTrue(self.offsets.has_reset("G", "T", 0))
        self.assertIsNone(self.offsets.reset_for_pull(connection, "G", "T", 0, 2))
        self.assertFalse(self.offsets.has_reset("G", "T", 0))

    def test_resetElsewhere(self) -> None:
        """Where clients are told of resets instead, none is pending here."""
        offsets = self.table(use_server_side_reset_offset=False)
        offsets.reset("G", "T", 0, 2)
        self.assertFalse(offsets.has_reset("G", "T", 0))
        self.assertEqual(offsets.query("G", "T", 0), 2)

    def test_names(self) -> None:
        """Groups and topics are found by each other; other keys are not looked at."""
        self.offsets.commit("G", "T", 0, 1)
        self.offsets.commit("G", "U", 0, 1)
        self.offsets.commit("H", "T", 0, 1)
        self.offsets.commit("G@broadcast", "T", 0, 1)
        self.assertEqual(self.offsets.topics_of("G"), ["T", "U"])
        self.assertEqual(self.offsets.groups_of("T"), ["G", "H"])

    def test_forget(self) -> None:
        """A group or topic that is deleted leaves nothing behind, nor in the file."""
        for group, topic in (("G", "T"), ("G", "U"), ("H", "T")):
            self.offsets.reset(group, topic, 0, 1)
            self.offsets.commit_pull(group, topic, 0, 1)
            self.offsets.commit(group, topic, 0, 1)
        self.successResultOf(self.offsets.save())
        self.offsets.forget_topic("T")
        self.assertEqual(self.offsets.query("G", "T", 0), NONE)
        self.assertEqual(self.offsets.pull_offset("H", "T", 0), NONE)
        self.assertEqual(self.offsets.query("G", "U", 0), 1)
        self.offsets.forget_group("G")
        self.assertFalse(self.offsets.has_reset("G", "U", 0))
        self.assertEqual(self.offsets.query("G", "U", 0), NONE)
        self.successResultOf(self.offsets.save())
        self.assertEqual(self.table().keys(), [])

    def test_kept(self) -> None:
        """The next start finds the offsets and the version."""
        self.offsets.commit("G", "T", 0, 12)
        self.offsets.commit("G", "T", 1, 7)
        self.successResultOf(self.offsets.save())
        self.assertIn(b'"offsetTable":{"T@G":{0:12,1:7}}', self.disk.read(PATH))
        table = self.table()
        self.assertEqual(table.query("G", "T", 1), 7)
        self.assertEqual(table.version, self.offsets.version)

    def test_many(self) -> None:
        """Where thousands of groups went on, the text is made in several turns, between
        which offsets are committed; then it is written."""
        self.make_many(3000)
        saved = self.offsets.save()
        self.assertFalse(self.disk.exists(PATH))
        self.assertNoResult(saved)
        while self.clock.getDelayedCalls():
            self.clock.rightNow += 1
            self.clock.advance(0)
            self.offsets.commit("new", "T", 0, 1)
        self.successResultOf(saved)
        self.assertGreater(self.slices.steps, 50)
        again = self.table()
        for number in range(3000):
            self.assertEqual(again.query(f"g{number}", "T", 1), number)

    def make_many(self, groups: int) -> None:
        """Commit offsets of so many groups."""
        for number in range(groups):
            self.offsets.commit(f"g{number}", "T", 1, number)

    def test_answer(self) -> None:
        """The table that is asked for is made in slices of whoever asks for it."""
        self.make_many(10)
        first, second = self.offsets.made("one"), self.offsets.made("two")
        self.assertNoResult(first)
        self.clock.advance(0)
        self.successResultOf(self.offsets.save())
        for made in (first, second):
            answer = dumps(self.successResultOf(made))
            self.assertEqual(answer, self.disk.read(PATH))

    def test_stop(self) -> None:
        """What was being made when the slices stopped is written at the end."""
        self.make_many(3000)
        saved = self.offsets.save()
        self.slices.stop()
        self.successResultOf(saved)
        self.assertFalse(self.disk.exists(PATH))
        self.successResultOf(self.offsets.save_now())
        self.assertEqual(self.table().query("g2999", "T", 1), 2999)

    def test_unchanged(self) -> None:
        """Nothing is written when nothing changed, and again when a write failed."""
        self.offsets.commit("G", "T", 0, 12)
        self.offsets.save()
        self.offsets.save()
        self.assertEqual(self.file.writes, 1)
        self.offsets.commit("G", "T", 0, 13)
        self.disk.capacity = 0
        self.offsets.save()
        self.assertEqual((self.file.writes, self.file.failures), (1, 1))
        self.disk.capacity = None
        self.offsets.save()
        self.assertEqual(self.file.writes, 2)

    def test_unreadable(self) -> None:
        """Entries that make no sense are left out; the others are there."""
        self.disk.make_dirs("/store/config")
        numbers = f'"{"9" * 5000}":1,{1 << 31}:1,-1:1,7:{1 << 63},8:{"9" * 99}'
        text = (
            f'{{"offsetTable":{{"T@G":{{0:1,"1":2,"x":3,2:"y",{numbers}}},"U@G":5}}}}'
        )
        self.disk.open(PATH, create=True).pwrite(text.encode(), 0)
        offsets = self.table()
        self.assertEqual(offsets.queues("G", "T"), {0: 1, 1: 2})
        self.assertEqual(offsets.queues("G", "U"), {})
        self.assertIsInstance(loads(self.disk.read(PATH)), dict)

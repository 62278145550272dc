"""Request 36: a consumer sends a message back."""

from __future__ import annotations

import errno

import attrs
from twisted.internet.defer import Deferred

from rocketbroker.broker.send.send_back import MAX_READ
from rocketbroker.errors import (
    FAQ,
    BrokerError,
    NoPermission,
    SubscriptionGroupNotExist,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.store.running_flags import DISK_FULL
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.command import Command
from tests.broker.rig import HOST_TEXT, answered, send_ext
from tests.broker.send.sent_back import BACK, DEAD, SEND, SendBackCase


class AgainTests(SendBackCase):
    """What waits to be consumed again."""

    def test_copy(self) -> None:
        """The copy has all that the message had, and says where it comes from."""
        position = self.send()
        (first,) = self.rig.records()
        answer = self.back(position)
        self.assertEqual((answer.code, answer.remark, answer.ext), (0, None, None))
        (copy,) = self.waiting(3)
        self.assertEqual((copy.body, copy.flag), (b"body", 7))
        self.assertEqual(copy.sys_flag, first.sys_flag)
        self.assertEqual(
            (copy.born_ms, copy.born_host), (first.born_ms, first.born_host)
        )
        self.assertEqual(copy.reconsume_times, 1)
        self.assertEqual(
            copy.properties,
            {
                **first.properties,
                "WAIT": "false",
                "DELAY": "3",
                "REAL_TOPIC": "%RETRY%G",
                "REAL_QID": "0",
                "RETRY_TOPIC": "T",
                "ORIGIN_MESSAGE_ID": HOST_TEXT + f"{position:016X}",
            },
        )
        config = self.rig.topics.config("%RETRY%G")
        assert config is not None
        self.assertEqual((config.read_queue_nums, config.perm), (1, 6))
        self.assertEqual(config.topic_sys_flag, 0)

    def test_checksum(self) -> None:
        """The checksum that a store has put among the properties is not copied."""
        self.back(self.send(properties="TAGS\x01red\x02__CRC32#\x010000001234\x02"))
        (copy,) = self.waiting(3)
        self.assertNotIn("__CRC32#", copy.properties)

    def test_levels(self) -> None:
        """Each failure is one level more; the last level is not passed."""
        for times, level in ((0, 3), (1, 4), (14, 17), (15, 18)):
            self.back(self.send(times))
            (copy,) = self.waiting(level)
            self.assertEqual(copy.reconsume_times, times + 1)
        self.back(self.send(16), maxReconsumeTimes="99")
        self.assertEqual(len(self.waiting(18)), 2)

    def test_ownLevel(self) -> None:
        """A level that the client asks for is used as it is."""
        self.back(self.send(5), 1)
        (copy,) = self.waiting(1)
        self.assertEqual(copy.properties["DELAY"], "1")
        self.back(self.send(), 99)
        (copy,) = self.waiting(18)
        self.assertEqual(copy.properties["DELAY"], "18")

    def test_strangeCounts(self) -> None:
        """A count that a client made up has some level, and one more fits yet."""
        self.back(self.send(-20))
        (copy,) = self.waiting(1)
        self.assertEqual(copy.reconsume_times, -19)
        most = (1 << 31) - 1
        self.back(self.send(most))
        (dead,) = self.rig.records(0, DEAD)
        self.assertEqual(dead.reconsume_times, most)

    def test_firstStays(self) -> None:
        """A message that fails again keeps its first topic and its first id."""
        mine = "RETRY_TOPIC\x01FIRST\x02ORIGIN_MESSAGE_ID\x01ID\x02"
        self.back(self.send(1, mine))
        (copy,) = self.waiting(4)
        self.assertEqual(copy.properties["RETRY_TOPIC"], "FIRST")
        self.assertEqual(copy.properties["ORIGIN_MESSAGE_ID"], "ID")
        self.assertEqual(self.rig.send_back.counts.messages, {("G", "%RETRY%G"): 1})

    def test_queues(self) -> None:
        """The queues of the retry topic are used in turn, as many as the group says,
        but only such as consumers read."""
        self.group(retry_queue_nums=3)
        position = self.send()
        for _ in range(6):
            self.back(position)
        found = [copy.properties["REAL_QID"] for copy in self.waiting(3)]
        self.assertEqual(sorted(found), ["0", "0", "1", "1", "2", "2"])
        self.group(retry_queue_nums=8)
        for _ in range(8):
            self.back(position, 1)
        found = [copy.properties["REAL_QID"] for copy in self.waiting(1)]
        self.assertEqual(set(found), {"0", "1", "2"})

    def test_unit(self) -> None:
        """The retry topic of a group of a unit is marked as one that units read."""
        self.back(self.send(), unitMode="true")
        config = self.rig.topics.config("%RETRY%G")
        assert config is not None
        self.assertEqual(config.topic_sys_flag, 2)

    def test_order(self) -> None:
        """The order flag that heartbeats have given to a retry topic stays."""
        self.rig.topics.ensure("%RETRY%G", 1, order=True)
        generation = self.rig.topics.generation
        self.back(self.send())
        self.assertEqual(self.rig.topics.generation, generation)

    def test_committed(self) -> None:
        """A message of a transaction comes again like any other."""
        self.rig.schedule.start()
        draft = self.rig.append()
        draft.sys_flag = 8
        draft.properties = b"TRAN_MSG\x01true\x02"
        self.rig.store.append([draft])
        self.back(draft.position, 1)
        self.rig.scheduler.dispatch()
        for _ in range(12):
            self.rig.clock.advance(0.1)
        (again,) = self.rig.records(0, "%RETRY%G")
        self.assertEqual((again.body, again.sys_flag), (b"body", 8))

    def test_delivered(self) -> None:
        """When its time has come it is in the retry topic, and can be sent back."""
        self.rig.schedule.start()
        self.back(self.send())
        self.rig.scheduler.dispatch()
        for _ in range(101):
            self.rig.clock.advance(0.1)
        (again,) = self.rig.records(0, "%RETRY%G")
        self.assertEqual(again.reconsume_times, 1)
        self.back(again.position)
        (copy,) = self.waiting(4)
        self.assertEqual(copy.reconsume_times, 2)
        self.assertEqual(copy.properties["RETRY_TOPIC"], "T")


class DeadLetterTests(SendBackCase):
    """What becomes a dead letter."""

    def test_lastTime(self) -> None:
        """What was reconsumed as often as the client allows is a dead letter."""
        self.back(self.send(3), maxReconsumeTimes="3")
        (dead,) = self.rig.records(0, DEAD)
        self.assertEqual(dead.reconsume_times, 4)
        self.assertEqual(dead.properties["DELAY"], "0")
        self.assertEqual(dead.properties["RETRY_TOPIC"], "T")
        self.assertEqual(dead.tags, "red")
        self.assertEqual(self.rig.dead_letters.counts.messages, {("G", "T"): 1})
        self.back(self.send(2), maxReconsumeTimes="3")
        self.assertEqual(len(self.rig.records(0, DEAD)), 1)
        self.assertEqual(self.rig.send_back.counts.messages, {("G", "T"): 2})

    def test_groupsLimit(self) -> None:
        """The group's limit counts for clients that say none or are too old to."""
        self.group(retry_max_times=2)
        header = self.header(self.send(2))
        del header["maxReconsumeTimes"]
        answered(self.rig.begin(BACK, header))
        self.assertEqual(len(self.rig.records(0, DEAD)), 1)
        self.back(self.send(2), version=120)
        self.assertEqual(len(self.rig.records(0, DEAD)), 2)

    def test_negativeLevel(self) -> None:
        """A client can give a message up at once."""
        self.back(self.send(), -1)
        self.assertEqual(len(self.rig.records(0, DEAD)), 1)


class RefusedTests(SendBackCase):
    """What is not stored again, and what the client hears."""

    def refused(self, kind: type[BrokerError], position: int, **more: str) -> str:
        """The remark of a refusal."""
        error = self.assertRaises(kind, self.back, position, **more)
        return str(error.remark)

    def test_nothingAgain(self) -> None:
        """A group without retry queues loses it, as it wishes."""
        self.group(retry_queue_nums=0)
        self.assertEqual(self.back(self.send(), -1).code, 0)
        self.assertIsNone(self.rig.topics.config("%RETRY%G"))
        self.assertEqual(self.rig.send_back.counts.messages, {})

    def test_unknownGroup(self) -> None:
        """A group that may not be made does not exist."""
        self.begin(autoCreateSubscriptionGroup="false")
        remark = self.refused(SubscriptionGroupNotExist, self.send())
        self.assertEqual(remark, f"subscription group not exist, G {FAQ}")

    def test_permissions(self) -> None:
        """Broker and retry topic must be writable."""
        position = self.send()
        self.rig.topic("%RETRY%G", 1, perm=4)
        self.assertEqual(
            self.refused(NoPermission, position),
            "the topic[%RETRY%G] sending message is forbidden",
        )
        self.begin(brokerPermission="4")
        self.assertEqual(
            self.refused(NoPermission, 0),
            "the broker[10.0.0.1] sending message is forbidden",
        )

    def test_notThere(self) -> None:
        """Where no message stands there is none, nor beyond the log."""
        position = self.send()
        for wrong in (position + 1, position + 100_000, -1):
            self.assertEqual(
                self.refused(SystemFailure, wrong),
                f"look message by offset failed, {wrong}",
            )

    def test_neverGivenOut(self) -> None:
        """A half message, and one that was rolled back, cannot be sent back."""
        position = self.send()
        self.rig.scheduler.dispatch()
        for flag in (4, 12):
            draft = self.rig.append()
            draft.sys_flag = flag
            self.rig.store.append([draft])
            self.refused(SystemFailure, draft.position)
        self.assertEqual(self.back(position).code, 0)

    def test_longGroup(self) -> None:
        """A group whose topics would have names that the log does not take keeps its
        messages; nothing is made for it."""
        position = self.send()
        self.refused(SystemFailure, position, group="g" * 249)
        self.assertIsNone(self.rig.topics.config("%RETRY%" + "g" * 249))
        group = "g" * 248
        self.assertEqual(self.back(position, group=group).code, 0)
        self.refused(SystemFailure, position, group=group, maxReconsumeTimes="0")

    def test_tooLong(self) -> None:
        """A message that has no room for more properties is not stored again."""
        position = self.send(0, f"a\x01{'b' * 32600}\x02")
        answer = self.back(position)
        self.assertEqual((answer.code, answer.remark), (1, "PROPERTIES_SIZE_EXCEEDED"))
        self.assertEqual(self.rig.send_back.counts.messages, {})

    def test_fullDisk(self) -> None:
        """What the store does not take is not acknowledged."""
        position = self.send()
        self.rig.store.flags.set(DISK_FULL)
        answer = self.back(position)
        self.assertEqual((answer.code, answer.remark), (1, "SERVICE_NOT_AVAILABLE"))
        self.assertEqual(self.rig.batcher.refused["unavailable"], 1)

    def test_closed(self) -> None:
        """A store that was closed meanwhile has no message."""
        position = self.send()
        self.rig.store.close()
        self.refused(SystemFailure, position)

    def test_incomplete(self) -> None:
        """Who does not say which message, whose and how late, gives nothing back: the
        message that stands first in the log least of all."""
        whole = self.header(self.send())
        for key in ("offset", "group", "delayLevel"):
            rest = {name: text for name, text in whole.items() if name != key}
            for ext in (rest, {**rest, key: "x"}, {}, None):
                if key == "group" and ext and "group" in ext:
                    continue
                with self.assertRaises(SystemFailure) as caught:
                    self.rig.begin(BACK, ext)
                self.assertIn("is missing, or is no number", caught.exception.remark)
        self.assertEqual(len(self.rig.records()), 1)
        self.assertEqual(self.waiting(3), [])


class SafetyTests(SendBackCase):
    """When the answer comes."""

    def test_thread(self) -> None:
        """The original is read in a thread, and the answer does not wait for a turn."""
        self.begin(threads=True)
        position = self.send()
        got: list[object] = []
        done = self.rig.begin(BACK, self.header(position))
        assert done is not None and not isinstance(done, Command)
        done.addCallback(got.append)
        self.assertEqual(got, [])
        self.rig.threads.run()
        self.assertEqual(len(got), 1)

    def test_newTopic(self) -> None:
        """It comes when the retry topic is in the file, and that of dead letters, which
        is made later, for one of these."""
        for level, writes in ((0, 2), (-1, 3)):
            self.begin(threads=True)
            position = self.send()
            self.rig.topics.put([TopicConfig(topic_name="U")])
            done = self.rig.begin(BACK, self.header(position, level))
            assert isinstance(done, Deferred)
            for _ in range(writes):
                self.assertNoResult(done)
                self.rig.threads.run()
            self.assertEqual(answered(done).code, 0)

    def test_disk(self) -> None:
        """With SYNC_FLUSH it comes when the disk has the copy."""
        self.begin(threads=True, flushDiskType="SYNC_FLUSH")
        done = self.rig.begin(SEND, send_ext(), b"body")
        self.rig.batcher.flush()
        self.rig.threads.run()
        position = int((answered(done).ext or {})["msgId"][16:], 16)
        got: list[Command | None] = []
        again = self.rig.begin(BACK, self.header(position))
        assert again is not None and not isinstance(again, Command)
        again.addCallback(got.append)
        self.rig.threads.run()
        self.assertEqual(got, [])
        self.rig.threads.run()
        assert got[0] is not None
        self.assertEqual(got[0].code, 0)
        self.assertEqual(
            self.rig.store.flushed_position, self.rig.store.published_position
        )

    def test_diskFails(self) -> None:
        """If the disk does not take it the client hears so, and keeps the message."""
        self.begin(flushDiskType="SYNC_FLUSH")
        position = self.send()
        self.assertEqual(self.back(position).code, 0)
        self.rig.disk.fail("datasync", errno.EIO)
        answer = self.back(position)
        self.assertEqual((answer.code, answer.remark), (1, "FLUSH_DISK_TIMEOUT"))

    def many(self, count: int) -> list[object]:
        """Ask for so many at once; what they are answered, in time."""
        position = self.send()
        got: list[object] = []
        for _ in range(count):
            done = self.rig.begin(BACK, self.header(position))
            assert done is not None and not isinstance(done, Command)
            done.addBoth(got.append)
        return got

    def test_readAtOnce(self) -> None:
        """So many are read at a time, and the others after them."""
        self.begin(threads=True)
        got = self.many(MAX_READ + 3)
        writes = 2  # of the tables that got the group and its retry topic
        self.assertEqual(len(self.rig.threads.waiting), writes + MAX_READ)
        self.rig.threads.run()
        self.rig.threads.run()
        self.assertEqual(len(got), MAX_READ + 3)
        self.assertEqual(len(self.waiting(3)), MAX_READ + 3)

    def test_overload(self) -> None:
        """More than may wait to be read are not taken."""
        self.begin(threads=True, sendThreadPoolQueueCapacity="2")
        self.many(MAX_READ + 2)
        with self.assertRaises(SystemBusy):
            self.rig.begin(BACK, self.header(0))
        self.assertEqual(self.rig.batcher.refused["overloaded"], 1)

    def test_readTooLate(self) -> None:
        """One that is not read for in time hears so, and is not stored again."""
        self.begin(threads=True)
        again = self.rig.begin(BACK, self.header(0))
        assert isinstance(again, Deferred)
        end = self.rig.store.published_position
        self.rig.clock.advance(0.2)
        self.failureResultOf(again, SystemBusy)
        self.rig.threads.run()
        self.assertEqual(self.rig.store.published_position, end)

    def test_overloadOfDisk(self) -> None:
        """While too many wait for the disk no more are taken, and none of those that
        were read meanwhile."""
        self.begin(threads=True, flushDiskType="SYNC_FLUSH")
        done = self.rig.begin(SEND, send_ext(), b"body")
        self.rig.batcher.flush()
        again = self.rig.begin(BACK, self.header(0))
        assert isinstance(again, Deferred)
        settings = self.rig.settings
        none = attrs.evolve(settings.broker, send_thread_pool_queue_capacity=0)
        self.rig.batcher.configure(attrs.evolve(settings, broker=none))
        with self.assertRaises(SystemBusy):
            self.rig.begin(BACK, self.header(0))
        self.rig.threads.run()
        self.failureResultOf(again, SystemBusy)
        self.assertEqual(answered(done).code, 0)

"""What a start does not take over from a RocketMQ broker."""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.reader.takeover import TIMER_TOPIC, not_taken_over
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, opened, put


class TakeoverTests(SynchronousTestCase):
    """A store with ordinary messages."""

    has_timers = True

    def setUp(self) -> None:
        """Make it."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        put(store, store.queue("T", 0), b"apple", b"pear")
        put(store, store.queue(TIMER_TOPIC, 0), b"soon", b"later", b"late")
        store.close()
        self.write("config/timercheck", self.timer_check(3))

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        path = os.path.join(ROOT, name)
        self.disk.make_dirs(os.path.dirname(path))
        file = self.disk.open(path, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.close()

    def timer_check(self, offset: int) -> bytes:
        """The check point of the timers."""
        return bytes(16) + offset.to_bytes(8, "big") + bytes(32)

    def sentences(self, home: str = "") -> list[str]:
        """What is reported."""
        return not_taken_over(self.disk, ROOT, home, self.has_timers)

    def test_nothing(self) -> None:
        """Nothing is reported of a store in which nothing waits, nor of an empty
        one."""
        self.assertEqual(self.sentences(), [])
        self.assertEqual(not_taken_over(MemoryDisk(), ROOT), [])

    def test_timers(self) -> None:
        """Where timers are switched off timer messages count that are in the wheel, and
        those that are not yet."""
        self.write("config/timercheck", self.timer_check(1))
        metrics = {"timingCount": {"T": {"count": 5}, "U": {"count": 0}}}
        self.write("config/timermetrics", json.dumps(metrics).encode())
        self.assertEqual(self.sentences(), [])
        self.has_timers = False
        (message,) = self.sentences()
        self.assertIn("7 timer messages", message)

    def test_pop(self) -> None:
        """Records of RocketMQ's key-value store are named; check points in the log are
        worked off."""
        self.write("kvStore/CURRENT", b"x")
        (message,) = self.sentences()
        self.assertIn("kvStore has records of POP", message)

    def test_rocksdb(self) -> None:
        """A RocksDB in the store is named if it has data, before and after it was
        stopped; Java's broker makes one without data at each start."""
        for name in ("CURRENT", "LOCK", "MANIFEST-000005", "OPTIONS-000009"):
            self.write(f"rocksdbstore/{name}", b"x")
        self.write("rocksdbstore/000004.log", b"")
        self.assertEqual(self.sentences(), [])
        for name in ("000004.log", "000005.sst"):
            self.write(f"rocksdbstore/{name}", b"x")
            (message,) = self.sentences()
            self.assertIn("open transactions in it (transRocksDBEnable)", message)
            self.disk.remove(os.path.join(ROOT, "rocksdbstore", name))

    def test_tablesInRocksdb(self) -> None:
        """Tables in RocksDB are named: without them all topics would be gone."""
        self.write("config/topics.json", b"{}")
        self.write("config/metadata/CURRENT", b"x")
        (message,) = self.sentences()
        self.assertIn("config/metadata has tables in RocksDB", message)

    def test_messageTypes(self) -> None:
        """Topics are named that no client can use as they are meant."""
        self.write(
            "config/topics.json",
            b'{"topicConfigTable":{"T":{"attributes":{"message.type":"LITE"}},'
            b'"U":{"attributes":{\n\t"message.type": "PRIORITY"\n}},'
            b'"V":{"attributes":{"message.type":"LITE"}},'
            b'"LITE":{"attributes":{"message.type":"NORMAL"}}}}',
        )
        self.assertEqual(
            self.sentences(),
            [
                "2 topics have message.type=LITE: clients of lite topics are refused.",
                "1 topics have message.type=PRIORITY: their messages are consumed "
                "without regard to priority.",
            ],
        )

    def test_acl(self) -> None:
        """Files with rules are named, an empty one not."""
        home = os.path.join(ROOT, "home")
        self.write("home/conf/plain_acl.yml", b"")
        self.assertEqual(self.sentences(home), [])
        self.write("home/conf/plain_acl.yml", b"accounts:\n")
        self.write("home/conf/acl/more.yml", b"accounts:\n")
        self.write("config/users/CURRENT", b"x")
        messages = self.sentences(home)
        self.assertEqual(len(messages), 3)
        self.assertIn("plain_acl.yml has rules", messages[0])
        self.assertEqual(len(self.sentences()), 1)

    def test_damaged(self) -> None:
        """A file that makes no sense tells nothing."""
        for name in ("consumerOffset.json", "timermetrics"):
            self.write(f"config/{name}", b"\xff{")
        self.write("config/timercheck", b"\1")
        self.has_timers = False
        messages = self.sentences()
        self.assertEqual(len(messages), 1)

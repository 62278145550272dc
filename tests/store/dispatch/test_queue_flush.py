"""Tests of L{rocketbroker.store.dispatch.queue_flush}: what is safe when clocks
jump."""

from __future__ import annotations

import os
import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, SEGMENT, START_MS, Wall, bodies, opened, put

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS

#: Some of these fill a segment.
BODY = b"x" * 9000


class ClockCase(SynchronousTestCase):
    """A store whose clock is set, and whose power goes."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Flushed messages, and all flushed of queues, too, a while ago."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.sent = 0
        self.store = self.start()
        self.put(20)
        self.flush(0)

    def start(self) -> Store:
        """Open the store."""
        sizes = {"mapped_file_size_consume_queue": 20 * 1000}
        self.store = opened(self.disk, self.wall, **sizes)
        return self.store

    def put(self, count: int, topic: str = "T", step_ms: int = 1000) -> None:
        """Append messages, one after the other, and flush the log."""
        queue = self.store.queue(topic, 0)
        for _ in range(count):
            self.wall.now_ms += step_ms
            put(self.store, queue, b"%d " % self.sent + BODY)
            self.sent += 1
        self.store.flush()

    def flush(self, least_pages: int) -> None:
        """Flush log and queues as a broker does."""
        self.store.flush()
        self.store.flush_queues(least_pages)

    def checkpoint(self) -> Checkpoint:
        """What the next start would read."""
        found = Checkpoint(self.disk, ROOT)
        found.load()
        return found

    def lose_power(self) -> None:
        """Keep what was synced, and start."""
        self.disk.crash()
        self.start()

    def numbers(self, topic: str = "T") -> list[int]:
        """Which messages a queue has."""
        found = bodies(self.store, self.store.queue(topic, 0))
        return [int(body[:10].split()[0]) for body in found]


class JumpTests(ClockCase):
    """What was flushed is there, whatever the clock did."""

    def test_back(self) -> None:
        """The clock is set back by an hour after a thorough flush: what comes then is
        there after a power loss, also in a queue that has had nothing since and of
        which any blocks were left, be the next pass a thorough one or not."""
        for seed in range(30):
            self.start_over()
            self.wall.now_ms -= HOUR_MS
            small = [b"%d" % number for number in range(600)]
            put(self.store, self.store.queue("U", 0), *small)
            self.put(10)
            if seed % 2:
                self.flush(1000)
            self.put(20)
            self.disk.crash(random.Random(seed))
            self.start()
            self.assertEqual(self.numbers("U"), [*range(600)], seed)
            self.assertEqual(self.numbers(), [*range(self.sent)], seed)

    def test_often(self) -> None:
        """So it is after a year ahead and back, twice, with kills and stops between,
        and where no pass came since."""
        for jump_ms in (YEAR_MS, -YEAR_MS, YEAR_MS, -YEAR_MS, -HOUR_MS):
            self.wall.now_ms += jump_ms
            self.put(10)
            self.flush(2)
            self.put(10, "U")
            self.disk.crash(keep_all=True)
            self.start()
            self.put(10)
            self.store.close()
            self.start()
            self.put(10, "U")
        self.wall.now_ms -= HOUR_MS
        self.put(20)
        self.put(20, "U")
        self.lose_power()
        there = sorted(self.numbers() + self.numbers("U"))
        self.assertEqual(there, [*range(self.sent)])

    def test_clockSetBack(self) -> None:
        """The next pass after the clock was set back is a thorough one, and the times
        are those of the clock: they vouch for nothing that RocketMQ would look for."""
        self.wall.now_ms -= HOUR_MS
        self.put(1)
        now_ms = self.wall.now_ms
        self.flush(1000)
        found = self.checkpoint()
        self.assertEqual((found.physic_ms, found.logics_ms), (now_ms, now_ms))
        self.assertEqual(found.position, self.store.published_position)

    def test_notThorough(self) -> None:
        """Without a jump it is not: time and position of the queues stay."""
        before = self.checkpoint()
        self.put(1)
        self.flush(1000)
        found = self.checkpoint()
        self.assertEqual(found.physic_ms, before.physic_ms + 1000)
        self.assertEqual(found.logics_ms, before.logics_ms)
        self.assertEqual(found.position, before.position)

    def test_notFlushed(self) -> None:
        """The position is not ahead of what is flushed of the log."""
        end = self.store.published_position
        put(self.store, self.store.queue("T", 0), b"x")
        self.store.flush_queues()
        self.assertEqual(self.checkpoint().position, end)

    def test_little(self) -> None:
        """What is before the position is not read again."""
        self.put(40)
        self.flush(0)
        self.lose_power()
        self.assertTrue(0 < self.store.recovered.records < 20)
        self.assertEqual(self.numbers(), [*range(60)])

    def test_otherLog(self) -> None:
        """A position of a log that was removed since vouches for nothing of another,
        though its times are older."""
        self.store.close()
        folder = f"{ROOT}/commitlog"
        for name in self.disk.list(folder):
            self.disk.remove(os.path.join(folder, name))
        self.start()
        self.assertEqual(self.checkpoint().position, 0)
        self.wall.now_ms -= HOUR_MS
        self.put(20, "U")
        self.assertTrue(self.store.published_position > SEGMENT)
        first = self.sent - 20
        self.lose_power()
        self.assertEqual(self.numbers("U"), [*range(first, self.sent)])


class IndexTests(SynchronousTestCase):
    """Files of the index, where the clock was set back, and the power went."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """A store with 399 entries in each file of the index: two blocks."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.start()

    def start(self) -> None:
        """Open it."""
        sizes = {"max_hash_slot_num": 5, "max_index_num": 400}
        self.store = opened(self.disk, self.wall, **sizes)

    def build(self, count: int) -> None:
        """Append so many messages, and build the index to its end."""
        put(self.store, self.store.queue("T", 0), *[b"x"] * count)
        while self.store.build_index(100):
            pass

    def contents(self) -> list[bytes]:
        """All files of the index, but for their slots, which wait for a flush."""
        folder = f"{ROOT}/index"
        found = [self.disk.read(f"{folder}/{name}") for name in self.disk.list(folder)]
        return [each[:40] + each[60:] for each in found]

    def test_notSynced(self) -> None:
        """A full file that was not put on the disk is built again, whatever is left of
        it, though one with a later time was."""
        for seed in range(20):
            self.start_over()
            self.build(500)
            self.store.flush()
            self.store.flush_queues()
            self.wall.now_ms -= HOUR_MS
            self.build(500)
            self.store.flush()
            before = self.contents()
            self.assertEqual(len(before), 3)
            self.disk.sync_dir(f"{ROOT}/index")
            self.disk.crash(random.Random(seed))
            self.start()
            self.assertEqual(len(self.contents()), 1)
            self.build(0)
            self.assertEqual(self.contents(), before, seed)

    def test_notFull(self) -> None:
        """Files behind one that is not full are put on the disk, too."""
        self.build(500)
        self.store.close()
        folder = f"{ROOT}/index"
        file = self.disk.open(f"{folder}/{self.disk.list(folder)[0]}")
        file.pwrite((300).to_bytes(4, "big"), 36)
        file.close()
        self.start()
        self.build(500)
        before = self.contents()
        self.assertEqual(len(before), 3)
        self.store.flush_queues()
        self.disk.sync_dir(folder)
        self.disk.crash()
        self.assertEqual(self.contents()[1], before[1])
        slots = self.disk.read(f"{folder}/{self.disk.list(folder)[1]}")[40:60]
        # All messages have one key, and so one slot has the last entry.
        self.assertEqual(bytes(sorted(slots)), bytes(18) + (399).to_bytes(2, "big"))

    def test_builtAgain(self) -> None:
        """One that is built again has to be put on the disk again."""
        self.build(1000)
        self.store.flush()
        self.store.flush_queues()
        before = self.contents()
        folder = f"{ROOT}/index"
        file = self.disk.open(f"{folder}/{self.disk.list(folder)[0]}")
        file.pwrite(b"\xff" * 40, 0)
        file.datasync()
        file.close()
        image = self.disk
        for seed in range(20):
            self.disk = image.image()
            self.start()
            self.assertEqual(self.contents(), [])
            self.build(0)
            self.disk.sync_dir(folder)
            self.disk.crash(random.Random(seed))
            self.start()
            self.build(0)
            self.assertEqual(self.contents(), before, seed)


class OtherTests(ClockCase):
    """Where RocketMQ's broker has written times since."""

    def test_void(self) -> None:
        """The mark is void, and the times are believed."""
        path = f"{ROOT}/checkpoint"
        file = self.disk.open(path)
        file.pwrite((START_MS + HOUR_MS).to_bytes(8, "big"), 0)
        file.close()
        self.assertEqual(self.checkpoint().position, -1)
        self.assertTrue(self.checkpoint().has_before(1 << 40, START_MS))

    def test_kept(self) -> None:
        """With its own times it is not, and holds whatever the times say."""
        found = self.checkpoint()
        self.assertEqual(found.position, self.store.published_position)
        self.assertTrue(found.has_before(found.position, START_MS))
        self.assertFalse(found.has_before(found.position + 1, START_MS))
        self.assertFalse(found.has_before(0, found.safe_ms + 1))
        self.assertFalse(found.has_before(0, 0))

    def test_damaged(self) -> None:
        """One that is damaged is void."""
        content = self.disk.read(f"{ROOT}/checkpoint")
        for at in range(256, 300):
            file = self.disk.open(f"{ROOT}/checkpoint")
            file.pwrite(bytes([content[at] ^ 1]), at)
            self.assertEqual(self.checkpoint().position, -1, at)
            file.pwrite(content[at : at + 1], at)
            file.close()
        self.assertNotEqual(self.checkpoint().position, -1)

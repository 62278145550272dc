"""Truncating a log that is in use."""

from __future__ import annotations

import errno
import random

from rocketbroker.errors import ServiceNotAvailable, StoreError
from rocketbroker.store.interfaces import PUT_OK, SERVICE_NOT_AVAILABLE, IQueue
from rocketbroker.store.message_store import Store
from rocketbroker.store.recovery.truncation import NAME
from rocketbroker.testing.files import MemoryDisk
from tests.store.copies import CopyCase, open_copy, segments, settle, work
from tests.store.stores import ROOT, SEGMENT, Wall, bodies, draft, opened, put


class TruncationTests(CopyCase):
    """A slave with more than the new master has."""

    def grow(self, luck: random.Random, end: int) -> list[int]:
        """Fill both; return positions where records begin, and the end."""
        found = [0]
        while self.master.published_position < end:
            work(self.master, luck, self.wall, 1)
            found.append(self.master.published_position)
        self.copy(luck)
        return found

    def test_asNeverStored(self) -> None:
        """Everything is as in a store that was never sent what was cut away: files,
        queues, their next offsets, the index; and it goes on like that one."""
        for seed in range(8):
            self.start()
            luck = random.Random(seed)
            self.grow(luck, luck.randrange(SEGMENT, 2 * SEGMENT))
            if luck.random() < 0.7:
                settle(self.slave)
            kept = self.slave.published_position
            # Another slave has no more than that.
            disk, wall = MemoryDisk(), Wall()
            other = open_copy(disk, wall)
            self.follow(other, self.slave, kept)
            self.grow(luck, luck.randrange(kept, kept + 3 * SEGMENT))
            if luck.random() < 0.7:
                settle(self.slave)
            self.slave.flush_queues()
            self.slave.raw_log.truncate(kept)
            self.assertEqual(self.slave.published_position, kept)
            self.assertIsNone(self.slave.refusal())
            if luck.random() < 0.3:
                self.slave = self.reopened(luck.random() < 0.5)
            self.master, self.disk, self.wall = other, disk, wall
            settle(self.master)
            self.check()
            self.grow(luck, kept + luck.randrange(2 * SEGMENT))
            self.check()
            for number in range(3):
                self.assertEqual(
                    self.slave.queue("T", number).next_offset,
                    self.master.queue("T", number).next_offset,
                )

    def follow(self, store: Store, master: Store, end: int) -> None:
        """Copy what a master has up to a position."""
        while store.published_position < end:
            at = store.published_position
            store.raw_log.append(at, master.raw_log.read(at, end - at))

    def reopened(self, is_clean: bool) -> Store:
        """The slave, stopped and started."""
        if is_clean:
            self.slave.close()
        else:
            self.slave_disk.crash(keep_all=True)
        return open_copy(self.slave_disk, self.slave_wall)

    def test_boundaries(self) -> None:
        """Only a place where a record, a filler or a segment begins, or the log ends,
        is taken."""
        put(self.slave, self.slave.queue("T", 0), *[b"1" * 9_000] * 10)
        entries = self.slave.entries(self.slave.queue("T", 0), 0, 10)
        begins = [position for position, _, _ in entries]
        filler = next(p + size for p, size, _ in entries if p + size not in begins)
        for position in (-1, 1, 100, begins[1] + 28, begins[-1] + 1, 9 * SEGMENT):
            with self.assertRaises(StoreError) as refused:
                self.slave.raw_log.truncate(position)
            self.assertIn(str(position), str(refused.exception))
        with self.assertRaises(StoreError) as refused:
            self.slave.raw_log.truncate(begins[2] + 500)
        self.assertIn(f"One begins at {begins[2]}.", str(refused.exception))
        end = self.slave.published_position
        self.assertEqual(end, entries[-1][0] + entries[-1][1])
        for position in (end, begins[-1], SEGMENT, filler, begins[3], 0):
            self.slave.raw_log.truncate(position)
            self.assertEqual(self.slave.published_position, position)
            queue = self.slave.queue("T", 0)
            left = sum(begin < position for begin in begins)
            self.assertEqual((queue.max_offset, queue.next_offset), (left, left))
        self.assertEqual([*segments(self.slave_disk).values()], [bytes(SEGMENT)])
        put(self.slave, self.slave.queue("T", 0), b"new")
        self.assertEqual(bodies(self.slave, self.slave.queue("T", 0)), [b"new"])

    def test_undispatched(self) -> None:
        """Messages that are in no queue yet count, or go."""
        queue = self.slave.queue("T", 0)
        drafts = [draft(queue, body) for body in (b"1", b"2", b"3")]
        self.slave.append(drafts)
        self.slave.raw_log.truncate(drafts[1].position)
        self.assertEqual(queue.next_offset, 1)
        self.assertEqual(bodies(self.slave, queue), [b"1"])

    def test_expiredQueue(self) -> None:
        """A queue all of whose earlier messages have expired goes on at the offset of
        the first that was cut away."""
        self.slave.close()
        disk, wall = self.slave_disk, self.slave_wall
        self.slave = open_copy(disk, wall, file_reserved_time=0)
        queue = self.slave.queue("T", 0)
        put(self.slave, queue, *[b"1" * 30_000] * 9)
        settle(self.slave)
        self.slave.cleaner.expire_now()
        for _ in self.slave.clean():
            pass
        first = queue.min_offset
        self.assertGreater(first, 0)
        self.slave.raw_log.truncate(self.slave.min_position)
        self.assertEqual((queue.next_offset, queue.max_offset), (first, first))
        put(self.slave, queue, b"next")
        self.assertEqual(bodies(self.slave, queue), [b"next"])

    def test_deletedTopic(self) -> None:
        """A topic that was deleted behind the place counts as deleted there."""
        queue = self.slave.queue("T", 0)
        first = put(self.slave, queue, b"1")[0]
        put(self.slave, queue, b"2")
        self.slave.delete_topic("T")
        self.slave.raw_log.truncate(first.end)
        put(self.slave, queue, b"3")
        self.assertEqual(bodies(self.slave, queue), [b"3"])

    def test_closed(self) -> None:
        """A closed store is not truncated."""
        self.slave.close()
        with self.assertRaises(ServiceNotAvailable):
            self.slave.raw_log.truncate(0)


class BrokenOffTests(CopyCase):
    """Truncations that do not come to their end."""

    def setUp(self) -> None:
        """Three segments; the place is in the first."""
        super().setUp()
        self.fill()

    def fill(self) -> None:
        """The same, of new stores."""
        self.start()
        self.queue: IQueue = self.slave.queue("T", 0)
        first = put(self.slave, self.queue, *[b"1" * 9_000] * 3)
        put(self.slave, self.queue, *[b"2" * 9_000] * 18)
        self.position = first[-1].end
        settle(self.slave)
        self.slave.flush_queues()

    def test_refusedDisk(self) -> None:
        """While the disk refuses a part of it, nothing can be appended; the next call
        finishes it."""
        for call in ("pwrite", "remove", "datasync", "sync_dir", "truncate"):
            for after in range(3):
                self.fill()
                self.slave_disk.fail(call, errno.EIO, after)
                try:
                    self.slave.raw_log.truncate(self.position)
                except OSError:
                    late = draft(self.queue, b"late")
                    self.slave.append([late])
                    if self.slave_disk.exists(f"{ROOT}/{NAME}"):
                        self.assertEqual(late.status, SERVICE_NOT_AVAILABLE)
                    self.slave.raw_log.truncate(self.position)
                self.check_cut()

    def check_cut(self) -> None:
        """It is done, and the store goes on."""
        self.assertFalse(self.slave_disk.exists(f"{ROOT}/{NAME}"))
        queue = self.slave.queue("T", 0)
        self.assertEqual(self.slave.published_position, self.position)
        self.assertEqual(bodies(self.slave, queue), [b"1" * 9_000] * 3)
        late = put(self.slave, queue, b"late")[0]
        self.assertEqual((late.status, late.queue_offset), (PUT_OK, 3))

    def test_nextStart(self) -> None:
        """A start finishes it, also after a stop that was clean."""
        for is_clean in (True, False):
            self.fill()
            self.slave_disk.fail("remove", errno.EIO)
            with self.assertRaises(OSError):
                self.slave.raw_log.truncate(self.position)
            if is_clean:
                self.slave.close()
            else:
                self.slave_disk.crash()
            self.slave = open_copy(self.slave_disk, self.slave_wall)
            report = " ".join(self.slave.report)
            self.assertIn(f"to position {self.position} was broken off", report)
            self.check_cut()

    def test_tornNote(self) -> None:
        """A note that was not written whole is of one that had not begun."""
        file = self.slave_disk.open(f"{ROOT}/{NAME}", create=True)
        file.pwrite(b'{"crc": 1, "pos', 0)
        file.close()
        end = self.slave.published_position
        self.slave_disk.crash(keep_all=True)
        self.assertEqual(opened(self.slave_disk).published_position, end)

"""The log as bytes: read from one store and appended to another."""

from __future__ import annotations

import errno
import random

from rocketbroker.errors import ServiceNotAvailable, StoreError
from rocketbroker.store.commitlog.received import whole_records
from rocketbroker.store.commitlog.write_backoff import RETRY_MS
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK, SERVICE_NOT_AVAILABLE
from rocketbroker.store.message_store import Store
from rocketbroker.store.running_flags import FENCED
from rocketbroker.testing.files import MemoryDisk
from tests.store.copies import CopyCase, open_copy, segments, settle, work
from tests.store.stores import SEGMENT, Wall, bodies, draft, opened, placed, put
from tests.sweeps.power import KINDS


class CopyTests(CopyCase):
    """A copy is the same store."""

    def test_same(self) -> None:
        """Messages of all kinds, over several segments, sent in pieces that end
        anywhere: logs, queues and index become the same."""
        for seed in range(8):
            self.start()
            luck = random.Random(seed)
            for _ in range(luck.randrange(20, 60)):
                work(self.master, luck, self.wall)
                if luck.random() < 0.5:
                    self.copy(luck, luck.choice((50, 500, SEGMENT)))
            self.copy(luck)
            self.check()
            self.assertEqual(
                self.slave.appended_messages, self.master.appended_messages
            )
            self.assertEqual(self.slave.appended_bytes, self.master.appended_bytes)

    def test_restarts(self) -> None:
        """Either side may be stopped or killed at any moment."""
        for seed in range(8):
            self.start()
            luck = random.Random(seed)
            for _ in range(30):
                work(self.master, luck, self.wall)
                if luck.random() < 0.5:
                    self.copy(luck)
                if luck.random() < 0.3:
                    self.master = self.restart(self.master, luck)
                if luck.random() < 0.3:
                    self.slave = self.restart(self.slave, luck)
            self.copy(luck)
            self.check()

    def restart(self, store: Store, luck: random.Random) -> Store:
        """Stop or kill one of them, and start it again."""
        disk, wall = self.disk, self.wall
        if store is self.slave:
            disk, wall = self.slave_disk, self.slave_wall
        if luck.random() < 0.5:
            store.close()
        else:
            disk.crash(keep_all=True)
        return open_copy(disk, wall)

    def test_everyCut(self) -> None:
        """Bytes that end anywhere are taken up to the last whole record, also behind a
        filler, which is taken with all its bytes."""
        queue = self.master.queue("T", 0)
        put(self.master, queue, b"1" * 30_000, b"2" * 30_000, b"3" * 100)
        end = self.master.published_position
        put(self.master, queue, b"4" * 30_000)
        data = self.master.raw_log.read(0, SEGMENT)
        self.assertEqual(len(data), SEGMENT)
        behind = self.master.raw_log.read(SEGMENT, SEGMENT)
        ends = [0, *(each[0] + each[1] for each in self.master.entries(queue, 0, 3))]
        self.assertEqual(ends[-1], end)
        for size in range(ends[2], SEGMENT + 1):
            wanted = max(each for each in [*ends, SEGMENT] if each <= size)
            self.assertEqual(whole_records(data[:size], 0, SEGMENT).size, wanted)
        for size in (7, end - 1, end, end + 7, end + 8, SEGMENT - 1, SEGMENT):
            slave = opened()
            wanted = max(each for each in [*ends, SEGMENT] if each <= size)
            self.assertEqual(slave.raw_log.append(0, data[:size]), wanted)
            self.assertEqual(slave.published_position, wanted)
        self.assertEqual(
            opened().raw_log.append(0, data + behind), SEGMENT + len(behind)
        )

    def test_filler(self) -> None:
        """The bytes behind a filler's head are stored as they are, too."""
        put(self.master, self.master.queue("T", 0), b"1" * 40_000, b"2" * 40_000)
        data = bytearray(self.master.raw_log.read(0, SEGMENT))
        data[-1000:] = b"?" * 1000
        self.slave.raw_log.append(0, bytes(data))
        self.assertEqual([*segments(self.slave_disk).values()], [data])
        self.assertEqual(self.slave.published_position, SEGMENT)
        self.assertEqual(self.slave.appended_messages, 1)
        self.assertLess(self.slave.appended_bytes, 41_000)

    def test_firstPosition(self) -> None:
        """An empty store begins with the segment that the master sends first, and is
        found so by the next start; a store with messages does not."""
        luck = random.Random(1)
        while self.master.published_position < 3 * SEGMENT:
            work(self.master, luck, self.wall)
        start = 2 * SEGMENT
        data = self.master.raw_log.read(start, SEGMENT)
        self.slave.allocate_ahead()
        self.assertEqual(self.slave.raw_log.append(start, data), SEGMENT)
        self.assertEqual(self.slave.min_position, start)
        self.assertEqual([*segments(self.slave_disk)], [segment_name(start)])
        self.copy(luck)
        settle(self.slave)
        settle(self.master)
        ends = {queue: queue.max_offset for queue in self.slave.queues()}
        self.slave_disk.crash(keep_all=True)
        self.slave = open_copy(self.slave_disk, self.slave_wall)
        self.assertEqual(self.slave.min_position, start)
        for queue, end in ends.items():
            again = self.slave.queue(queue.topic, queue.queue_id)
            self.assertEqual(again.max_offset, end)
        queue = self.slave.queue("T", 0)
        of_master = placed(self.master, self.master.queue("T", 0))
        found = placed(self.slave, queue)
        self.assertEqual(
            found, {at: b for at, b in of_master.items() if at >= queue.min_offset}
        )
        with self.assertRaises(StoreError):
            self.slave.raw_log.append(9 * SEGMENT, data)

    def test_firstPositionLosesPower(self) -> None:
        """Wherever the machine stops while the first segment is made, the next start
        has nothing, or what was flushed, and goes on."""
        luck = random.Random(1)
        while self.master.published_position < 2 * SEGMENT:
            work(self.master, luck, self.wall)
        data = self.master.raw_log.read(SEGMENT, SEGMENT)
        images: list[tuple[int, MemoryDisk]] = []

        def watch(call: str) -> None:
            flushed = self.slave.flushed_position - SEGMENT
            images.extend((flushed, make(disk, luck)) for make in KINDS.values())

        disk = self.slave_disk
        disk.watch = watch
        self.slave.raw_log.append(SEGMENT, data)
        self.slave.flush()
        disk.watch = None
        self.assertGreater(len(images), 20)
        for flushed, image in images:
            slave = open_copy(image, Wall(), broker_role="SLAVE")
            end = slave.published_position
            self.assertTrue(end == 0 >= flushed or end >= SEGMENT + flushed, end)
            at = max(end, SEGMENT)
            slave.raw_log.append(at, data[at - SEGMENT :])
            self.assertEqual(slave.raw_log.read(SEGMENT, SEGMENT), data)
            self.assertEqual(slave.min_position, SEGMENT)

    def test_retention(self) -> None:
        """A slave removes its own old segments, and follows all the same."""
        luck = random.Random(4)
        self.slave.close()
        self.slave = open_copy(self.slave_disk, self.slave_wall, file_reserved_time=0)
        while self.master.published_position < 3 * SEGMENT:
            work(self.master, luck, self.wall)
        self.copy(luck)
        settle(self.slave)
        self.slave.cleaner.expire_now()
        for _ in self.slave.clean():
            pass
        self.assertEqual(self.slave.min_position, 3 * SEGMENT)
        self.assertEqual(self.slave.raw_log.read(0, 10), b"")
        for _ in range(10):
            work(self.master, luck, self.wall)
        self.copy(luck)
        settle(self.slave)
        self.slave.close()
        self.slave = open_copy(self.slave_disk, self.slave_wall)
        settle(self.master)
        for queue in self.slave.queues():
            copied = self.master.queue(queue.topic, queue.queue_id)
            self.assertEqual(queue.next_offset, copied.next_offset, queue)
            first, count = queue.min_offset, queue.max_offset - queue.min_offset
            if queue.batch is None:
                wanted = copied.entries(first, count)
                self.assertEqual(queue.entries(first, count), wanted, queue)

    def test_becomesMaster(self) -> None:
        """When a slave becomes the master, messages follow those that it has copied;
        while these are not all in the queues, it takes none."""
        luck = random.Random(2)
        for _ in range(20):
            work(self.master, luck, self.wall)
        self.copy(luck)
        queue = self.slave.queue("T", 0)
        late = draft(queue, b"late")
        for _ in range(3):
            work(self.master, luck, self.wall)
        while self.slave.raw_log.append(
            self.slave.published_position,
            self.master.raw_log.read(self.slave.published_position, SEGMENT),
        ):
            pass
        self.slave.append([late])
        self.assertEqual(late.status, SERVICE_NOT_AVAILABLE)
        self.assertIn("not all", self.slave.refusal() or "")
        settle(self.slave)
        self.assertIsNone(self.slave.refusal())
        settle(self.master)
        wanted = {
            each: self.master.queue(each.topic, each.queue_id).next_offset
            for each in self.slave.queues()
        }
        self.assertEqual({each: each.next_offset for each in wanted}, wanted)
        self.slave.append([late])
        self.assertEqual(late.status, PUT_OK)
        self.assertEqual(late.queue_offset, wanted[queue])

    def test_newTopic(self) -> None:
        """A topic that was deleted at the master and made again begins again."""
        queue = self.master.queue("T", 0)
        put(self.master, queue, b"old", b"older")
        self.master.delete_topic("T")
        put(self.master, queue, b"new")
        self.copy(random.Random(1))
        settle(self.slave)
        copy = self.slave.queue("T", 0)
        self.assertEqual(bodies(self.slave, copy), [b"new"])
        self.assertEqual(copy.next_offset, 1)

    def test_dispatchReadsTheLog(self) -> None:
        """Where what was seen of the records was not kept, the log is read."""
        luck = random.Random(3)
        for _ in range(30):
            work(self.master, luck, self.wall)
        self.copy(luck)
        self.slave._log.hints.clear()
        self.check()

    def test_synchronous(self) -> None:
        """With SYNC_FLUSH only what is on the disk is dispatched."""
        put(self.master, self.master.queue("T", 0), b"1")
        slave = opened(flush_disk_type="SYNC_FLUSH")
        slave.raw_log.append(0, self.master.raw_log.read(0, SEGMENT))
        self.assertEqual(slave.dispatch(10), [])
        slave.flush()
        self.assertEqual([each.queue.topic for each in slave.dispatch(10)], ["T"])


class RefusalTests(CopyCase):
    """What is no part of the master's log."""

    def refused(self, position: int, data: bytes) -> str:
        """The sentence; nothing is appended."""
        end = self.slave.published_position
        error = self.assertRaises(StoreError, self.slave.raw_log.append, position, data)
        self.assertEqual(self.slave.published_position, end)
        return str(error)

    def setUp(self) -> None:
        """Two messages at the master, one of them at the slave."""
        super().setUp()
        queue = self.master.queue("T", 0)
        self.drafts = put(self.master, queue, b"1", b"2")
        self.data = self.master.raw_log.read(0, SEGMENT)
        self.end = self.drafts[0].end
        self.slave.raw_log.append(0, self.data[: self.end])

    def test_elsewhere(self) -> None:
        """Records belong to the end of the log, and nowhere else."""
        self.assertIn("ends at", self.refused(0, self.data))
        self.assertIn("ends at", self.refused(self.end + 1, self.data))
        self.assertIn("ends at", self.refused(SEGMENT, self.data))
        self.assertIn("position field", self.refused(self.end, self.data))

    def test_noRecords(self) -> None:
        """Each of a record's fields has to fit, as far as it has come."""
        record = self.data[self.end :]
        for at, data in (
            (4, b"????"),
            (0, (12).to_bytes(4, "big")),
            (0, (1 << 30).to_bytes(4, "big")),
            (28, bytes(8)),
            (20, b"\xff"),
            (84, (1 << 20).to_bytes(4, "big")),
            (89, b"\xff"),
        ):
            wrong = record[:at] + data + record[at + len(data) :]
            self.refused(self.end, wrong)
        self.refused(self.end, bytes(100))
        self.refused(self.end, record[1:])

    def test_behindGood(self) -> None:
        """Records before it are taken; what follows them is refused then."""
        record = self.data[self.end :]
        taken = self.slave.raw_log.append(self.end, record + bytes(100))
        self.assertEqual(taken, len(record))
        self.refused(self.end + taken, bytes(100))

    def test_otherSegmentSize(self) -> None:
        """A master with segments of another size is refused at the end of the first."""
        queue = self.master.queue("T", 0)
        put(self.master, queue, b"1" * 40_000, b"2" * 40_000)
        data = self.master.raw_log.read(0, SEGMENT)
        for size in (SEGMENT // 2, 2 * SEGMENT):
            slave = opened(mapped_file_size_commit_log=size)
            taken = slave.raw_log.append(0, data)
            error = self.assertRaises(
                StoreError, slave.raw_log.append, taken, data[taken:]
            )
            self.assertIn("mappedFileSizeCommitLog", str(error))


class DiskTests(CopyCase):
    """A slave's disk that refuses."""

    def setUp(self) -> None:
        """Some messages."""
        super().setUp()
        put(self.master, self.master.queue("T", 0), b"1" * 40_000, b"2" * 40_000)
        self.data = self.master.raw_log.read(0, SEGMENT)

    def test_full(self) -> None:
        """What cannot be written is not there; later it is tried again."""
        self.slave_disk.fail("pwrite", errno.ENOSPC, 0, 1)
        with self.assertRaises(ServiceNotAvailable):
            self.slave.raw_log.append(0, self.data)
        self.assertEqual(self.slave.published_position, 0)
        self.assertEqual([*segments(self.slave_disk).values()], [bytes(SEGMENT)])
        with self.assertRaises(ServiceNotAvailable) as refused:
            self.slave.raw_log.append(0, self.data)
        self.assertIn("cannot be written", str(refused.exception))
        self.slave_wall.now_ms += RETRY_MS
        self.assertEqual(self.slave.raw_log.append(0, self.data), SEGMENT)

    def test_noSegment(self) -> None:
        """Without room for a segment nothing of it is taken."""
        self.slave.raw_log.append(0, self.data)
        self.slave_disk.fail("rename", errno.EACCES)
        behind = self.master.raw_log.read(SEGMENT, SEGMENT)
        with self.assertRaises(ServiceNotAvailable):
            self.slave.raw_log.append(SEGMENT, behind)
        self.slave_wall.now_ms += RETRY_MS
        self.assertEqual(self.slave.raw_log.append(SEGMENT, behind), len(behind))

    def test_otherFlags(self) -> None:
        """It is refused for all reasons for which messages are."""
        self.slave.flags.set(FENCED, True, "it is fenced", "test")
        with self.assertRaises(ServiceNotAvailable) as refused:
            self.slave.raw_log.append(0, self.data)
        self.assertEqual(str(refused.exception), "it is fenced")

    def test_closed(self) -> None:
        """A closed store takes nothing and returns nothing."""
        self.slave.close()
        with self.assertRaises(ServiceNotAvailable):
            self.slave.raw_log.append(0, self.data)
        self.assertEqual(self.slave.raw_log.read(0, 10), b"")
        self.assertFalse(self.slave.raw_log.is_cold(0))


class ReadTests(CopyCase):
    """Reading bytes."""

    def test_bounds(self) -> None:
        """Not before the log's first byte, nor behind its last, nor over the end of a
        segment."""
        raw_log = self.master.raw_log
        self.assertEqual(raw_log.read(0, 100), b"")
        drafts = put(self.master, self.master.queue("T", 0), *[b"1" * 40_000] * 3)
        end = drafts[-1].end
        self.assertEqual(len(raw_log.read(0, 1 << 20)), SEGMENT)
        self.assertEqual(len(raw_log.read(100, 50)), 50)
        self.assertEqual(len(raw_log.read(2 * SEGMENT, 1 << 20)), end - 2 * SEGMENT)
        self.assertEqual(raw_log.read(end, 100), b"")
        self.assertEqual(raw_log.read(end + 1, 100), b"")
        self.assertEqual(raw_log.read(-1, 100), b"")

    def test_cold(self) -> None:
        """Bytes that are so far behind that they are not in memory are cold."""
        store = opened(None, None, access_message_in_memory_max_ratio=0)
        end = put(store, store.queue("T", 0), b"1" * 100)[0].end
        self.assertFalse(self.master.raw_log.is_cold(0))
        self.assertTrue(store.raw_log.is_cold(0))
        self.assertEqual(len(store.raw_log.read(0, 1000)), end)

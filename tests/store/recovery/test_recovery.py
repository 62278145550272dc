"""What a start makes of what a stop has left."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY, FILLED, SIZE
from rocketbroker.store.commitlog.checkpoint import MARGIN_MS
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.recovery.outcome import Trust
from rocketbroker.testing.files import MemoryDisk
from tests.store.snapshots import log_file, restored, snapshot
from tests.store.stores import (
    BORN_HOST_V6,
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
    bodies,
    draft,
    opened,
    placed,
    put,
)

QUEUE_FILE = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"


class CleanTests(SynchronousTestCase):
    """After a clean stop."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """A store with some messages, stopped."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.drafts = put(store, queue, *[b"%d" % number for number in range(10)])
        self.end = store.published_position
        store.close()

    def test_nothingIsRead(self) -> None:
        """The log is not read from the start."""
        store = opened(self.disk)
        self.assertEqual(store.recovered.records, 0)
        self.assertEqual(store.report, [])
        self.assertEqual(store.dispatched_position, self.end)
        self.assertEqual(store.flushed_position, self.end)
        recovered = store.recovered
        self.assertEqual((recovered.clean, recovered.trust), (True, Trust.ALL))
        self.assertEqual((recovered.start, recovered.end), (self.end, self.end))
        self.assertEqual((recovered.cut_bytes, recovered.cut_position), (0, -1))

    def test_recordAtTheEnd(self) -> None:
        """A record that starts where the queues end is dispatched; RocketMQ loses
        it."""
        file = self.disk.open(QUEUE_FILE)
        file.pwrite(bytes(40), 8 * 20)
        self.disk.remove(f"{ROOT}/rocketbroker.ends")
        store = opened(self.disk)
        self.assertEqual(store.recovered.records, 2)
        self.assertEqual(len(bodies(store, store.queue("T", 0))), 10)

    def test_doubted(self) -> None:
        """When queues have to be made again after all, the stop counts as one that was
        not clean before the first of them is touched."""
        store = opened(self.disk)
        put(store, store.queue("U", 0), b"u")
        put(store, store.queue("T", 0), b"10", b"11")
        store.close()
        self.disk.remove(QUEUE_FILE)
        self.disk.remove(f"{ROOT}/rocketbroker.ends")
        doubted = []

        def watch(call: str) -> None:
            if call == "truncate":
                doubted.append(self.disk.exists(f"{ROOT}/abort"))

        self.disk.watch = watch
        store = opened(self.disk)
        self.assertIn("they are made again", store.report[0])
        self.assertTrue(doubted)
        self.assertTrue(all(doubted))
        self.assertEqual(len(bodies(store, store.queue("T", 0))), 12)

    def test_notQueued(self) -> None:
        """Records that stand in no queue are behind the end of the queues."""
        store = opened(self.disk)
        store.append([draft(store.queue("T", 0), sys_flag=4)])
        end = store.published_position
        store.close()
        store = opened(self.disk)
        self.assertEqual(store.published_position, end)
        self.assertEqual(store.queue("T", 0).next_offset, 10)

    def test_lastRecordBroken(self) -> None:
        """When the last record that a queue knows cannot be read, all is checked, and
        what is broken is given up with a sentence; so it is after a stop of Java's
        broker."""
        self.disk.remove(f"{ROOT}/rocketbroker.ends")
        file = self.disk.open(log_file())
        file.pwrite(b"?", self.drafts[9].position + 88)
        store = opened(self.disk)
        self.assertEqual(store.published_position, self.drafts[9].position)
        self.assertEqual(store.queue("T", 0).next_offset, 9)
        self.assertEqual(len(store.report), 2)
        self.assertIn("cannot be read", store.report[0])
        self.assertIn(
            f"The log ends at position {self.drafts[9].position}: the CRC of its body "
            "is another.",
            store.report[1],
        )
        self.assertTrue(store.discarded_bytes > 0)
        recovered = store.recovered
        self.assertEqual(recovered.cut_position, self.drafts[9].position)
        self.assertEqual(recovered.cut_bytes, store.discarded_bytes)
        self.assertEqual(recovered.trust, Trust.BEFORE_START)

    def test_lastRecordRotten(self) -> None:
        """After a stop of ours it is known that this record was whole: its place is
        kept, and what follows has the next number. If its end is zeros, it is torn."""
        last = self.drafts[9]
        self.disk.open(log_file()).pwrite(b"?", last.position + 88)
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.assertEqual(store.published_position, last.end)
        self.assertEqual((queue.max_offset, store.corrupt_records), (10, 1))
        self.assertIn("Its place is kept.", store.report[0])
        self.assertEqual(len(bodies(store, queue)), 9)
        put(store, queue, b"after")
        self.assertEqual(placed(store, queue)[10], b"after")
        store.close()
        self.start_over()
        self.disk.open(log_file()).pwrite(bytes(9), self.drafts[9].end - 9)
        store = opened(self.disk)
        self.assertEqual(store.published_position, self.drafts[9].position)

    def test_noQueues(self) -> None:
        """Queues that are gone are built again from the log."""
        self.disk.remove(QUEUE_FILE)
        store = opened(self.disk)
        self.assertEqual(len(bodies(store, store.queue("T", 0))), 10)

    def test_noLog(self) -> None:
        """Without a log the queues make no sense and are removed."""
        self.disk.remove(log_file())
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.assertEqual((queue.max_offset, queue.next_offset), (0, 0))
        self.assertEqual(len(store.report), 1)
        put(store, queue, b"new")
        self.assertEqual(bodies(store, queue), [b"new"])

    def test_fillers(self) -> None:
        """Entries filled in are never offered, though the log begins at 0."""
        file = self.disk.open(QUEUE_FILE)
        file.pwrite(FILLED * 3, 0)
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.assertEqual((queue.min_offset, queue.max_offset), (3, 10))

    def test_oldSegmentsGone(self) -> None:
        """The first offset is that of the first record that is still there."""
        store = opened(self.disk)
        queue = store.queue("T", 0)
        put(store, queue, *[b"x" * 9000] * 30)
        store.close()
        self.disk.remove(log_file())
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.assertEqual(store.min_position, SEGMENT)
        self.assertEqual(queue.max_offset, 40)
        self.assertTrue(10 < queue.min_offset < 40)
        self.assertEqual(len(bodies(store, queue)), 40 - queue.min_offset)


class UncleanTests(SynchronousTestCase):
    """After any other stop."""

    def setUp(self) -> None:
        """A store with a clock that a test advances."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = opened(self.disk, self.wall)
        self.queue = self.store.queue("T", 0)

    def restart(self, **changes: object) -> None:
        """The process dies; all that it wrote is there."""
        self.disk.crash(keep_all=True)
        self.store = opened(self.disk, self.wall, **changes)
        self.queue = self.store.queue("T", 0)

    def test_killed(self) -> None:
        """When only the process dies nothing is lost, dispatched or not, in whatever
        queue and of whatever kind."""
        long = self.store.queue("%RETRY%" + "g" * 200, 7)
        put(self.store, self.queue, b"one")
        drafts = [
            draft(self.queue, b"two", tags="A"),
            draft(long, b"three", born_host=BORN_HOST_V6),
            draft(self.queue, b"half", sys_flag=4),
        ]
        self.store.append(drafts)
        end = self.store.published_position
        self.restart()
        self.assertEqual(self.store.published_position, end)
        self.assertEqual(bodies(self.store, self.queue), [b"one", b"two"])
        self.assertEqual(
            bodies(self.store, self.store.queue(long.topic, 7)), [b"three"]
        )
        self.assertEqual(self.queue.next_offset, 2)
        tagged = self.store.read(self.queue, 0, 32, 1000, drafts[0].tag_code.__eq__)
        self.assertEqual(tagged.count, 1)
        self.assertEqual(self.store.report, [])
        put(self.store, self.queue, b"four")
        self.restart()
        self.assertEqual(bodies(self.store, self.queue), [b"one", b"two", b"four"])

    def test_checkpoint(self) -> None:
        """What the checkpoint vouches for is not read again."""
        for number in range(40):
            self.wall.now_ms = START_MS + number * 1000
            put(self.store, self.queue, b"x" * 9000)
        self.store.flush()
        self.store.flush_queues()
        self.restart()
        self.assertEqual(len(bodies(self.store, self.queue)), 40)
        self.assertTrue(0 < self.store.recovered.records < 20)
        self.assertTrue(MARGIN_MS >= 3000)

    def test_margin(self) -> None:
        """A segment that began less than three seconds before the times of the
        checkpoint is not vouched for."""
        put(self.store, self.queue, b"x" * 60_000)
        self.wall.now_ms += 10_000
        put(self.store, self.queue, b"x" * 60_000)
        for before_ms, records in ((2999, 2), (3000, 1)):
            self.wall.now_ms = START_MS + 10_000 + before_ms
            put(self.store, self.queue, b"y")
            self.store.flush()
            self.store.flush_queues()
            self.restart()
            again = self.store.recovered.records
            self.assertEqual(again, records + 1 + (before_ms == 3000), before_ms)

    def test_noCheckpoint(self) -> None:
        """Without a checkpoint everything is read, and built again as it was."""
        put(self.store, self.queue, *[b"%d" % number for number in range(250)])
        self.store.flush_queues()
        self.disk.remove(f"{ROOT}/checkpoint")
        before = snapshot(self.disk)[QUEUE_FILE]
        self.restart()
        self.assertEqual(self.store.recovered.records, 250)
        self.assertEqual(snapshot(self.disk)[QUEUE_FILE], before)

    def test_holes(self) -> None:
        """Holes that a crash tore into a queue are mended."""
        put(self.store, self.queue, *[b"%d" % number for number in range(250)])
        file = self.disk.open(QUEUE_FILE)
        file.pwrite(bytes(40), 50 * 20)
        self.disk.remove(f"{ROOT}/consumequeue/T/0/{segment_name(QUEUE_ENTRIES * 20)}")
        self.restart()
        self.assertEqual(
            bodies(self.store, self.queue), [b"%d" % number for number in range(250)]
        )

    def test_queueLost(self) -> None:
        """A queue that has lost entries before the checkpoint comes back whole, if it
        has messages behind it."""
        for number in range(40):
            self.wall.now_ms = START_MS + number * 1000
            put(self.store, self.queue, b"x" * 9000)
        self.store.flush()
        self.store.flush_queues()
        self.disk.remove(QUEUE_FILE)
        self.restart()
        self.assertEqual(len(bodies(self.store, self.queue)), 40)
        self.assertIn("Queue entries before", self.store.report[0])

    def test_queueBeginsLate(self) -> None:
        """When the first segments are gone, a queue that is built again is filled up
        and begins where its records begin."""
        put(self.store, self.queue, *[b"%d" % number * 3000 for number in range(60)])
        self.disk.remove(log_file())
        self.disk.remove(QUEUE_FILE)
        self.restart()
        first = self.queue.min_offset
        self.assertTrue(0 < first < 60)
        self.assertEqual(self.queue.max_offset, 60)
        self.assertEqual(len(bodies(self.store, self.queue)), 60 - first)
        self.assertEqual(self.queue.read(0, first), FILLED * first)
        self.restart()
        self.assertEqual(self.queue.min_offset, first)

    def test_segmentBehindTheEnd(self) -> None:
        """Segments behind the end that have no whole record are set aside, and
        reported."""
        put(self.store, self.queue, *[b"%d" % number * 9000 for number in range(30)])
        position = self.store.published_position
        for start in range(SEGMENT, position, SEGMENT):
            file = self.disk.open(log_file(start))
            for at in range(88, SEGMENT, 5000):
                file.pwrite(b"?", at)
        self.restart()
        self.assertEqual(self.store.published_position, SEGMENT)
        aside = self.disk.list(f"{ROOT}/commitlog.given-up")
        self.assertEqual(aside[0], segment_name(2 * SEGMENT))
        self.assertEqual(len(self.store.report), 1 + len(aside))
        self.assertTrue(self.store.discarded_bytes > position - 3 * SEGMENT)
        put(self.store, self.queue, b"after")
        self.assertEqual(bodies(self.store, self.queue)[-1], b"after")
        self.restart()
        self.assertEqual(bodies(self.store, self.queue)[-1], b"after")

    def test_cannotSetAside(self) -> None:
        """Where it cannot be set aside, it is removed, and reported."""
        put(self.store, self.queue, *[b"%d" % number * 9000 for number in range(10)])
        for start in (0, SEGMENT):
            file = self.disk.open(log_file(start))
            for at in range(88, SEGMENT, 5000):
                file.pwrite(b"?", at)
        self.disk.fail("rename", errno.EXDEV)
        self.restart()
        self.assertFalse(self.disk.exists(log_file(SEGMENT)))
        self.assertIn("removed, as it cannot be kept", self.store.report[1])

    def test_preallocated(self) -> None:
        """An empty segment that RocketMQ made ahead is removed."""
        put(self.store, self.queue, b"one")
        self.disk.open(log_file(SEGMENT), create=True).truncate(SEGMENT)
        self.restart()
        self.assertEqual(self.store.report, [])
        self.assertFalse(self.disk.exists(log_file(SEGMENT)))

    def test_endsWithFiller(self) -> None:
        """A log that ends with a filler goes on with the next segment."""
        put(self.store, self.queue, b"x" * 60_000)
        put(self.store, self.queue, b"y" * 60_000)
        self.disk.remove(log_file(SEGMENT))
        self.restart()
        self.assertEqual(self.store.published_position, SEGMENT)
        put(self.store, self.queue, b"z" * 60_000)
        self.assertEqual(
            [body[:1] for body in bodies(self.store, self.queue)], [b"x", b"z"]
        )

    def test_rottenEntries(self) -> None:
        """Entries that make no sense, wherever they stand, do not hide those behind
        them: neither by their place nor by the size that they say."""
        self.wall.now_ms += MARGIN_MS * 2
        put(self.store, self.queue, *[b"x" * 1000 for _ in range(99)])
        self.wall.now_ms += MARGIN_MS * 2
        put(self.store, self.queue, b"last")
        self.store.flush()
        self.store.flush_queues()
        good = self.disk.read(QUEUE_FILE)
        for at in range(100):
            position = ENTRY.unpack_from(good, at * SIZE)[0]
            for entry in (bytes(SIZE), ENTRY.pack(position, 1 << 30, 0)):
                file = self.disk.open(QUEUE_FILE)
                file.pwrite(good, 0)
                file.pwrite(entry, at * SIZE)
                self.restart()
                self.assertEqual(self.queue.max_offset, 100)
                self.assertTrue(len(bodies(self.store, self.queue)) >= 99)

    def test_clockSetBack(self) -> None:
        """What was stored after the clock was set back by an hour, at just the place
        that is corrupt, is not lost; after a start of RocketMQ, which leaves old
        records behind the end of its log, it cannot be told from those."""
        drafts = put(self.store, self.queue, b"one", b"two")
        self.wall.now_ms -= 3_600_000
        put(self.store, self.queue, b"three", b"four")
        self.disk.open(log_file()).pwrite(b"?", drafts[1].position + 4)
        files = snapshot(self.disk)
        self.restart()
        after = [b"one", b"three", b"four"]
        self.assertEqual(bodies(self.store, self.queue), after)
        self.restart()
        self.assertEqual(bodies(self.store, self.queue), after)
        files[f"{ROOT}/lock"] = b"lock"
        self.disk = restored(files)
        for path in files:
            self.disk.open(path).datasync()
            while path != "/":
                path = path.rpartition("/")[0] or "/"
                self.disk.sync_dir(path)
        for _ in range(3):
            self.store = opened(self.disk)
            self.queue = self.store.queue("T", 0)
            self.assertEqual(bodies(self.store, self.queue), [b"one"])
            self.assertEqual(self.store.published_position, drafts[1].position)
            self.assertEqual(self.disk.read(f"{ROOT}/lock"), b"rocketbroker")
            self.disk.crash()

    def test_notZeroed(self) -> None:
        """After a clean stop of RocketMQ nothing is overwritten, so that it is not
        said that zeros stand behind the log before a start has put them there."""
        put(self.store, self.queue, b"one")
        self.store.close()
        self.disk.open(f"{ROOT}/lock").pwrite(b"lock", 0)
        self.store = opened(self.disk)
        self.assertEqual(self.disk.read(f"{ROOT}/lock"), b"lock")
        self.restart()
        self.assertEqual(self.disk.read(f"{ROOT}/lock"), b"rocketbroker")

    def test_offWithoutCrc(self) -> None:
        """Where the check is switched off, a changed body keeps its place; it is not
        handed out."""
        drafts = put(self.store, self.queue, b"one", b"two")
        file = self.disk.open(log_file())
        file.pwrite(b"O", drafts[0].position + 88)
        self.restart(check_crc_on_recover=False)
        self.assertEqual(bodies(self.store, self.queue), [b"two"])
        self.assertEqual(self.queue.max_offset, 2)

"""What a store that somebody else has stopped cleanly has lost of its queues."""

from __future__ import annotations

import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import SIZE
from rocketbroker.store.append_lock import ThreadAppendLock
from rocketbroker.store.assembly import Assembly
from rocketbroker.store.commitlog.loading import load_segments
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.store.message_store import Store
from rocketbroker.store.recovery.unentered import (
    BATCH_SIZE,
    MAX_ENTRIES,
    MAX_READ,
    Unentered,
)
from rocketbroker.store.shared_positions import SharedPositions
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import die_at_start, forget_ends, list_topics, lose_folder
from tests.store.stores import (
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    STORE_HOST,
    Wall,
    bodies,
    draft,
    opened,
    options,
    put,
    put_batches,
    unwrapped,
    with_batches,
)

QUEUE_FILE = QUEUE_ENTRIES * SIZE
QUEUES = f"{ROOT}/consumequeue"


class UnenteredTests(SynchronousTestCase):
    """A store that a broker of RocketMQ's has stopped: nothing says where the queues
    ended."""

    def setUp(self) -> None:
        """Two queues over several files and segments; the second has the last
        record."""
        self.disk = MemoryDisk()
        wall = Wall()
        store = opened(self.disk, wall)
        self.bodies = [b"%0100d" % number for number in range(750)]
        for start in range(0, 750, 50):
            wall.now_ms += 1000
            put(store, store.queue("T", 1), b"%d" % start)
            put(store, store.queue("T", 0), *self.bodies[start : start + 50])
        put(store, store.queue("T", 1), b"last")
        self.assertGreater(store.published_position, 2 * SEGMENT)
        store.close()
        forget_ends(self.disk)

    def go_on(self, store: Store, wall: Wall) -> None:
        """Append to another queue until a crash would leave what is before alone."""
        for number in range(800):
            put(store, store.queue("U", 0), b"%0100d" % number)
        wall.now_ms += 100_000
        put(store, store.queue("U", 0), b"last")
        store.flush()
        store.flush_queues()

    def end(self, store: Store, stopped: bool) -> None:
        """Stop it as at first, or let it crash."""
        if stopped:
            store.close()
            forget_ends(self.disk)
        else:
            self.disk.crash(keep_all=True)

    def lose(self, *starts: int) -> None:
        """Lose files of the first queue, by their first bytes."""
        for start in starts:
            self.disk.remove(f"{QUEUES}/T/0/{segment_name(start)}")

    def check(self, count: int, report: int) -> Store:
        """Start; look which messages there are, and how much is told. The next one gets
        a number of its own."""
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.assertEqual(bodies(store, queue), self.bodies[:count])
        self.assertEqual(len(bodies(store, store.queue("T", 1))), 16)
        self.assertEqual(len(store.report), report, store.report)
        put(store, queue, b"next")
        self.assertEqual(queue.max_offset, count + 1)
        return store

    def test_sound(self) -> None:
        """Where nothing is lost nothing of the log is entered again, or told."""
        self.assertEqual(self.check(750, report=0).recovered_records, 0)

    def test_lastFile(self) -> None:
        """A queue that has lost its last file, or more of them, gets its entries back
        from the log, from the first that is lost on."""
        for starts in ((7,), (6, 7), (1, 2, 3, 4, 5, 6, 7)):
            self.setUp()
            self.lose(*(start * QUEUE_FILE for start in starts))
            store = self.check(750, report=1)
            first = starts[0] * QUEUE_ENTRIES
            self.assertIn(f"T/0 has no entries from offset {first} on", store.report[0])
            self.assertLess(store.recovered_records, 751 + 16 - first)
            store.close()
            self.assertEqual(opened(self.disk).report, [])

    def test_lastEntries(self) -> None:
        """So does one that has lost the last entries of its last file."""
        file = self.disk.open(f"{QUEUES}/T/0/{segment_name(7 * QUEUE_FILE)}")
        file.pwrite(bytes(SIZE * 10), 40 * SIZE)
        self.assertIn("from offset 740 on", self.check(750, report=1).report[0])

    def test_firstFiles(self) -> None:
        """The first files of a queue come back, also where it was killed."""
        for stopped in (True, False):
            self.setUp()
            wall = Wall()
            wall.now_ms += 100_000
            store = opened(self.disk, wall)
            self.go_on(store, wall)
            self.end(store, stopped)
            self.lose(0, QUEUE_FILE)
            store = opened(self.disk, wall)
            queue = store.queue("T", 0)
            self.assertEqual((queue.min_offset, queue.max_offset), (0, 750))
            self.assertEqual(bodies(store, queue), self.bodies)
            self.assertEqual(len(bodies(store, store.queue("U", 0))), 801)

    def test_directory(self) -> None:
        """So does one that has lost its directory."""
        lose_folder(self.disk, f"{QUEUES}/T/0")
        self.check(750, report=1)

    def test_several(self) -> None:
        """So do several."""
        list_topics(self.disk, "T", "U")
        store = opened(self.disk)
        put(store, store.queue("U", 3), b"u")
        put(store, store.queue("T", 1), b"last")
        store.close()
        forget_ends(self.disk)
        self.lose(7 * QUEUE_FILE)
        lose_folder(self.disk, f"{QUEUES}/U/3")
        store = opened(self.disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), self.bodies)
        self.assertEqual(bodies(store, store.queue("U", 3)), [b"u"])

    def test_deleted(self) -> None:
        """A topic that the broker does not know stays away; so does one that was
        deleted and made again: its other queues begin behind."""
        lose_folder(self.disk, f"{QUEUES}/T/0")
        list_topics(self.disk, "U")
        self.check(0, report=0)
        self.setUp()
        lose_folder(self.disk, f"{QUEUES}/T/0")
        lose_folder(self.disk, f"{QUEUES}/T/1")
        list_topics(self.disk, "U", "T")
        store = opened(self.disk)
        store.delete_topic("T")
        for number in range(16):
            put(store, store.queue("T", 1), b"%d" % number)
        store.close()
        forget_ends(self.disk)
        self.check(0, report=0)

    def test_madeAgainUnused(self) -> None:
        """Nothing tells a topic that was deleted and made again, and has no message
        yet, from one that has lost all: it stays as it is, and that is said."""
        for stopped in (True, False):
            self.setUp()
            wall = Wall()
            wall.now_ms += 100_000
            store = opened(self.disk, wall)
            store.delete_topic("T")
            store.queue("T", 0)
            self.go_on(store, wall)
            self.end(store, stopped)
            list_topics(self.disk, "U", "T")
            store = opened(self.disk, wall)
            self.assertEqual(bodies(store, store.queue("T", 0)), [])
            self.assertEqual(len(bodies(store, store.queue("U", 0))), 801)
            (said,) = store.report
            self.assertIn("No queue of T has entries", said)
            store.close()
            self.assertEqual(opened(self.disk, wall).report, [])

    def test_madeAgainAndRead(self) -> None:
        """It is not said where its messages come back, as some stand in what is read
        after a crash: behind others of their queue, so that all are entered again."""
        wall = Wall()
        wall.now_ms += 100_000
        store = opened(self.disk, wall)
        store.delete_topic("T")
        put(store, store.queue("U", 0), b"last")
        store.flush()
        store.flush_queues()
        self.disk.crash(keep_all=True)
        list_topics(self.disk, "U", "T")
        store = opened(self.disk, wall)
        self.assertEqual(bodies(store, store.queue("T", 0)), self.bodies)
        (said,) = store.report
        self.assertIn("they are made again from position 0", said)

    def test_madeAgainAndKilled(self) -> None:
        """One that has new messages only in what is read after a crash keeps these
        alone."""
        wall = Wall()
        wall.now_ms += 100_000
        store = opened(self.disk, wall)
        store.delete_topic("T")
        self.go_on(store, wall)
        put(store, store.queue("T", 0), b"new")
        list_topics(self.disk, "U", "T")
        self.disk.crash(keep_all=True)
        store = opened(self.disk, wall)
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"new"])
        self.assertEqual(bodies(store, store.queue("T", 1)), [])
        self.assertEqual(store.report, [])

    def test_others(self) -> None:
        """Half messages, which belong in no queue, are not missed, nor those that are
        there already."""
        store = opened(self.disk)
        half = draft(store.queue("T", 5), b"half", sys_flag=4)
        store.append([half])
        self.assertEqual(half.status, PUT_OK)
        put(store, store.queue("T", 1), b"last")
        store.close()
        forget_ends(self.disk)
        store = opened(self.disk)
        self.assertEqual((store.report, store.recovered_records), ([], 0))

    def test_batches(self) -> None:
        """A batch queue gets its units back, too."""
        for gone in (1, 2, 3):
            disk = MemoryDisk()
            disk.make_dirs(f"{ROOT}/batchconsumequeue/B")
            store = opened(disk)
            queue = store.queue("B", 0)
            put_batches(store, queue, *([b"%d" % n, b"and"] for n in range(25)))
            known = unwrapped(store, queue)
            put(store, store.queue("T", 0), b"last")
            store.close()
            forget_ends(disk)
            folder = f"{ROOT}/batchconsumequeue/B/0"
            names = disk.list(folder)
            self.assertEqual(len(names), 3)
            for name in names[-gone:]:
                disk.remove(f"{folder}/{name}")
            store = opened(disk)
            self.assertEqual(unwrapped(store, store.queue("B", 0)), known)
            self.assertEqual(store.queue("B", 0).max_offset, 50)

    def test_killed(self) -> None:
        """It gets them back although the start that was about to was killed."""
        for call in ("pwrite", "truncate", "datasync", "sync_dir", "remove"):
            for after in range(8):
                self.setUp()
                self.lose(7 * QUEUE_FILE)
                die_at_start(self.disk, call, after)
                store = opened(self.disk)
                self.assertEqual(bodies(store, store.queue("T", 0)), self.bodies)

    def test_powerLost(self) -> None:
        """So it does when the power was lost in the middle of that start."""
        self.lose(*(number * QUEUE_FILE for number in (3, 4, 5, 6, 7)))
        path = f"{ROOT}/checkpoint"
        self.assertTrue(any(self.disk.read(path)[:16]))
        images: list[MemoryDisk] = []

        def watch(call: str) -> None:
            luck = random.Random(len(images))
            images.append(self.disk.image(luck, keep_names=luck.random() < 0.8))

        self.disk.watch = watch
        opened(self.disk)
        self.disk.watch = None
        written = [image for image in images if image.read(path)[:16] == bytes(16)]
        self.assertTrue(written)
        for image in images[::5]:
            store = opened(image)
            self.assertEqual(bodies(store, store.queue("T", 0)), self.bodies)

    def test_badDisk(self) -> None:
        """What cannot be read in the log counts as it stands."""
        self.lose(7 * QUEUE_FILE)
        for number in range(2):
            path = f"{ROOT}/commitlog/{segment_name(number * SEGMENT)}"
            self.disk.spoil(path, 0, SEGMENT)
        store = opened(self.disk)
        self.disk.heal()
        self.assertEqual(bodies(store, store.queue("T", 0)), self.bodies[:750])
        self.assertEqual(len(store.report), 1, store.report)

    def look(self, most_entries: int, most_read: int, at_once: int = BATCH_SIZE) -> int:
        """The first offset that is missing; -1 if none is known to be."""
        words = SharedPositions(self.disk, ROOT)
        parts = Assembly(
            self.disk,
            options(),
            words,
            ThreadAppendLock(),
            Wall(),
            STORE_HOST,
            1 << 40,
            CorruptionLog(),
            None,
        )
        load_segments(self.disk, parts.segments)
        parts.table.load(True, lambda: None)
        for queue in parts.table.all():
            queue.bound(1 << 62, 0, False)
        end = max(queue.max_position for queue in parts.table.all())
        unentered = Unentered(
            parts.segments, parts.table, None, most_entries, most_read, at_once
        )
        unentered.look(end)
        parts.table.close()
        parts.segments.close()
        words.remove()
        said = " ".join(unentered.said()).split()
        return int(said[6]) if unentered.position >= 0 else -1

    def test_pieces(self) -> None:
        """It does not matter into which pieces the log is cut."""
        for at_once in (250, 1000, 7777, SEGMENT - 1):
            self.assertEqual(self.look(1 << 60, 1, at_once), -1)
        self.lose(*(number * QUEUE_FILE for number in range(2, 8)))
        for at_once in (250, 1000, 7777, SEGMENT - 1):
            self.assertEqual(self.look(1 << 60, MAX_READ, at_once), 200)
        store = opened(self.disk)
        lost = draft(store.queue("T", 2))
        store.append([lost])
        put(store, store.queue("T", 1), b"last")
        store.close()
        lose_folder(self.disk, f"{QUEUES}/T/2")
        size = lost.position % SEGMENT
        for at_once in range(size // 2 - 30, size // 2 + 180, 10):
            self.assertEqual(self.look(1 << 60, MAX_READ, at_once), 0)

    def test_bounds(self) -> None:
        """However much there is, the start does not wait long: what is far behind the
        end is not looked at, and so many records are not read."""
        self.lose(*(number * QUEUE_FILE for number in range(2, 8)))
        self.assertEqual(self.look(MAX_ENTRIES, MAX_READ), 200)
        self.assertEqual(self.look(MAX_ENTRIES, 1), -1)
        self.assertEqual(self.look(0, MAX_READ), -1)
        self.assertTrue(500 < self.look(1, MAX_READ) < 750)
        self.assertTrue(200 < self.look(MAX_ENTRIES, 4) < 750)

    def test_healthy(self) -> None:
        """What queues lead to is not read, however much it is: only the gaps are."""
        self.lose(0)
        self.assertEqual(self.look(MAX_ENTRIES, 20), 0)
        for at_once in (1000, SEGMENT - 1):
            self.assertEqual(self.look(MAX_ENTRIES, 200, at_once), 0)

    def test_healthyBatches(self) -> None:
        """Nor is what batch queues lead to."""
        self.disk = MemoryDisk()
        store = with_batches(self.disk)
        put(store, store.queue("T", 0), *self.bodies[:200])
        put_batches(store, store.queue("B", 0), *[[b"a" * 99, b"b"]] * 300)
        put(store, store.queue("T", 1), b"last")
        store.close()
        forget_ends(self.disk)
        self.lose(0)
        self.assertEqual(self.look(MAX_ENTRIES, 20), 0)

    def test_noTable(self) -> None:
        """Where the broker has no table of its topics, and a topic no entries, it is
        lost."""
        for queue_id in (0, 1):
            lose_folder(self.disk, f"{QUEUES}/T/{queue_id}")
        store = opened(self.disk)
        put(store, store.queue("U", 0), b"last")
        self.assertEqual(bodies(store, store.queue("T", 0)), self.bodies)

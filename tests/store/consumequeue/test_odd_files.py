"""Starts that find queue files of a wrong length, or none between two others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.hashing import tag_code
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import die_at_start, forget_ends
from tests.store.lmq import spread
from tests.store.snapshots import restored, snapshot
from tests.store.stores import (
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    Wall,
    bodies,
    opened,
    placed,
    put,
    put_batches,
    unwrapped,
)

SIZE = QUEUE_ENTRIES * 20
MESSAGES = 450


def path(start: int, topic: str = "T") -> str:
    """A file of T/0, or of a queue of another topic."""
    return f"{ROOT}/consumequeue/{topic}/0/{segment_name(start)}"


def resized(start: int, length: int) -> Callable[[MemoryDisk], None]:
    """Give such a file another length; what comes to it is rubbish."""

    def change(disk: MemoryDisk) -> None:
        file = disk.open(path(start))
        more = length - file.size()
        file.truncate(length)
        if more > 0:
            file.pwrite(b"\x01" * more, length - more)

    return change


def removed(*starts: int, topic: str = "T") -> Callable[[MemoryDisk], None]:
    """Remove such files, or those of another topic."""

    def change(disk: MemoryDisk) -> None:
        for start in starts:
            disk.remove(path(start, topic))

    return change


def changes() -> Iterator[tuple[str, Callable[[MemoryDisk], None]]]:
    """All that may be odd, and the file that is to be named."""
    for start in range(0, 5 * SIZE, SIZE):
        for length in (0, 1, 700, SIZE - 20, SIZE + 1, 2 * SIZE):
            yield path(start), resized(start, length)
    for gone in ((SIZE,), (SIZE, 2 * SIZE), (3 * SIZE,), (2 * SIZE, 3 * SIZE)):
        yield path(gone[0]), removed(*gone)


class OddQueueTests(SynchronousTestCase):
    """A log of several segments, and a queue of five files beside two others."""

    def setUp(self) -> None:
        """The store, stopped cleanly and killed."""
        disk = MemoryDisk()
        wall = Wall()
        store = opened(disk, wall)
        self.bodies = [b"%d " % number + b"x" * 900 for number in range(MESSAGES)]
        for number in range(0, MESSAGES, 50):
            put(store, store.queue("T", 0), *self.bodies[number : number + 50])
            put(store, store.queue("T", 1), b"%d" % number)
            wall.now_ms += 10_000
        store.flush()
        store.flush_queues()
        self.killed = snapshot(disk)
        store.close()
        self.clean = snapshot(disk)
        self.assertIn(path(4 * SIZE), self.clean)

    def start(self, disk: MemoryDisk, gone: int = 0) -> Store:
        """Start, and look whether all can be read.

        @param gone: of how many messages the records may be gone, at the most.
        """
        store = opened(disk)
        queue = store.queue("T", 0)
        self.assertEqual((queue.max_offset, queue.next_offset), (MESSAGES, MESSAGES))
        found = placed(store, queue)
        self.assertTrue(bool(gone) <= queue.min_offset <= gone)
        self.assertEqual(
            found, dict(enumerate(self.bodies[queue.min_offset :], queue.min_offset))
        )
        self.assertEqual(store.queue("T", 1).max_offset, MESSAGES // 50)
        return store

    def files(self, how: str) -> MemoryDisk:
        """The disk after a stop: of ours, of Java's, a kill."""
        disk = restored(self.killed if how == "killed" else self.clean)
        if how == "java":
            forget_ends(disk)
        return disk

    def test_everything(self) -> None:
        """All messages are served, whatever is odd, and however the store was stopped;
        the file is named, and the next start finds nothing odd."""
        for name, change in changes():
            for how in ("clean", "java", "killed"):
                disk = self.files(how)
                change(disk)
                store = self.start(disk)
                self.assertIn(name, "".join(store.report))
                is_torn = how == "killed" and "had 0 bytes" in store.report[0]
                if not is_torn or name != path(4 * SIZE):
                    self.assertIn("All queues are made again.", store.report)
                self.assertEqual(disk.size(name), SIZE)
                put(store, store.queue("T", 0), b"next")
                self.assertEqual(placed(store, store.queue("T", 0))[MESSAGES], b"next")
                store.close()
                again = opened(disk)
                self.assertEqual(again.report, [])
                again.close()

    def test_firstFilesGone(self) -> None:
        """They are made again, too: a stop of ours has told where the files began, and
        where the log is whole it is known."""
        for how in ("clean", "java"):
            for gone in ((0,), (0, SIZE), (0, SIZE, 2 * SIZE, 3 * SIZE)):
                disk = self.files(how)
                removed(*gone)(disk)
                store = self.start(disk)
                message = f"T/0 has entries from offset {len(gone) * QUEUE_ENTRIES} on"
                self.assertIn(message, store.report[0])
                store.close()
                self.assertEqual(self.start(disk).report, [])

    def test_allFilesGone(self) -> None:
        """So are all files of a queue, as long as its directory is there."""
        disk = self.files("clean")
        removed(*range(0, 5 * SIZE, SIZE))(disk)
        self.assertIn("T/0 ends at offset 0; it", self.start(disk).report[0])

    def test_lastSegmentGone(self) -> None:
        """While the last file of the log is gone, nothing takes its place, and no
        number is used twice: entries tell of it, if no stop of ours does."""
        for how in ("clean", "java"):
            disk = self.files(how)
            disk.remove(f"{ROOT}/commitlog/{disk.list(f'{ROOT}/commitlog')[-1]}")
            store = opened(disk)
            messages = "".join(store.report)
            self.assertIn("New messages go behind", messages)
            queue = store.queue("T", 0)
            self.assertEqual(queue.next_offset, MESSAGES)
            put(store, queue, b"next")
            self.assertEqual(placed(store, queue)[MESSAGES], b"next")
            store.close()

    def test_oneRottenEntry(self) -> None:
        """One entry that leads behind the log is no reason to believe that files are
        missing."""
        disk = self.files("java")
        entry = (MESSAGES - 1) * 20
        file = disk.open(path(entry // SIZE * SIZE))
        at = int.from_bytes(file.pread(8, entry % SIZE), "big") + SEGMENT
        file.pwrite(at.to_bytes(8, "big"), entry % SIZE)
        store = opened(disk)
        self.assertNotIn("New messages go behind", "".join(store.report))
        store.close()

    def test_oldRecordsGone(self) -> None:
        """So it is when the first records are not in the log any more."""
        for name, change in changes():
            for how in ("java", "killed"):
                disk = self.files(how)
                for start in range(0, 3 * SEGMENT, SEGMENT):
                    disk.remove(f"{ROOT}/commitlog/{segment_name(start)}")
                change(disk)
                store = self.start(disk, gone=210)
                self.assertIn(name, "".join(store.report))
                store.close()

    def test_firstRecordAlone(self) -> None:
        """The first record of the log is served, though nobody knows what its queue had
        before it, and the one behind it is corrupt."""
        store = opened(restored(self.clean))
        queue = store.queue("T", 0)
        places = [store.entries(queue, at, 1)[0][0] for at in range(MESSAGES)]
        store.close()
        begin = 3 * SEGMENT
        first = next(at for at, position in enumerate(places) if position >= begin)
        odd = first * 20 // SIZE * SIZE
        self.assertTrue(odd < first * 20)
        for how in ("clean", "java", "killed"):
            for change in (removed(odd), resized(odd, 0), resized(odd, 40)):
                disk = self.files(how)
                for start in range(0, begin, SEGMENT):
                    disk.remove(f"{ROOT}/commitlog/{segment_name(start)}")
                log = disk.open(f"{ROOT}/commitlog/{segment_name(begin)}")
                log.pwrite(b"rotten", places[first + 1] - begin + 500)
                change(disk)
                store = opened(disk)
                found = placed(store, store.queue("T", 0))
                self.assertEqual(found.pop(first), self.bodies[first])
                self.assertNotIn(first + 1, found)
                self.assertEqual(max(found), MESSAGES - 1)
                store.close()

    def test_killedMeanwhile(self) -> None:
        """A start that is killed while it makes queues again is not believed by the
        next."""
        for change in (removed(SIZE), resized(2 * SIZE, 0), resized(SIZE, SIZE + 1)):
            for how in ("clean", "killed"):
                for call in ("pwrite", "truncate", "datasync", "sync_dir"):
                    for after in (0, 1, 3, 8, 21):
                        disk = self.files(how)
                        change(disk)
                        die_at_start(disk, call, after)
                        self.start(disk)


class CleanedTests(SynchronousTestCase):
    """Queues whose first records are gone from the log with its first segments, and
    their files with them."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """All records of U/0 are gone, and those of T/0 before number 200, with which a
        segment begins and a file of the queue."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        put(store, store.queue("U", 0), *[b"u"] * 105, b"x" * 50_000)
        queue = store.queue("T", 0)
        self.bodies = [b"%03d" % number + b"x" * 1150 for number in range(450)]
        for each in self.bodies:
            put(store, queue, each)
        begin = store.entries(queue, 200, 1)[0][0]
        self.assertEqual(begin % SEGMENT, 0)
        store.close()
        for start in range(0, begin, SEGMENT):
            self.disk.remove(f"{ROOT}/commitlog/{segment_name(start)}")
        self.disk.remove(path(0))
        self.disk.remove(path(SIZE))
        self.empty = [path(at, "U") for at in (0, SIZE)]

    def start(self) -> Store:
        """Start, and look at T/0."""
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.assertEqual((queue.min_offset, queue.max_offset), (200, 450))
        self.assertEqual(bodies(store, queue), self.bodies[200:])
        self.assertEqual(queue.files.all[0].start, 2 * SIZE)
        return store

    def test_begin(self) -> None:
        """What is made again begins where it did: nothing is made for numbers whose
        records are gone."""
        for start, length in ((2 * SIZE, 0), (3 * SIZE, 100), (4 * SIZE, SIZE + 1)):
            self.start_over()
            resized(start, length)(self.disk)
            self.start().close()
            self.start()

    def test_numbers(self) -> None:
        """A queue without a message goes on where it was, whatever is left of its
        files, and does so after the next stop."""
        for change in (
            lambda file, _: file.truncate(41),
            lambda file, _: file.truncate(0),
            lambda file, _: file.truncate(SIZE + 1),
            lambda _, file: file.truncate(0),
            lambda _, file: file.truncate(20),
            lambda _, file: file.truncate(2 * SIZE),
            lambda *_: removed(0, SIZE, topic="U")(self.disk),
        ):
            self.start_over()
            change(*map(self.disk.open, self.empty))
            for _ in range(3):
                store = self.start()
                queue = store.queue("U", 0)
                self.assertEqual((queue.min_offset, queue.next_offset), (106, 106))
                store.close()
            store = self.start()
            queue = store.queue("U", 0)
            put(store, queue, b"next")
            self.assertEqual(placed(store, queue), {106: b"next"})

    def test_firstFilesGone(self) -> None:
        """A file that began behind the log's begin is known to be missing, as opposed
        to those that went with the log."""
        self.start().close()
        self.start().close()
        self.assertEqual(self.start().report, [])
        self.start_over()
        self.start().close()
        self.disk.remove(path(2 * SIZE))
        self.assertIn("T/0 has entries from offset 300", self.start().report[0])

    def test_nameOnly(self) -> None:
        """Where nobody knows more, it goes on behind what the names of files tell."""
        forget_ends(self.disk)
        self.disk.open(self.empty[1]).truncate(0)
        for _ in range(3):
            store = self.start()
            self.assertTrue(100 <= store.queue("U", 0).next_offset <= 106)
            store.close()


class OtherKindsTests(SynchronousTestCase):
    """Queues that are not ordinary ones."""

    def change(self, disk: MemoryDisk, folder: str, how: str) -> None:
        """Damage the second file in a directory."""
        found = f"{folder}/{disk.list(folder)[1]}"
        if how == "gone":
            disk.remove(found)
        else:
            file = disk.open(found)
            file.truncate({"short": 7, "empty": 0, "long": file.size() + 1}[how])

    def test_batches(self) -> None:
        """Batch queues are made again, too."""
        for how in ("gone", "short", "empty", "long"):
            disk = MemoryDisk()
            store = opened(disk)
            disk.make_dirs(f"{ROOT}/batchconsumequeue/B")
            put_batches(store, store.queue("B", 0), *[[b"1", b"2", b"3"]] * 45)
            there = unwrapped(store, store.queue("B", 0))
            self.assertEqual(len(there), 135)
            store.close()
            self.change(disk, f"{ROOT}/batchconsumequeue/B/0", how)
            store = opened(disk)
            self.assertTrue(store.report)
            self.assertEqual(unwrapped(store, store.queue("B", 0)), there)
            self.assertEqual(store.queue("B", 0).next_offset, 135)
            store.close()
            self.assertEqual(opened(disk).report, [])

    def test_extensions(self) -> None:
        """So are extensions, and the tags in them are found."""
        for how in ("gone", "short", "empty", "long"):
            disk = MemoryDisk()
            settings: dict[str, Any] = {
                "enable_consume_queue_ext": True,
                "mapped_file_size_consume_queue_ext": 200,
            }
            store = opened(disk, **settings)
            for number in range(60):
                put(store, store.queue("T", 0), b"%d" % number, tags="AB"[number % 2])
            store.close()
            self.change(disk, f"{ROOT}/consumequeue_ext/T/0", how)
            store = opened(disk, **settings)
            self.assertTrue(store.report)
            queue = store.queue("T", 0)
            self.assertEqual(len(bodies(store, queue)), 60)
            found = store.read(queue, 0, 100, 1 << 20, tag_code("A").__eq__)
            self.assertEqual(found.count, 30)
            store.close()
            self.assertEqual(opened(disk, **settings).report, [])

    def test_lights(self) -> None:
        """So are LMQs."""
        for how in ("gone", "short", "empty", "long"):
            disk = MemoryDisk()
            settings: dict[str, Any] = {
                "enable_lmq": True,
                "enable_multi_dispatch": True,
            }
            store = opened(disk, **settings)
            queue, light = store.queue("T", 0), store.queue("%LMQ%a", 0)
            store.append([spread(queue, b"%d" % n, light) for n in range(250)])
            while store.dispatch(1000):
                pass
            there = bodies(store, light)
            store.close()
            self.change(disk, f"{ROOT}/consumequeue/%LMQ%a/0", how)
            store = opened(disk, **settings)
            self.assertEqual(bodies(store, store.queue("%LMQ%a", 0)), there)
            self.assertEqual(store.queue("%LMQ%a", 0).next_offset, 250)
            store.close()

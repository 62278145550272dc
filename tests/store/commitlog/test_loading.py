"""What a start makes of the files that it finds, and of those that it does not."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.store.commitlog.loading import MAX_MISSING, MAX_MISSING_BEHIND
from rocketbroker.store.file_names import segment_name
from rocketbroker.testing.files import MemoryDisk
from tests.store.cleanings import NEVER, NOW, CleaningCase
from tests.store.snapshots import log_file
from tests.store.stores import ROOT, SEGMENT, bodies, make, opened, placed, put

FOLDERS = "/a", "/b", "/c"


class FileTests(SynchronousTestCase):
    """Files that are not as they should be."""

    def setUp(self) -> None:
        """A store of several segments, stopped cleanly."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        put(
            store, store.queue("T", 0), *[b"%d" % number * 9000 for number in range(30)]
        )
        self.end = store.published_position
        self.last = store.published_position // SEGMENT * SEGMENT
        store.close()

    def test_empty(self) -> None:
        """A last segment without a byte is removed."""
        self.disk.open(log_file(self.last + SEGMENT), create=True)
        store = opened(self.disk)
        self.assertEqual(store.published_position, self.end)
        self.assertFalse(self.disk.exists(log_file(self.last + SEGMENT)))

    def test_short(self) -> None:
        """A short segment is extended, and is good as far as it goes."""
        self.disk.open(log_file(self.last)).truncate(self.end - self.last)
        store = opened(self.disk)
        self.assertEqual(store.published_position, self.end)
        self.assertEqual(self.disk.size(log_file(self.last)), SEGMENT)
        self.assertEqual(len(store.report), 1)

    def test_otherSize(self) -> None:
        """Segments made with another setting are refused in one sentence, unchanged."""
        error = self.assertRaises(
            StoreError, make(self.disk, mapped_file_size_commit_log=SEGMENT // 2).open
        )
        self.assertIn("does not fit mappedFileSizeCommitLog", str(error))
        self.assertFalse(self.disk.exists(f"{ROOT}/rocketbroker.words"))
        error = self.assertRaises(
            StoreError, make(self.disk, mapped_file_size_commit_log=SEGMENT * 2).open
        )
        store = opened(self.disk)
        self.assertEqual(len(bodies(store, store.queue("T", 0))), 30)

    def test_foreign(self) -> None:
        """Other files are left alone, and reported."""
        self.disk.open(f"{ROOT}/commitlog/notes.txt", create=True)
        self.disk.open(f"{ROOT}/consumequeue/stray", create=True)
        store = opened(self.disk)
        self.assertEqual(len(store.report), 2)
        self.assertTrue(self.disk.exists(f"{ROOT}/commitlog/notes.txt"))

    def test_missing(self) -> None:
        """When a segment in the middle is missing, what is before and behind it is
        used."""
        self.disk.remove(log_file(SEGMENT))
        store = opened(self.disk)
        self.assertEqual(store.min_position, 0)
        self.assertEqual(store.published_position, self.end)
        self.assertIn("Segments are missing", store.report[0])
        queue = store.queue("T", 0)
        self.assertEqual((queue.min_offset, queue.max_offset), (0, 30))
        self.assertTrue(20 < len(bodies(store, queue)) < 30)

    def test_severalFolders(self) -> None:
        """A log in two directories is one log."""
        disk = MemoryDisk()
        folders = "/a/commitlog,/b/commitlog"
        store = opened(disk, store_path_commit_log=folders)
        put(store, store.queue("T", 0), *[b"x" * 9000] * 30)
        store.close()
        self.assertEqual(len(disk.list("/a/commitlog")), 3)
        self.assertEqual(len(disk.list("/b/commitlog")), 2)
        store = opened(disk, store_path_commit_log=folders)
        self.assertEqual(len(bodies(store, store.queue("T", 0))), 30)


class MissingTests(CleaningCase):
    """A log in three directories; each segment holds two messages."""

    def setUp(self) -> None:
        """Eight messages in the segments 0 to 3: a b c a."""
        super().setUp()
        self.start()
        self.put(8)

    def start(self, **changes: object) -> None:
        """Open the store."""
        given = {"store_path_commit_log": ",".join(FOLDERS), **changes}
        self.begin(messages=0, **given)

    def settle(self) -> None:
        """All of it on the disk, and in the index."""
        self.store.flush()
        self.store.flush_queues()
        while self.store.build_index(1000):
            pass

    def stop(self, clean: bool) -> None:
        """Stop, or die."""
        if clean:
            self.store.close()
        else:
            self.disk.crash(keep_all=True)

    def move(self, source: str, target: str) -> None:
        """Move what is in a directory to another."""
        self.disk.make_dirs(target)
        for name in self.disk.list(source):
            self.disk.rename(f"{source}/{name}", f"{target}/{name}")

    def offsets(self) -> list[int]:
        """The queue offsets of all messages that can be read."""
        found = placed(self.store, self.queue)
        for offset, body in found.items():
            self.assertEqual(body, self.written.get(offset, body))
        return list(found)

    @property
    def written(self) -> dict[int, bytes]:
        """What setUp has written."""
        return {n: b"%03d" % n + b"x" * 30_000 for n in range(8)}

    def places(self) -> list[tuple[int, str]]:
        """Where which segment is."""
        return sorted(
            (int(name) // SEGMENT, folder)
            for folder in FOLDERS
            for name in self.disk.list(folder)
        )

    def test_inTheMiddle(self) -> None:
        """While one in the middle is away, all others can be read, and messages are
        stored; when it is back, so can its own."""
        for clean, folder, number in ((True, "/b", 1), (False, "/c", 2)):
            self.stop(clean)
            self.move(folder, "/elsewhere")
            self.start()
            start = number * SEGMENT
            message = f"missing between {start} and {start + SEGMENT}"
            self.assertIn(message, self.store.report[0])
            first = self.queue.max_offset
            there = [n for n in range(first) if n // 2 != number]
            self.assertEqual(self.offsets(), there)
            self.put(1)
            self.assertEqual(self.offsets(), [*there, first])
            self.stop(clean)
            self.start()
            self.assertEqual(self.offsets(), [*there, first])
            self.stop(clean)
            self.move("/elsewhere", folder)
            self.start()
            self.assertEqual(self.offsets(), list(range(first + 1)))

    def test_atTheEnd(self) -> None:
        """While the last one is away nothing takes its place: what is stored comes
        behind it, with offsets behind those that were given."""
        for clean in (True, False):
            self.stop(clean)
            end, away = max(self.places())
            self.move(away, "/elsewhere")
            self.start()
            self.assertTrue(
                any("New messages go behind" in each for each in self.store.report)
            )
            first = self.queue.max_offset
            self.put(3)
            self.assertTrue(self.store.published_position > (end + 1) * SEGMENT)
            self.assertEqual(self.offsets()[-3:], [first, first + 1, first + 2])
            self.stop(clean)
            for name in self.disk.list("/elsewhere"):
                self.disk.rename(f"/elsewhere/{name}", f"/b/{name}")
            self.start()
            self.assertEqual(self.offsets(), list(range(first + 3)))
            numbers = [number for number, _ in self.places()]
            self.assertEqual(numbers, sorted(set(numbers)))

    def test_torn(self) -> None:
        """A log that is torn before its files end goes on there: what entries behind it
        tell of was not flushed."""
        self.stop(False)
        end, away = max(self.places())
        self.move(away, "/elsewhere")
        self.disk.rename(f"/elsewhere/{segment_name(0)}", f"/a/{segment_name(0)}")
        folder = dict(self.places())[end - 1]
        last = self.disk.open(f"{folder}/{segment_name((end - 1) * SEGMENT)}")
        last.truncate(40_000)
        last.truncate(SEGMENT)
        self.start()
        self.assertEqual(self.offsets(), list(range(5)))
        self.assertTrue(self.store.published_position < end * SEGMENT)
        self.assertEqual(self.queue.next_offset, 5)
        self.assertIn(f"now its files end at {end * SEGMENT}.", self.store.report[0])

    def test_atTheBeginning(self) -> None:
        """While the first ones are away, the queues' entries of them stay, however
        much they are cleaned."""
        entries = {"mapped_file_size_consume_queue": SIZE, "delete_when": NEVER}
        self.store.close()
        self.disk.remove(f"{ROOT}/consumequeue/T/0/{segment_name(0)}")
        self.start(**entries)
        self.store.close()
        self.disk.make_dirs("/elsewhere")
        self.disk.rename(f"/a/{segment_name(0)}", "/elsewhere/0")
        self.start(**entries)
        self.assertIn("now its files begin at 65536", self.store.report[0])
        list(self.store.clean())
        self.assertEqual(self.offsets(), list(range(2, 8)))
        self.store.close()
        self.disk.rename("/elsewhere/0", f"/a/{segment_name(0)}")
        self.start(**entries)
        self.assertEqual(self.offsets(), list(range(8)))

    def test_queuesToo(self) -> None:
        """Queues that are made again from a log with a hole go on behind it with the
        offsets that the records say, also if there is only one."""
        self.stop(False)
        self.move("/b", "/elsewhere")
        self.disk.remove(f"/a/{segment_name(3 * SEGMENT)}")
        self.disk.open(f"/c/{segment_name(2 * SEGMENT)}").truncate(31_000)
        self.disk.remove(f"{ROOT}/consumequeue/T/0/{segment_name(0)}")
        self.start()
        self.assertEqual(self.offsets(), [0, 1, 4])

    def test_expires(self) -> None:
        """What stands in for a segment holds up no cleaning; it has no file."""
        self.store.close()
        self.move("/b", "/elsewhere")
        self.start(delete_when=NOW, file_reserved_time=0)
        self.assertEqual([number for number, _ in self.places()], [0, 2, 3])
        list(self.store.clean())
        self.assertEqual([number for number, _ in self.places()], [3])

    def test_farAway(self) -> None:
        """A file far behind is of another log; a corrupt entry that leads far behind
        the end makes no files."""
        self.stop(False)
        entries = self.disk.open(f"{ROOT}/consumequeue/T/0/{segment_name(0)}")
        far = (MAX_MISSING_BEHIND + 5) * SEGMENT
        entries.pwrite(ENTRY.pack(far, 30_135, 0), 7 * SIZE)
        self.start()
        self.assertEqual(len(self.places()), 4)
        self.assertEqual(self.offsets(), list(range(8)))
        self.store.close()
        far = (MAX_MISSING + 6) * SEGMENT
        self.disk.open(f"/b/{segment_name(far)}", create=True).truncate(SEGMENT)
        self.start()
        self.assertEqual(self.store.min_position, far)


class TwiceTests(CleaningCase):
    """A log in two directories."""

    def start(self) -> None:
        """Open the store."""
        self.begin(messages=0, store_path_commit_log="/a,/b")

    def test_refused(self) -> None:
        """Two segments of one position refuse the start, and stay as they are."""
        self.start()
        self.put(1)
        self.store.close()
        self.disk.make_dirs("/b")
        self.disk.open(f"/b/{segment_name(0)}", create=True).truncate(SEGMENT)
        error = self.assertRaises(StoreError, self.start)
        paths = [f"{folder}/{segment_name(0)}" for folder in ("/a", "/b")]
        self.assertIn(
            f"two files of one position, {paths[0]} and {paths[1]}.", str(error)
        )
        self.assertTrue(all(map(self.disk.exists, paths)))

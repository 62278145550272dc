"""The files of the queues, as a start finds them."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import ENTRY
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.consumequeue.loading import MAX_MISSING, QueueLoading
from rocketbroker.store.file_names import segment_name
from rocketbroker.testing.files import MemoryDisk, MemoryFile
from tests.store.stores import QUEUE_ENTRIES, ROOT, bodies, opened, put

SIZE = 200
FOLDER = "/s/consumequeue/T/0"
QUARANTINE = "/s/consumequeue.given-up/T/0"


def entries(start: int) -> bytes:
    """A file full of them, by its first byte."""
    return b"".join(ENTRY.pack(start + 20 * n, 100, n) for n in range(10))


class QueueLoadingTests(SynchronousTestCase):
    """What is found in a queue's directory."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """A directory with four full files."""
        self.disk = MemoryDisk()
        self.disk.make_dirs(FOLDER)
        for start in range(0, 4 * SIZE, SIZE):
            self.put(start, entries(start))
        self.doubts = 0

    def path(self, start: int) -> str:
        """The path of a file."""
        return f"{FOLDER}/{segment_name(start)}"

    def put(self, start: int, content: bytes) -> None:
        """Make a file, or another of one."""
        file = self.disk.open(self.path(start), create=True)
        file.truncate(0)
        file.pwrite(content, 0)

    def distrust(self) -> None:
        """Nothing is believed any more."""
        self.doubts += 1

    def load(self, clean: bool = True, unit: int = 20) -> tuple[list[str], list[int]]:
        """What is reported, and the files that are used."""
        self.files = QueueFiles(OpenFiles(self.disk), FOLDER, SIZE)
        loading = QueueLoading(OpenFiles(self.disk), clean, self.distrust)
        loading.load([([self.files], unit)])
        return loading.report, [file.start for file in self.files.all]

    def test_sound(self) -> None:
        """Nothing is reported or changed where nothing is odd."""
        self.assertEqual(self.load(), ([], [0, SIZE, 2 * SIZE, 3 * SIZE]))
        self.assertEqual((self.doubts, self.disk.calls.get("truncate")), (0, 4))

    def test_foreign(self) -> None:
        """Files with other names are left alone, and reported; a directory that is
        called like a file would be in the way of one, and is set aside."""
        self.disk.open(f"{FOLDER}/notes.txt", create=True)
        messages, used = self.load()
        self.assertEqual((used[-1], len(messages), self.doubts), (3 * SIZE, 1, 0))
        self.disk.make_dirs(self.path(4 * SIZE))
        messages, used = self.load()
        self.assertEqual((used[-1], len(messages), self.doubts), (3 * SIZE, 2, 1))
        self.assertTrue(self.disk.is_dir(f"{QUARANTINE}/{segment_name(4 * SIZE)}"))
        self.assertIn(
            f"'{FOLDER}/notes.txt' is not a file of a consume queue; it is ignored.",
            messages,
        )

    def test_length(self) -> None:
        """A file of a wrong length is set aside, an empty one takes its place, and the
        queues are doubted."""
        for start in (0, SIZE, 3 * SIZE):
            for length in (0, 1, 20, 199, 201, 2 * SIZE, 7 * SIZE):
                self.start_over()
                content = (entries(start) * 9)[:length]
                self.put(start, content)
                messages, used = self.load()
                self.assertEqual(used, [0, SIZE, 2 * SIZE, 3 * SIZE])
                kept = f"{QUARANTINE}/{segment_name(start)}"
                self.assertIn(
                    f"{self.path(start)} has {length} bytes, not", messages[0]
                )
                self.assertIn(kept, messages[0])
                self.assertEqual(self.disk.read(kept), content)
                self.assertEqual(self.disk.read(self.path(start)), bytes(SIZE))
                self.assertTrue(self.doubts)

    def test_torn(self) -> None:
        """An empty last file after a crash was being made: no reason for doubt."""
        self.put(4 * SIZE, b"")
        self.assertEqual(len(self.load(clean=False)[0]), 1)
        self.assertEqual((self.doubts, self.disk.size(self.path(4 * SIZE))), (0, SIZE))
        self.put(SIZE, b"")
        self.load(clean=False)
        self.assertTrue(self.doubts)

    def test_oddName(self) -> None:
        """A file that begins within another one is set aside."""
        self.put(SIZE + 20, entries(7))
        messages, used = self.load()
        self.assertEqual(used, [0, SIZE, 2 * SIZE, 3 * SIZE])
        kept = f"{QUARANTINE}/{segment_name(SIZE + 20)}"
        self.assertIn(f"{self.path(SIZE + 20)} does not fit", messages[0])
        self.assertIn(kept, messages[0])
        self.assertEqual(self.disk.read(kept), entries(7))
        self.assertTrue(self.doubts)

    def test_otherSize(self) -> None:
        """Where files were made with another setting none is touched, also if one of
        them is damaged: one sentence."""
        for size in (SIZE + 20, 2 * SIZE, SIZE // 2):
            for starts in ((0, 1), (1,), (0, 1, 2, 3), (7, 8)):
                if size == 2 * SIZE and starts == (1,):
                    # One file alone, that begins where one could.
                    continue
                self.clear()
                for start in starts:
                    self.put(start * size, entries(start * size)[:20] * (size // 20))
                self.put(9 * size, b"")
                if len(starts) > 2:
                    self.put(10 * size, b"?")
                error = self.assertRaises(StoreError, self.load)
                self.assertIn("does not fit mappedFileSizeConsumeQueue", str(error))
                lengths = {size, 0, 1}
                for name in self.disk.list(FOLDER):
                    self.assertIn(self.disk.size(f"{FOLDER}/{name}"), lengths)
                self.assertEqual(self.doubts, 0)

    def clear(self) -> None:
        """Remove all files."""
        self.doubts = 0
        for name in self.disk.list(FOLDER):
            self.disk.remove(f"{FOLDER}/{name}")

    def test_gap(self) -> None:
        """Files that are missing are made, and are empty."""
        self.disk.remove(self.path(SIZE))
        self.disk.remove(self.path(2 * SIZE))
        messages, used = self.load()
        self.assertEqual(used, [0, SIZE, 2 * SIZE, 3 * SIZE])
        self.assertEqual(
            messages[0], f"{self.path(SIZE)} was missing; it is made again."
        )
        self.assertEqual(len(messages), 2)
        self.assertTrue(self.doubts)
        self.assertEqual(self.files.read(SIZE, SIZE), bytes(SIZE))

    def test_manyMissing(self) -> None:
        """What is before a great gap is set aside; so it is before any gap where units
        have no fixed places."""
        far = (4 + MAX_MISSING) * SIZE
        self.put(far, bytes(SIZE))
        self.assertEqual(len(self.load()[1]), 5 + MAX_MISSING)
        for start, unit in ((far + SIZE, 20), (5 * SIZE, 46), (5 * SIZE, 1)):
            self.start_over()
            self.put(start, bytes(SIZE))
            messages, used = self.load(unit=unit)
            self.assertEqual((used, len(messages)), ([start], 4))
            self.assertIn(
                f"before {self.path(4 * SIZE)}, which is missing", messages[0]
            )
            self.assertEqual(len(self.disk.list(QUARANTINE)), 4)
            self.assertEqual(len(self.disk.list(FOLDER)), 1)

    def test_cannotBeKept(self) -> None:
        """A file that cannot be set aside is removed; a directory gets another name,
        and is set aside when that can be done."""
        self.disk.make_dirs(f"{self.path(4 * SIZE)}/kept")
        self.disk.fail("rename", errno.EXDEV)
        name = f"{self.path(4 * SIZE)}.aside"
        self.assertIn(f"it is now {name}.", self.load()[0][0])
        self.assertTrue(self.disk.is_dir(f"{name}/kept"))
        self.load()
        self.assertTrue(self.disk.is_dir(f"{QUARANTINE}/{os.path.basename(name)}/kept"))
        self.put(SIZE + 20, b"")
        self.disk.fail("rename", errno.EXDEV)
        messages, _ = self.load()
        self.assertIn("removed, as it cannot be kept elsewhere", messages[0])
        self.assertFalse(self.disk.exists(self.path(SIZE + 20)))


class StoreTests(SynchronousTestCase):
    """A store whose few queue files have other lengths than they should."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Nothing is stored yet."""
        self.disk = MemoryDisk()

    def make(self, queues: int, count: int, clean: bool) -> None:
        """So many queues with so many messages each."""
        store = opened(self.disk)
        for number in range(queues):
            put(store, store.queue("T", number), *self.messages(count))
        store.close()
        if not clean:
            self.disk.open(f"{ROOT}/abort", create=True)

    def messages(self, count: int) -> list[bytes]:
        """So many bodies."""
        return [b"%d" % number for number in range(count)]

    def file(self, number: int = 0) -> MemoryFile:
        """The first file of a queue."""
        return self.disk.open(f"{ROOT}/consumequeue/T/{number}/{segment_name(0)}")

    def check(self, queues: int, count: int) -> None:
        """All is there, and goes on, and only the first start reports something."""
        store = opened(self.disk)
        self.assertTrue(store.report)
        for number in range(queues):
            queue = store.queue("T", number)
            self.assertEqual(bodies(store, queue), self.messages(count))
            put(store, queue, b"next")
            self.assertEqual(queue.max_offset, count + 1)
        store.close()
        self.assertEqual(opened(self.disk).report, [])

    def test_lengths(self) -> None:
        """It starts, with all messages, whichever lengths they are: in one of one
        queue, or one of three, after any stop."""
        full = QUEUE_ENTRIES * 20
        for queues in (1, 3):
            for clean in (True, False):
                for length in (full // 2, full + 7, 2 * full, 5 * full):
                    self.start_over()
                    self.make(queues, 60, clean)
                    self.file().truncate(length)
                    self.check(queues, 60)

    def test_badDisk(self) -> None:
        """So it does when the disk cannot read what stands there."""
        full = QUEUE_ENTRIES * 20
        for length, clean in ((2 * full, True), (full // 2, False), (5 * full, False)):
            self.start_over()
            self.make(1, 450, clean)
            path = f"{ROOT}/consumequeue/T/0/{segment_name(full)}"
            file = self.disk.open(path)
            file.truncate(length)
            self.disk.spoil(path, 0, length)
            if length > full:
                self.disk.remove(f"{ROOT}/consumequeue/T/0/{segment_name(2 * full)}")
            store = opened(self.disk)
            self.assertEqual(bodies(store, store.queue("T", 0)), self.messages(450))

    def test_rubbish(self) -> None:
        """So it does when anything stands in the rest."""
        full = QUEUE_ENTRIES * 20
        for rubbish in (b"?" * full, b"\xff" * 7, bytes(range(256)) * 16):
            for count in (60, 100):
                self.start_over()
                self.make(1, count, True)
                self.file().pwrite(rubbish, full)
                self.check(1, count)

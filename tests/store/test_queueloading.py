"""The files of the queues, as a start finds them."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, FILLED
from rocketbroker.store.queuefiles import QueueFiles
from rocketbroker.store.queueloading import MOST_MISSING, QueueLoading
from rocketbroker.store.segments import segment_name
from rocketbroker.testing.files import MemoryDisk

SIZE = 200
FOLDER = "/s/consumequeue/T/0"
GIVEN_UP = "/s/consumequeue.given-up/T/0"


def entries(start: int) -> bytes:
    """A file full of them, by its first byte."""
    return b"".join(ENTRY.pack(start + 20 * n, 100, n) for n in range(10))


class QueueLoadingTests(SynchronousTestCase):
    """What is found in a queue's directory."""

    def setUp(self) -> None:
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

    def doubt(self) -> None:
        """Nothing is believed any more."""
        self.doubts += 1

    def load(self, clean: bool = True, unit: int = 20) -> tuple[list[str], list[int]]:
        """What is said, and the files that are used."""
        self.files = QueueFiles(self.disk, FOLDER, SIZE)
        loading = QueueLoading(self.disk, clean, self.doubt)
        loading.load([([self.files], unit)])
        return loading.said, [file.start for file in self.files.all]

    def test_sound(self) -> None:
        """Nothing is said or changed where nothing is odd."""
        self.assertEqual(self.load(), ([], [0, SIZE, 2 * SIZE, 3 * SIZE]))
        self.assertEqual((self.doubts, self.disk.calls.get("truncate")), (0, 4))

    def test_foreign(self) -> None:
        """Files with other names are left alone, and told."""
        self.disk.open(f"{FOLDER}/notes.txt", create=True)
        self.disk.make_dirs(self.path(4 * SIZE))
        said, used = self.load()
        self.assertEqual((used[-1], len(said), self.doubts), (3 * SIZE, 2, 0))
        self.assertIn(
            f"{FOLDER}/notes.txt is not a file of a consume queue; it is ignored.", said
        )

    def test_short(self) -> None:
        """A file that is too short is extended, and its queue doubted; in the place of
        entries that are lost before others stands the one before."""
        for start in (0, SIZE, 3 * SIZE):
            for length in (0, 1, 20, 35, 199):
                self.setUp()
                self.put(start, entries(start)[:length])
                said, used = self.load()
                self.assertEqual(used, [0, SIZE, 2 * SIZE, 3 * SIZE])
                self.assertEqual(len(said), 1)
                self.assertIn(f"{self.path(start)} had {length} bytes", said[0])
                self.assertTrue(self.doubts)
                content = self.disk.read(self.path(start))
                whole = length // 20 * 20
                self.assertEqual(content[:whole], entries(start)[:whole])
                before = start + whole - 20
                filled = ENTRY.pack(before, 100, 0) if before >= 0 else FILLED
                if start == 3 * SIZE:
                    filled = bytes(20)
                self.assertEqual(content[-20:], filled)
                self.assertEqual(len(content), SIZE)

    def test_torn(self) -> None:
        """An empty last file after a crash was being made: no reason for doubt."""
        self.put(4 * SIZE, b"")
        self.assertEqual(len(self.load(clean=False)[0]), 1)
        self.assertEqual((self.doubts, self.disk.size(self.path(4 * SIZE))), (0, SIZE))
        self.put(SIZE, b"")
        self.load(clean=False)
        self.assertTrue(self.doubts)

    def test_long(self) -> None:
        """A file that is too long is cut, and its queue doubted."""
        for length in (1, 20, SIZE):
            self.setUp()
            self.put(SIZE, entries(SIZE) + b"?" * length)
            said, used = self.load()
            self.assertEqual(used, [0, SIZE, 2 * SIZE, 3 * SIZE])
            self.assertIn(f"{self.path(SIZE)} had {SIZE + length} bytes", said[0])
            self.assertTrue(self.doubts)
            self.assertEqual(self.disk.read(self.path(SIZE)), entries(SIZE))

    def test_oddName(self) -> None:
        """A file that begins within another one is set aside."""
        self.put(SIZE + 20, entries(7))
        said, used = self.load()
        self.assertEqual(used, [0, SIZE, 2 * SIZE, 3 * SIZE])
        kept = f"{GIVEN_UP}/{segment_name(SIZE + 20)}"
        self.assertIn(f"{self.path(SIZE + 20)} does not fit", said[0])
        self.assertIn(kept, said[0])
        self.assertEqual(self.disk.read(kept), entries(7))
        self.assertTrue(self.doubts)

    def test_otherSize(self) -> None:
        """Where most files were made with another setting none is touched: one
        sentence."""
        self.put(0, b"")
        for start in (SIZE, 2 * SIZE, 3 * SIZE):
            self.put(start, bytes(SIZE + 20))
        error = self.assertRaises(StoreError, self.load)
        self.assertIn("does not fit mappedFileSizeConsumeQueue", str(error))
        self.assertEqual((self.doubts, self.disk.size(self.path(0))), (0, 0))

    def test_gap(self) -> None:
        """Files that are missing are made; their entries are those before them."""
        self.disk.remove(self.path(SIZE))
        self.disk.remove(self.path(2 * SIZE))
        said, used = self.load()
        self.assertEqual(used, [0, SIZE, 2 * SIZE, 3 * SIZE])
        self.assertEqual(said[0], f"{self.path(SIZE)} was missing; it is made again.")
        self.assertEqual(len(said), 2)
        self.assertTrue(self.doubts)
        content = self.files.read(SIZE, SIZE) + self.files.read(2 * SIZE, SIZE)
        self.assertEqual(content, ENTRY.pack(SIZE - 20, 100, 0) * 20)

    def test_fullDisk(self) -> None:
        """Where there is no room for such entries they are left out."""
        self.disk.remove(self.path(SIZE))
        self.disk.fail("pwrite", errno.ENOSPC)
        self.assertEqual(len(self.load()[1]), 4)
        self.assertEqual(self.files.read(SIZE, SIZE), bytes(SIZE))

    def test_manyMissing(self) -> None:
        """What is before a great gap is set aside; so it is before any gap where units
        have no fixed places."""
        far = (4 + MOST_MISSING) * SIZE
        self.put(far, bytes(SIZE))
        self.assertEqual(len(self.load()[1]), 5 + MOST_MISSING)
        for start, unit in ((far + SIZE, 20), (5 * SIZE, 46), (5 * SIZE, 1)):
            self.setUp()
            self.put(start, bytes(SIZE))
            said, used = self.load(unit=unit)
            self.assertEqual((used, len(said)), ([start], 4))
            self.assertIn(f"before {self.path(4 * SIZE)}, which is missing", said[0])
            self.assertEqual(len(self.disk.list(GIVEN_UP)), 4)
            self.assertEqual(len(self.disk.list(FOLDER)), 1)

    def test_cannotBeKept(self) -> None:
        """What cannot be set aside is removed."""
        self.put(SIZE + 20, b"")
        self.disk.fail("rename", errno.EXDEV)
        said, _ = self.load()
        self.assertIn("removed, as it cannot be kept elsewhere", said[0])
        self.assertFalse(self.disk.exists(self.path(SIZE + 20)))

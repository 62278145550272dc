"""The files of a queue."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.store.queuefiles import QueueFiles
from rocketbroker.store.segments import segment_name
from rocketbroker.testing.files import MemoryDisk

SIZE = 200
FOLDER = "/s/consumequeue/T/0"


class LoadTests(SynchronousTestCase):
    """What is found in a queue's directory."""

    def setUp(self) -> None:
        """A directory with one full file."""
        self.disk = MemoryDisk()
        self.disk.make_dirs(FOLDER)
        self.put(segment_name(0), SIZE)

    def put(self, name: str, size: int) -> None:
        """A file of zeros."""
        self.disk.open(f"{FOLDER}/{name}", create=True).truncate(size)

    def load(self) -> tuple[list[str], list[int]]:
        """What is said, and the files that are used."""
        files = QueueFiles(self.disk, FOLDER, SIZE)
        said = files.load()
        return said, [file.start for file in files.all]

    def test_foreign(self) -> None:
        """Files with other names are left alone, and told."""
        self.put("notes.txt", 5)
        self.disk.make_dirs(f"{FOLDER}/{segment_name(SIZE)}")
        said, used = self.load()
        self.assertEqual(used, [0])
        self.assertEqual(len(said), 2)
        self.assertIn(
            f"{FOLDER}/notes.txt is not a file of a consume queue; it is ignored.", said
        )

    def test_short(self) -> None:
        """A file that a crash left short is extended."""
        self.put(segment_name(SIZE), 30)
        said, used = self.load()
        self.assertEqual(used, [0, SIZE])
        self.assertEqual(len(said), 1)
        self.assertEqual(self.disk.size(f"{FOLDER}/{segment_name(SIZE)}"), SIZE)

    def test_otherSize(self) -> None:
        """Files made with another setting are not touched: one sentence."""
        self.put(segment_name(SIZE), SIZE + 20)
        error = self.assertRaises(StoreError, self.load)
        self.assertIn("does not fit mappedFileSizeConsumeQueue", str(error))
        self.disk.remove(f"{FOLDER}/{segment_name(SIZE)}")
        self.put(segment_name(SIZE - 20), 20)
        self.assertRaises(StoreError, self.load)

    def test_gap(self) -> None:
        """Only files without a gap before the last one are used."""
        self.put(segment_name(2 * SIZE), SIZE)
        self.put(segment_name(3 * SIZE), SIZE)
        said, used = self.load()
        self.assertEqual(used, [2 * SIZE, 3 * SIZE])
        self.assertEqual(len(said), 1)


class DropTests(SynchronousTestCase):
    """Removing files from the front."""

    def setUp(self) -> None:
        """A queue of four files."""
        self.disk = MemoryDisk()
        self.files = QueueFiles(self.disk, FOLDER, SIZE)
        self.files.write(0, bytes(range(200)) * 4)

    def test_before(self) -> None:
        """Files that end at a position or before it go; the rest is as it was."""
        self.assertEqual(self.files.drop_before(SIZE - 1), 0)
        self.assertEqual(self.files.drop_before(SIZE), 1)
        self.assertEqual(self.files.drop_before(3 * SIZE - 1), 1)
        self.assertEqual(
            self.disk.list(FOLDER), [segment_name(at) for at in (2 * SIZE, 3 * SIZE)]
        )
        self.assertEqual(self.files.read(2 * SIZE + 7, 2), b"\x07\x08")
        self.assertEqual(self.files.read(0, 2), b"")

    def test_last(self) -> None:
        """The last file stays, as the queue goes on in it."""
        self.assertEqual(self.files.drop_before(100 * SIZE), 3)
        self.assertEqual(self.disk.list(FOLDER), [segment_name(3 * SIZE)])
        self.assertEqual(self.files.drop_before(100 * SIZE), 0)

"""The files of a queue."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.file_names import segment_name
from rocketbroker.testing.files import MemoryDisk

SIZE = 200
FOLDER = "/s/consumequeue/T/0"


class FlushTests(SynchronousTestCase):
    """Putting them on the disk."""

    def setUp(self) -> None:
        """A queue of three files, on the disk."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s/consumequeue")
        for folder in ("/", "/s"):
            self.disk.sync_dir(folder)
        self.files = QueueFiles(OpenFiles(self.disk), FOLDER, SIZE)
        self.files.write(0, b"x" * 3 * SIZE)
        self.files.flush(0, 3 * SIZE)

    def test_again(self) -> None:
        """When a sync has failed, what may be lost is written again before the next
        one; what is behind the queue's end is not touched, as it may be written
        now."""
        self.files.write(2 * SIZE, b"y" * SIZE)
        self.disk.fail("datasync", errno.EIO)
        self.assertRaises(OSError, self.files.flush, 0, 3 * SIZE)
        written = self.disk.calls["pwrite"]
        self.files.flush(0, 2 * SIZE + 20)
        self.assertEqual(self.disk.calls["pwrite"], written + 1)
        self.assertEqual(self.disk.image().read(self.files.all[-1].path), b"y" * SIZE)
        self.files.write(2 * SIZE, b"z")
        self.files.flush(0, 3 * SIZE)
        self.assertEqual(self.disk.calls["pwrite"], written + 2)

    def test_removed(self) -> None:
        """What was cut does not come back with a power failure after the next
        flush."""
        self.files.cut(SIZE)
        self.assertEqual(len(self.disk.image().list(FOLDER)), 3)
        self.files.flush(0, SIZE)
        self.assertEqual(self.disk.image().list(FOLDER), [segment_name(0)])


class ClosedTests(SynchronousTestCase):
    """A file that is closed."""

    def test_closedFileIsNotOpenedAgain(self) -> None:
        """Who has found it before does not get the file that has its name now."""
        open_files = OpenFiles(MemoryDisk())
        files = QueueFiles(open_files, FOLDER, SIZE)
        files.write(0, b"x" * SIZE)
        (before,) = files.all
        files.forget()
        files.write(0, b"y" * SIZE)
        self.assertRaises(FileNotFoundError, before.pread, 1, 0)
        self.assertRaises(FileNotFoundError, before.sync, SIZE)
        self.assertEqual((files.read(0, 1), len(open_files)), (b"y", 1))


class EndTests(SynchronousTestCase):
    """What stands behind the end of a queue."""

    def setUp(self) -> None:
        """A file with two entries."""
        self.disk = MemoryDisk()
        self.files = QueueFiles(OpenFiles(self.disk), FOLDER, SIZE)
        self.files.write(0, b"x" * 40)

    def test_zeros(self) -> None:
        """That zeros follow is seen once; then nothing is read to see or to cut it."""
        self.assertTrue(self.files.ends_at(40))
        self.disk.calls.clear()
        self.assertTrue(self.files.ends_at(40))
        self.files.cut(40)
        self.assertEqual(self.disk.calls, {})
        for position in (0, 39, SIZE, -1):
            self.assertFalse(self.files.ends_at(position), position)

    def test_written(self) -> None:
        """What is written behind it is seen and cut."""
        self.assertTrue(self.files.ends_at(40))
        self.files.write(40, b"y" * 20)
        self.assertFalse(self.files.ends_at(40))
        self.files.cut(40)
        self.assertEqual(self.files.read(0, SIZE), b"x" * 40 + bytes(SIZE - 40))

    def test_unreadable(self) -> None:
        """Where the disk cannot read, nothing is known."""
        self.disk.spoil(self.files.all[0].path, 100, 101)
        self.assertFalse(self.files.ends_at(40))


class DropTests(SynchronousTestCase):
    """Removing files from the front."""

    def setUp(self) -> None:
        """A queue of four files."""
        self.disk = MemoryDisk()
        self.open_files = OpenFiles(self.disk)
        self.files = QueueFiles(self.open_files, FOLDER, SIZE)
        self.files.write(0, bytes(range(200)) * 4)

    def test_before(self) -> None:
        """Files that end at a position or before it go, and are closed; the rest is as
        it was."""
        self.assertEqual(self.files.drop_before(SIZE - 1), 0)
        self.assertEqual(self.files.drop_before(SIZE), 1)
        self.assertEqual(self.files.drop_before(3 * SIZE - 1), 1)
        self.assertEqual(
            self.disk.list(FOLDER), [segment_name(at) for at in (2 * SIZE, 3 * SIZE)]
        )
        self.assertEqual(self.files.read(2 * SIZE + 7, 2), b"\x07\x08")
        self.assertEqual(self.files.read(0, 2), b"")
        self.assertEqual(len(self.open_files), 2)
        self.files.drop(1)
        self.assertEqual(len(self.open_files), 1)

    def test_last(self) -> None:
        """The last file stays, as the queue goes on in it."""
        self.assertEqual(self.files.drop_before(100 * SIZE), 3)
        self.assertEqual(self.disk.list(FOLDER), [segment_name(3 * SIZE)])
        self.assertEqual(self.files.drop_before(100 * SIZE), 0)

    def test_cut(self) -> None:
        """Nothing follows a position, however far behind it something stands, and in
        the rest of its block."""
        size = 4 * BLOCK
        for behind in (30, BLOCK - 1, BLOCK, 3 * BLOCK):
            files = QueueFiles(OpenFiles(self.disk), f"/s/cut/{behind}", size)
            files.write(0, b"x" * 20)
            files.write(behind, b"y")
            files.cut(20)
            self.assertEqual(files.read(0, size), (b"x" * 20).ljust(size, b"\0"))

    def test_removed(self) -> None:
        """One that is removed before its flush, as its topic is deleted, keeps no other
        from it."""
        self.files.all[0].close()
        self.disk.remove(self.files.all[0].path)
        self.assertEqual(self.files.flush(0, 4 * SIZE), 4)
        self.assertEqual(self.disk.calls["datasync"], 3)

"""The open files of a store."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import MAX_BOUND, MIN_BOUND, OpenFiles, bound_of
from rocketbroker.testing.files import MemoryDisk


class OpenFilesTests(SynchronousTestCase):
    """Three of them at once, of files named by letters, each of which holds its
    name."""

    def setUp(self) -> None:
        """A disk with some."""
        self.disk = MemoryDisk()
        for name in "abcdefgh":
            file = self.disk.open(f"/{name}", create=True)
            file.pwrite(name.encode(), 0)
            file.close()
        self.open_files = OpenFiles(self.disk, 3)
        self.disk.calls.clear()

    def read(self, names: str) -> str:
        """Read files, one by one; the letters in them."""
        return b"".join(
            self.open_files.get(name, f"/{name}").pread(1, 0) for name in names
        ).decode()

    def opened(self) -> int:
        """How often a file was opened."""
        return self.disk.calls.get("open", 0)

    def test_bound(self) -> None:
        """However many are used, no more than the bound are open."""
        self.assertEqual(self.read("abcdefgh"), "abcdefgh")
        self.assertEqual((len(self.open_files), self.disk.open_files), (3, 3))

    def test_lastUsed(self) -> None:
        """Those used last stay open."""
        self.read("abcad")
        self.assertEqual(self.opened(), 4)
        self.read("cad")
        self.assertEqual(self.opened(), 4)
        self.read("b")
        self.assertEqual(self.opened(), 5)

    def test_opened(self) -> None:
        """To look for an open file is no use of it."""
        self.read("abc")
        self.assertEqual(self.open_files.opened("a"), self.open_files.get("a", "/a"))
        self.assertIsNotNone(self.open_files.opened("b"))
        self.read("d")
        self.assertIsNone(self.open_files.opened("b"))
        self.assertEqual(self.opened(), 4)

    def test_inUse(self) -> None:
        """One that is let go while somebody uses it is closed when he is done; what he
        wrote is put on the disk by another descriptor."""
        file = self.open_files.get("a", "/a")
        self.read("bcd")
        self.assertEqual(self.disk.open_files, 4)
        file.pwrite(b"x", 0)
        del file
        self.assertEqual(self.disk.open_files, 3)
        self.open_files.get("a", "/a").datasync()
        self.disk.sync_dir("/")
        self.assertEqual(self.disk.image().read("/a"), b"x")

    def test_dropped(self) -> None:
        """A file without an owner is closed; the owner's next one is another."""
        self.read("ab")
        self.open_files.drop("a")
        self.open_files.drop("h")
        self.assertEqual(self.disk.open_files, 1)
        self.disk.rename("/h", "/a")
        self.assertEqual(self.read("a"), "h")

    def test_put(self) -> None:
        """One that was just opened takes the place of the owner's other one."""
        self.read("abc")
        self.open_files.put("a", self.open_files.open("/new", create=True))
        self.assertEqual(self.disk.open_files, 3)
        self.assertEqual(self.read("a"), "")

    def test_exhausted(self) -> None:
        """Where all descriptors are taken, half of the files are let go for one that
        is needed; without any it is refused."""
        self.read("ab")
        self.disk.max_open = 2
        self.assertEqual(self.read("cb"), "cb")
        self.assertEqual((len(self.open_files), self.opened()), (2, 4))
        self.disk.max_open = 0
        self.open_files.drop("b")
        self.open_files.drop("c")
        error = self.assertRaises(OSError, self.open_files.get, "d", "/d")
        self.assertEqual(error.errno, errno.EMFILE)

    def test_readOnly(self) -> None:
        """Where the file system can only be read any more, a file is opened for that;
        it is not kept, as it could not be written to later."""
        self.disk.fail("open", errno.EROFS)
        file = self.open_files.get_to_read("a", "/a")
        self.assertEqual(file.pread(1, 0), b"a")
        del file
        self.assertEqual(self.disk.open_files, 0)
        self.open_files.get("a", "/a").pwrite(b"x", 0)
        self.disk.fail("open", errno.EACCES)
        self.assertRaises(OSError, self.open_files.get_to_read, "b", "/b")


class BoundTests(SynchronousTestCase):
    """The bound from the limit of descriptors."""

    def test_bound(self) -> None:
        """It is an eighth, and neither so few that each use opens a file, nor more than
        help."""
        self.assertEqual(bound_of(1024), 128)
        self.assertEqual(bound_of(64), MIN_BOUND)
        self.assertEqual(bound_of(1 << 30), MAX_BOUND)
        self.assertEqual(bound_of(-1), MAX_BOUND)

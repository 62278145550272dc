"""The disk in memory: the same as the real one, and what only it can do."""

from __future__ import annotations

import errno
import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.files.interfaces import IFiles
from rocketbroker.testing.contracts.files import FilesContract
from rocketbroker.testing.files import MemoryDisk


class MemoryContractTests(FilesContract, SynchronousTestCase):
    """The contract."""

    def make(self) -> tuple[IFiles, str]:
        """A new disk with one directory."""
        disk = MemoryDisk()
        disk.make_dirs("/root")
        return disk, "/root"


class FaultTests(SynchronousTestCase):
    """Full disks, failing calls, crashes."""

    def setUp(self) -> None:
        """A disk with a directory that has been synced."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/d")
        self.disk.sync_dir("/")

    def test_full(self) -> None:
        """On a full disk a write fails, after what there was room for."""
        self.disk.capacity = 2 * BLOCK
        file = self.disk.open("/d/a", create=True)
        error = self.assertRaises(OSError, file.pwrite, b"x" * 3 * BLOCK, 10)
        self.assertEqual(error.errno, errno.ENOSPC)
        self.assertEqual(file.size(), 2 * BLOCK)
        self.assertEqual(self.disk.usage("/d"), (2 * BLOCK, 0))
        file.pwrite(b"y" * BLOCK, 0)
        error = self.assertRaises(OSError, file.allocate, 0, 3 * BLOCK)
        self.assertEqual(error.errno, errno.ENOSPC)
        self.disk.capacity = 4 * BLOCK
        file.allocate(0, 3 * BLOCK)
        self.assertEqual(self.disk.used(), 3 * BLOCK)
        self.disk.remove("/d/a")
        self.assertEqual(self.disk.used(), 0)

    def test_image(self) -> None:
        """What a crash would leave is another disk; neither changes the other."""
        file = self.disk.open("/d/a", create=True)
        file.pwrite(b"one", 0)
        file.datasync()
        self.disk.sync_dir("/d")
        file.pwrite(b"two", 0)
        lost, kept = self.disk.image(), self.disk.image(keep_all=True)
        self.assertEqual((lost.read("/d/a"), kept.read("/d/a")), (b"one", b"two"))
        lost.open("/d/a").pwrite(b"new", 0)
        file.pwrite(b"3rd", 0)
        self.assertEqual(self.disk.read("/d/a"), b"3rd")
        self.assertEqual((lost.read("/d/a"), kept.read("/d/a")), (b"new", b"two"))

    def test_directoryAgain(self) -> None:
        """A directory that was removed and made again is empty after a crash."""
        self.disk.make_dirs("/d/e")
        self.disk.open("/d/e/a", create=True)
        for folder in ("/d/e", "/d"):
            self.disk.sync_dir(folder)
        self.disk.remove("/d/e/a")
        self.disk.remove_dir("/d/e")
        self.assertTrue(self.disk.image().exists("/d/e/a"))
        self.disk.make_dirs("/d/e")
        self.disk.sync_dir("/d")
        self.assertEqual(self.disk.image().list("/d/e"), [])

    def test_sparse(self) -> None:
        """A file that was only extended takes no blocks."""
        self.disk.capacity = BLOCK
        file = self.disk.open("/d/a", create=True)
        file.truncate(100 * BLOCK)
        file.pwrite(b"x", 50 * BLOCK)
        self.assertRaises(OSError, file.pwrite, b"x", 51 * BLOCK)

    def test_fail(self) -> None:
        """The call that was asked for fails, as often as asked for."""
        file = self.disk.open("/d/a", create=True)
        self.disk.fail("datasync", errno.EIO, after=1, times=2)
        file.datasync()
        for _ in range(2):
            error = self.assertRaises(OSError, file.datasync)
            self.assertEqual(error.errno, errno.EIO)
        file.datasync()
        self.assertEqual(self.disk.calls["datasync"], 4)

    def test_spoil(self) -> None:
        """What is spoiled cannot be read, and all else can; healed, it can again."""
        file = self.disk.open("/d/a", create=True)
        file.pwrite(b"0123456789", 0)
        self.disk.spoil("/d/a", 4, 6)
        for position, size in ((0, 10), (0, 5), (5, 1), (5, 10)):
            error = self.assertRaises(OSError, file.pread, size, position)
            self.assertEqual(error.errno, errno.EIO)
        self.assertRaises(OSError, self.disk.read, "/d/a")
        self.assertEqual((file.pread(4, 0), file.pread(9, 6)), (b"0123", b"6789"))
        self.disk.heal()
        self.assertEqual(self.disk.read("/d/a"), b"0123456789")

    def test_overwriteSpoiled(self) -> None:
        """Whole blocks that are written anew can be read; who writes or cuts within
        one is refused, and nothing has changed."""
        file = self.disk.open("/d/a", create=True)
        file.pwrite(b"0" * 4 * BLOCK, 0)
        self.disk.spoil("/d/a", BLOCK + 9, 3 * BLOCK)
        for write in (
            lambda: file.pwrite(b"1", BLOCK),
            lambda: file.pwrite(b"1" * BLOCK, 2 * BLOCK + 1),
            lambda: file.truncate(BLOCK + 1),
        ):
            error = self.assertRaises(OSError, write)
            self.assertEqual(error.errno, errno.EIO)
        file.pwrite(b"1" * BLOCK, BLOCK)
        self.assertEqual(file.pread(BLOCK, BLOCK), b"1" * BLOCK)
        self.assertRaises(OSError, file.pread, 1, 2 * BLOCK)
        self.disk.crash(keep_all=True)
        file = self.disk.open("/d/a")
        self.assertRaises(OSError, file.pread, 1, 2 * BLOCK)
        file.truncate(2 * BLOCK)
        file.truncate(3 * BLOCK)
        self.assertEqual(file.pread(BLOCK, 2 * BLOCK), bytes(BLOCK))

    def test_crashLosesContent(self) -> None:
        """What was not synced is not there after a crash."""
        file = self.disk.open("/d/a", create=True)
        file.pwrite(b"old" + bytes(BLOCK) + b"old", 0)
        file.datasync()
        self.disk.sync_dir("/d")
        file.pwrite(b"new", 0)
        file.truncate(10)
        self.disk.crash()
        self.assertEqual(self.disk.read("/d/a"), b"old" + bytes(BLOCK) + b"old")
        self.assertRaises(OSError, file.pread, 1, 0)

    def test_crashLosesNames(self) -> None:
        """A name that the directory was not synced with is lost; a removed one is
        back."""
        for name in ("a", "b"):
            file = self.disk.open(f"/d/{name}", create=True)
            file.pwrite(name.encode(), 0)
            file.datasync()
            if name == "a":
                self.disk.sync_dir("/d")
        self.disk.remove("/d/a")
        self.disk.crash()
        self.assertEqual(self.disk.list("/d"), ["a"])
        self.assertEqual(self.disk.read("/d/a"), b"a")

    def test_crashLosesDirectories(self) -> None:
        """A directory whose parent was not synced is lost with all in it."""
        self.disk.make_dirs("/d/e")
        file = self.disk.open("/d/e/a", create=True)
        file.datasync()
        self.disk.sync_dir("/d/e")
        self.disk.crash()
        self.assertEqual(self.disk.list("/d"), [])
        self.assertFalse(self.disk.exists("/d/e/a"))

    def test_crashKeepsAll(self) -> None:
        """When only the processes die, all that was written stays; when the machine
        stops then, what was not synced is lost all the same."""
        file = self.disk.open("/d/a", create=True)
        file.pwrite(b"x", BLOCK)
        self.disk.crash(keep_all=True)
        self.assertEqual(self.disk.read("/d/a"), bytes(BLOCK) + b"x")
        self.assertFalse(self.disk.image().exists("/d/a"))
        self.disk.sync_dir("/d")
        self.assertEqual(self.disk.image().read("/d/a"), b"")
        self.disk.open("/d/a").datasync()
        self.disk.remove("/d/a")
        self.disk.crash(keep_all=True)
        self.assertEqual(self.disk.list("/d"), [])
        self.assertEqual(self.disk.image().read("/d/a"), bytes(BLOCK) + b"x")

    def test_crashTears(self) -> None:
        """With luck, some of the blocks are new and some are old."""
        seen = set()
        for seed in range(40):
            disk = MemoryDisk()
            file = disk.open("/a", create=True)
            file.pwrite(b"o" * 3 * BLOCK, 0)
            file.datasync()
            disk.sync_dir("/")
            file.pwrite(b"n" * 3 * BLOCK, 0)
            disk.crash(random.Random(seed))
            content = disk.read("/a")
            self.assertEqual(len(content), 3 * BLOCK)
            blocks = [content[at : at + BLOCK] for at in range(0, 3 * BLOCK, BLOCK)]
            self.assertTrue(all(len(set(block)) == 1 for block in blocks))
            seen.add(bytes(block[0] for block in blocks))
        self.assertEqual(len(seen), 8)

    def test_crashTearsNames(self) -> None:
        """With luck, a directory is as it was synced, or as it was last."""
        seen = set()
        for seed in range(20):
            disk = MemoryDisk()
            disk.open("/a", create=True).close()
            disk.sync_dir("/")
            disk.rename("/a", "/b")
            disk.crash(random.Random(seed))
            seen.add(tuple(disk.list("/")))
        self.assertEqual(seen, {("a",), ("b",)})

    def test_open(self) -> None:
        """Open files are counted until they are closed, or nobody has them, or all
        processes die; with as many as allowed no other is opened."""
        self.disk.max_open = 2
        first = self.disk.open("/d/a", create=True)
        second = self.disk.open_readonly("/d/a")
        error = self.assertRaises(OSError, self.disk.open, "/d/a")
        self.assertEqual(error.errno, errno.EMFILE)
        del second
        first.close()
        first.close()
        self.assertEqual(self.disk.open_files, 0)
        third = self.disk.open("/d/a")
        self.disk.crash(keep_all=True)
        third.close()
        self.assertEqual(self.disk.open_files, 0)

    def test_lock(self) -> None:
        """Another opening does not get the lock before it is released."""
        first = self.disk.open("/d/lock", create=True)
        second = self.disk.open("/d/lock")
        self.assertTrue(first.lock())
        self.assertFalse(second.lock())
        first.close()
        self.assertTrue(second.lock())
        self.disk.crash(keep_all=True)
        self.assertTrue(self.disk.open("/d/lock").lock())

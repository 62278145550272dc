"""A disk of which some blocks cannot be read."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.reader.unreadable import ReadFiles
from rocketbroker.testing.files import MemoryDisk

PATH = "/file"
SIZE = 10 * BLOCK + 100


class UnreadableTests(SynchronousTestCase):
    """A file of ten blocks and a bit."""

    def setUp(self) -> None:
        """Write it."""
        self.disk = MemoryDisk()
        file = self.disk.open(PATH, create=True)
        self.content = bytes(range(1, 251)) * (SIZE // 250 + 1)
        self.content = self.content[:SIZE]
        file.pwrite(self.content, 0)
        file.close()
        self.files = ReadFiles(self.disk)

    def without(self, *blocks: int) -> bytes:
        """The content, with zeros in some blocks."""
        content = bytearray(self.content)
        for block in blocks:
            end = min(SIZE, (block + 1) * BLOCK)
            content[block * BLOCK : end] = bytes(end - block * BLOCK)
        return bytes(content)

    def test_good(self) -> None:
        """What can be read is read as it is, with one call."""
        file = self.files.open_readonly(PATH)
        before = self.disk.calls.get("pread", 0)
        self.assertEqual(file.pread(2 * SIZE, 0), self.content)
        self.assertEqual(self.disk.calls["pread"] - before, 1)
        self.assertEqual((self.files.taken(), self.files.is_bad), ([], False))

    def test_blocks(self) -> None:
        """One bad byte makes its block zeros, and no other, from wherever one reads;
        neighbours are told as one."""
        bad = 3 * BLOCK + 7, 4 * BLOCK + 9, 10 * BLOCK + 99
        for at in bad:
            self.disk.spoil(PATH, at, at + 1)
        wanted = self.without(3, 4, 10)
        for start in (0, 1, BLOCK, 3 * BLOCK, 3 * BLOCK + 100, 5 * BLOCK - 1):
            for size in (1, 100, BLOCK, 3 * BLOCK + 1, SIZE):
                files = ReadFiles(self.disk)
                data = files.open_readonly(PATH).pread(size, start)
                end = min(SIZE, start + size)
                self.assertEqual(len(data), end - start)
                for at in range(start, end):
                    if data[at - start] != self.content[at]:
                        self.assertEqual(data[at - start], wanted[at])
        file = self.files.open_readonly(PATH)
        self.assertEqual(file.pread(SIZE, 0), wanted)
        found = [
            (each.path, each.start, each.end, each.why) for each in self.files.taken()
        ]
        why = "Input/output error"
        self.assertEqual(
            found,
            [(PATH, 3 * BLOCK, 5 * BLOCK, why), (PATH, 10 * BLOCK, SIZE, why)],
        )

    def test_once(self) -> None:
        """What cannot be read is told once, however often it is read."""
        self.disk.spoil(PATH, BLOCK, 2 * BLOCK + 1)
        for _ in range(2):
            data = self.files.open_readonly(PATH).pread(SIZE, 0)
            self.assertEqual(data, self.without(1, 2))
        self.assertEqual(len(self.files.taken()), 1)
        self.assertEqual((self.files.taken(), self.files.is_bad), ([], True))
        self.assertEqual(self.files.why(PATH, 0, BLOCK), "")
        self.assertEqual(self.files.why(PATH, BLOCK - 1, 2), "Input/output error")

    def test_behind(self) -> None:
        """A file can be read as if it were longer."""
        self.disk.spoil(PATH, BLOCK, BLOCK + 1)
        file = self.files.open_readonly(PATH)
        file.length = SIZE + 1000
        self.assertEqual(file.pread(2 * SIZE, 0), self.without(1) + bytes(1000))
        self.assertEqual(file.pread(10, SIZE + 995), bytes(5))
        self.assertEqual(file.pread(10, SIZE + 2000), b"")

    def test_refused(self) -> None:
        """What cannot be opened is a sentence with its name; what is gone is gone."""
        self.disk.fail("open_readonly", errno.EACCES)
        error = self.assertRaises(StoreError, self.files.open_readonly, PATH)
        self.assertEqual(str(error), "/file cannot be read: Permission denied.")
        self.disk.heal()
        self.disk.spoil(PATH, 0, 1)
        error = self.assertRaises(StoreError, self.files.read, PATH)
        self.assertEqual(str(error), "/file cannot be read: Input/output error.")
        self.assertRaises(FileNotFoundError, self.files.open_readonly, "/other")

    def test_nothingWritten(self) -> None:
        """Who reads writes nothing."""
        file = self.files.open_readonly(PATH)
        for refused in (
            lambda: self.files.open(PATH, create=True),
            lambda: self.files.make_dirs("/new"),
            lambda: self.files.remove(PATH),
            lambda: self.files.remove_dir("/"),
            lambda: self.files.rename(PATH, "/new"),
            lambda: self.files.sync_dir("/"),
            lambda: file.pwrite(b"x", 0),
            lambda: file.allocate(0, 1),
            lambda: file.truncate(0),
            file.datasync,
            file.lock,
        ):
            error = self.assertRaises(OSError, refused)
            self.assertEqual(error.errno, errno.EROFS)
        self.assertEqual(self.disk.read(PATH), self.content)

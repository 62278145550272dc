"""A disk of which some blocks cannot be read."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.reader.unreadable import Unread, Unreadable
from rocketbroker.testing.files import MemoryDisk

PATH = "/file"
SIZE = 10 * BLOCK + 100
WHY = "Input/output error"


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
        self.unread = Unreadable()

    def without(self, *blocks: int) -> bytes:
        """The content, with zeros in some blocks."""
        content = bytearray(self.content)
        for block in blocks:
            end = min(SIZE, (block + 1) * BLOCK)
            content[block * BLOCK : end] = bytes(end - block * BLOCK)
        return bytes(content)

    def pread(self, size: int, position: int) -> bytes:
        """Read as a file of the log."""
        file = self.disk.open_readonly(PATH)
        return self.unread.pread(PATH, file, size, position)

    def read(self) -> bytes:
        """Read as any other file."""
        with self.unread.naming(PATH):
            return self.disk.read(PATH)

    def test_good(self) -> None:
        """What can be read is read as it is, with one call."""
        before = self.disk.calls.get("pread", 0)
        self.assertEqual(self.pread(2 * SIZE, 0), self.content)
        self.assertEqual(self.disk.calls["pread"] - before, 1)
        self.assertEqual((self.unread.taken(), self.unread.is_bad), ([], False))

    def test_blocks(self) -> None:
        """Bad blocks of the log are zeros, and no others; neighbours are noted as
        one."""
        for block in (3, 4, 10):
            start = block * BLOCK
            self.disk.spoil(PATH, start, min(start + BLOCK, SIZE))
        wanted = self.without(3, 4, 10)
        for start in (0, 1, BLOCK, 3 * BLOCK, 3 * BLOCK + 100, 5 * BLOCK - 1):
            for size in (1, 100, BLOCK, 3 * BLOCK + 1, SIZE):
                found = self.pread(size, start)
                self.assertEqual(found, wanted[start : start + size])
        self.unread = Unreadable()
        self.assertEqual(self.pread(SIZE, 0), wanted)
        self.assertEqual(
            self.unread.taken(),
            [
                Unread(PATH, 3 * BLOCK, 5 * BLOCK, WHY),
                Unread(PATH, 10 * BLOCK, SIZE, WHY),
            ],
        )

    def test_once(self) -> None:
        """What cannot be read is noted once, however often it is read."""
        self.disk.spoil(PATH, BLOCK, 3 * BLOCK)
        for _ in range(2):
            self.assertEqual(self.pread(SIZE, 0), self.without(1, 2))
        self.assertEqual(len(self.unread.taken()), 1)
        self.assertEqual((self.unread.taken(), self.unread.is_bad), ([], True))
        self.assertEqual(self.unread.why(PATH, 0, BLOCK), "")
        self.assertEqual(self.unread.why(PATH, BLOCK - 1, 2), WHY)

    def test_whole(self) -> None:
        """Any other file is bad as a whole: one sentence, also where the disk could
        read it later; it is noted once."""
        self.disk.spoil(PATH, 0, 1)
        for _ in range(2):
            error = self.assertRaises(StoreError, self.read)
            self.assertEqual(str(error), f"/file cannot be read: {WHY}.")
            self.disk.open(PATH).pwrite(self.content, 0)
        self.assertEqual(self.unread.taken(), [Unread(PATH, 0, 0, WHY)])
        self.assertTrue(self.unread.is_bad)

    def test_refused(self) -> None:
        """What cannot be opened is a sentence with its name; what is gone is gone."""
        self.disk.fail("read", errno.EACCES)
        error = self.assertRaises(StoreError, self.read)
        self.assertEqual(str(error), "/file cannot be read: Permission denied.")
        self.disk.heal()
        self.unread = Unreadable()
        self.disk.remove(PATH)
        self.assertRaises(FileNotFoundError, self.read)

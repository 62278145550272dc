"""Reading around blocks that a disk cannot read."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK, around, is_bad, pieces
from rocketbroker.testing.files import MemoryDisk


class PiecesTests(SynchronousTestCase):
    """A file of three blocks and a half."""

    def setUp(self) -> None:
        """Write it."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/d")
        self.file = self.disk.open("/d/a", create=True)
        self.file.pwrite(b"a" * BLOCK + b"b" * BLOCK + b"c" * BLOCK + b"d" * 100, 0)

    def read(self, size: int, position: int) -> list[tuple[int, bytes, int]]:
        """The pieces, and how long each is; those that could not be read below 0."""
        return [
            (where, piece[:1], len(piece) if error is None else -len(piece))
            for where, piece, error in pieces(self.file, size, position)
        ]

    def test_good(self) -> None:
        """What can be read is one piece, up to the end of the file."""
        self.assertEqual(self.read(20, 4090), [(4090, b"a", 20)])
        self.assertEqual(self.read(1 << 20, BLOCK), [(BLOCK, b"b", 2 * BLOCK + 100)])

    def test_bad(self) -> None:
        """Where it was refused, each block is a piece, the bad one zeros; it is not
        tried more than twice."""
        self.disk.spoil("/d/a", BLOCK, 2 * BLOCK)
        before = self.disk.calls.get("pread", 0)
        self.assertEqual(
            self.read(1 << 20, 10),
            [
                (10, b"a", BLOCK - 10),
                (BLOCK, b"\0", -BLOCK),
                (2 * BLOCK, b"c", BLOCK),
                (3 * BLOCK, b"d", 100),
            ],
        )
        self.assertEqual(self.disk.calls["pread"] - before, 5)

    def test_around(self) -> None:
        """All of it at once is as long as what there is, also where the last block is
        bad, or a part of one is asked for."""
        content = self.disk.read("/d/a")
        for block in range(4):
            self.disk.heal()
            start, end = block * BLOCK, min((block + 1) * BLOCK, len(content))
            self.disk.spoil("/d/a", start, end)
            wanted = content[:start] + bytes(end - start) + content[end:]
            for at in (0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 99, 3 * BLOCK + 100):
                for size in (1, 7, BLOCK, 2 * BLOCK + 1, 5 * BLOCK):
                    found = around(self.file, size, at)
                    self.assertEqual(found, wanted[at : at + size])

    def test_other(self) -> None:
        """What is not the fault of some blocks is raised."""
        self.file.close()
        error = self.assertRaises(OSError, self.read, 1, 0)
        self.assertEqual(error.errno, errno.EBADF)

    def test_otherFirst(self) -> None:
        """Then nothing is read block by block."""
        self.disk.fail("pread", errno.ENOMEM)
        before = self.disk.calls.get("pread", 0)
        error = self.assertRaises(OSError, self.read, 1 << 20, 0)
        self.assertEqual(error.errno, errno.ENOMEM)
        self.assertEqual(self.disk.calls["pread"] - before, 1)

    def test_otherAfterwards(self) -> None:
        """So is what befalls a block behind a bad one: it is not told as zeros."""
        self.disk.spoil("/d/a", BLOCK, 2 * BLOCK)
        self.disk.fail("pread", errno.ENOMEM, after=3)
        error = self.assertRaises(OSError, self.read, 1 << 20, 0)
        self.assertEqual(error.errno, errno.ENOMEM)

    def test_isBad(self) -> None:
        """A range is bad if a block is of which it has a byte, wherever in it."""
        self.disk.spoil("/d/a", 2 * BLOCK + 7, 2 * BLOCK + 8)
        for size, at, wanted in (
            (1, 2 * BLOCK - 1, False),
            (2, 2 * BLOCK - 1, True),
            (1, 2 * BLOCK, True),
            (1, 3 * BLOCK - 1, True),
            (1, 3 * BLOCK, False),
            (50, 3 * BLOCK + 10, False),
            (4 * BLOCK, 0, True),
            (2 * BLOCK, 0, False),
        ):
            self.assertEqual(is_bad(self.file, size, at), wanted, (size, at))

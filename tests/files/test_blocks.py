"""Reading around blocks that a disk cannot read."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK, pieces
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
        """The pieces, and how long each is."""
        return [
            (where, piece[:1], errno.EIO if error is not None else len(piece))
            for where, piece, error in pieces(self.file, size, position)
        ]

    def test_good(self) -> None:
        """What can be read is one piece, up to the end of the file."""
        self.assertEqual(self.read(20, 4090), [(4090, b"a", 20)])
        self.assertEqual(self.read(1 << 20, BLOCK), [(BLOCK, b"b", 2 * BLOCK + 100)])

    def test_bad(self) -> None:
        """Where it was refused, each block is a piece, the bad one nothing; it is not
        tried more than twice."""
        self.disk.spoil("/d/a", BLOCK, 2 * BLOCK)
        before = self.disk.calls.get("pread", 0)
        self.assertEqual(
            self.read(1 << 20, 10),
            [
                (10, b"a", BLOCK - 10),
                (BLOCK, b"", errno.EIO),
                (2 * BLOCK, b"c", BLOCK),
                (3 * BLOCK, b"d", 100),
            ],
        )
        self.assertEqual(self.disk.calls["pread"] - before, 5)

    def test_other(self) -> None:
        """What is not the fault of some blocks is raised."""
        self.file.close()
        error = self.assertRaises(OSError, self.read, 1, 0)
        self.assertEqual(error.errno, errno.EBADF)

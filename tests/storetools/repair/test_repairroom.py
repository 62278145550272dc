"""How much room a repair needs."""

from __future__ import annotations

from rocketbroker.errors import StoreError
from rocketbroker.storetools.repair.repairroom import LINE, RESERVE, room_of_patches
from rocketbroker.storetools.repair.stopgaps import StopGaps
from rocketbroker.testing.files import MemoryDisk
from tests.store.repairs import LOG, QUEUE, DamagedStore
from tests.store.stores import SEGMENT


class RoomTests(DamagedStore):
    """A small store, and a disk that is nearly full."""

    def leave(self, size: int) -> None:
        """Let so much be free."""
        self.disk.capacity = self.disk.used() + size

    def test_small(self) -> None:
        """For a small store little is needed beside the reserve."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        self.leave(RESERVE)
        error = self.assertRaises(StoreError, self.repair)
        self.assertIn("needs 16 MiB", str(error))
        self.leave(RESERVE + (1 << 20))
        self.repair()
        self.expect_lost(7)

    def test_madeAgain(self) -> None:
        """What is made again needs what it had before."""
        self.change(QUEUE, 20, bytes(20))
        file = self.disk.open(QUEUE)
        file.truncate(100 << 20)
        file.close()
        self.leave(RESERVE + (99 << 20))
        self.assertRaises(StoreError, self.repair)
        self.leave(RESERVE + (101 << 20))
        self.repair(left=None)

    def test_patches(self) -> None:
        """Of what is changed a copy; of new files the blocks that are written."""
        disk = MemoryDisk()
        disk.make_dirs("/log")
        gaps = StopGaps(disk, SEGMENT)
        patches = [
            (position, b"b" * 100)
            for position in (10, SEGMENT, SEGMENT + 200, 2 * SEGMENT - 50, 3 * SEGMENT)
        ]
        self.assertEqual(room_of_patches(patches, gaps), 5 * (100 + LINE))
        gaps.make([(SEGMENT, 2 * SEGMENT, "/log")])
        size = 2 * (100 + LINE) + 3 * 4096
        self.assertEqual(room_of_patches(patches, gaps), size)

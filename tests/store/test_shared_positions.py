"""The shared words."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.shared_positions import (
    ABORT_MS,
    FIRST_SIZE,
    FIRST_SLOT,
    MAX,
    OWNER,
    POSITIONS_NAME,
    PUBLISHED,
    QUEUES,
    SLOT_WORDS,
    ReadOnlyPositions,
    SharedPositions,
)
from rocketbroker.testing.files import MemoryDisk


class SharedPositionsTests(SynchronousTestCase):
    """Writing, reading by another, growing."""

    def setUp(self) -> None:
        """Words in a directory."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.positions = SharedPositions(self.disk, "/s")

    def reader(self) -> ReadOnlyPositions:
        """As another process opens them."""
        return ReadOnlyPositions(self.disk.open_readonly(f"/s/{POSITIONS_NAME}"))

    def test_seenByOthers(self) -> None:
        """A number that is set is seen through another mapping, whole."""
        reader = self.reader()
        self.positions.view[PUBLISHED] = (1 << 62) + 1
        self.assertEqual(reader.view[PUBLISHED], (1 << 62) + 1)
        reader.close()

    def test_owner(self) -> None:
        """They belong to the broker that wrote the mark, and to no other."""
        self.positions.view[OWNER] = 77
        self.positions.view[ABORT_MS] = 5
        reader = self.reader()
        self.assertTrue(reader.belongs_to(77, 5))
        self.assertFalse(reader.belongs_to(77, 6))
        self.assertFalse(reader.belongs_to(78, 5))

    def test_noWords(self) -> None:
        """A file that is too short belongs to nobody."""
        file = self.disk.open("/s/short", create=True)
        file.pwrite(b"x" * 20, 0)
        reader = ReadOnlyPositions(self.disk.open_readonly("/s/short"))
        self.assertFalse(reader.belongs_to(0, 0))
        reader.close()

    def test_slots(self) -> None:
        """Each queue has words of its own, and a line that names it: those that a
        start finds are named together, others at once."""
        writes = self.disk.calls.get("pwrite", 0)
        first = self.positions.add_queue("T", 0)
        self.positions.add_queue("T", 1)
        self.positions.name_queues()
        self.assertEqual(self.disk.calls["pwrite"], writes + 1)
        self.positions.started()
        second = self.positions.add_queue("é", 12)
        self.assertEqual((first, second), (FIRST_SLOT, FIRST_SLOT + 2 * SLOT_WORDS))
        self.assertEqual(self.positions.view[QUEUES], 3)
        lines = self.disk.read("/s/rocketbroker.queues").decode()
        self.assertEqual(lines, "T/0\nT/1\né/12\n")

    def test_written(self) -> None:
        """What is mapped was written before: a hole is never touched."""
        calls: list[str] = []
        self.disk.watch = calls.append
        positions = SharedPositions(self.disk, "/s")
        self.fill(positions)
        positions.add_queue("U", 0)
        steps = [each for each in calls if each in ("allocate", "pwrite", "map")]
        self.assertEqual(steps, ["allocate", "pwrite", "map"] * 2)

    def test_growth(self) -> None:
        """More queues than fit get a larger file; what was there stays, and is still
        seen through the mapping that was there."""
        old = self.positions.view
        slots: list[int] = []
        while len(self.positions.view) == len(old):
            slots.append(self.positions.add_queue("T", len(slots)))
            self.positions.view[slots[-1] + MAX] = len(slots)
        self.assertEqual(self.disk.size(f"/s/{POSITIONS_NAME}"), 2 * FIRST_SIZE)
        for number, slot in enumerate(slots, 1):
            self.assertEqual(self.positions.view[slot + MAX], number)
        self.positions.view[PUBLISHED] = 9
        self.assertEqual(old[PUBLISHED], 9)

    def test_noRoom(self) -> None:
        """On a disk that has become full no queue is added, and nothing is lost."""
        self.positions.started()
        while (self.positions.view[QUEUES] + 1) * SLOT_WORDS + FIRST_SLOT <= len(
            self.positions.view
        ):
            self.positions.add_queue("T", 0)
        self.disk.fail("allocate", errno.ENOSPC)
        count = self.positions.view[QUEUES]
        self.assertRaises(OSError, self.positions.add_queue, "T", 1)
        self.assertEqual(self.positions.view[QUEUES], count)
        self.positions.add_queue("T", 1)

    def fill(self, positions: SharedPositions) -> None:
        """Add queues until the words have to grow."""
        while (positions.view[QUEUES] + 1) * SLOT_WORDS + FIRST_SLOT <= FIRST_SIZE // 8:
            positions.add_queue("T", positions.view[QUEUES])

    def test_fullDisk(self) -> None:
        """Words of a store that starts on a full disk are in memory, and no files are
        left of them."""
        self.positions.close()
        self.positions.remove()
        self.disk.capacity = self.disk.used()
        positions = SharedPositions(self.disk, "/s")
        self.assertFalse(positions.is_shared)
        self.assertEqual(self.disk.list("/s"), [])
        self.fill(positions)
        slot = positions.add_queue("U", 0)
        positions.view[slot + MAX] = 7
        self.assertEqual(positions.view[slot + MAX], 7)
        positions.name_queues()
        positions.started()
        positions.add_queue("U", 1)
        positions.close()
        positions.remove()

    def test_fullWhileStarting(self) -> None:
        """Words that cannot grow while a store starts go to memory with what they say;
        who reads the files does not believe them any more."""
        self.positions.view[OWNER] = 77
        self.positions.view[PUBLISHED] = 5
        self.fill(self.positions)
        reader = self.reader()
        self.disk.capacity = self.disk.used()
        count = self.positions.view[QUEUES]
        self.positions.add_queue("U", 0)
        self.assertFalse(self.positions.is_shared)
        self.assertEqual(self.positions.view[QUEUES], count + 1)
        self.assertEqual(self.positions.view[PUBLISHED], 5)
        self.assertFalse(reader.belongs_to(77, 0))
        self.assertEqual(self.disk.list("/s"), [])

    def test_noRoomForNames(self) -> None:
        """So do words of queues that cannot be named; another error is one. Later a
        queue that cannot be named is none, and the next one has its place."""
        self.disk.fail("pwrite", errno.EIO)
        self.positions.add_queue("T", 0)
        self.assertRaises(OSError, self.positions.name_queues)
        self.positions.started()
        self.disk.fail("pwrite", errno.ENOSPC)
        self.assertRaises(OSError, self.positions.add_queue, "T", 1)
        self.positions.add_queue("T", 2)
        lines = self.disk.read("/s/rocketbroker.queues").decode()
        self.assertEqual(lines, "T/2\n")
        again = SharedPositions(self.disk, "/s")
        again.add_queue("T", 0)
        self.disk.fail("pwrite", errno.ENOSPC)
        again.name_queues()
        self.assertFalse(again.is_shared)

    def test_broken(self) -> None:
        """A disk that refuses for another reason is an error."""
        self.disk.fail("allocate", errno.EIO)
        self.assertRaises(OSError, SharedPositions, self.disk, "/s")

    def test_newStart(self) -> None:
        """A new start makes them anew; who still has the old ones sees them stand."""
        reader = self.reader()
        self.positions.view[PUBLISHED] = 5
        again = SharedPositions(self.disk, "/s")
        again.view[PUBLISHED] = 6
        self.assertEqual(reader.view[PUBLISHED], 5)
        again.close()
        again.remove()
        self.assertEqual(self.disk.list("/s"), [])

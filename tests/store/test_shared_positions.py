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
    PUBLISHED,
    QUEUES,
    SLOT_WORDS,
    WORDS_NAME,
    ReadOnlyPositions,
    SharedPositions,
)
from rocketbroker.testing.files import MemoryDisk


class WordsTests(SynchronousTestCase):
    """Writing, reading by another, growing."""

    def setUp(self) -> None:
        """Words in a directory."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.words = SharedPositions(self.disk, "/s")

    def reader(self) -> ReadOnlyPositions:
        """As another process opens them."""
        return ReadOnlyPositions(self.disk.open_readonly(f"/s/{WORDS_NAME}"))

    def test_seenByOthers(self) -> None:
        """A number that is set is seen through another mapping, whole."""
        reader = self.reader()
        self.words.view[PUBLISHED] = (1 << 62) + 1
        self.assertEqual(reader.view[PUBLISHED], (1 << 62) + 1)
        reader.close()

    def test_owner(self) -> None:
        """They belong to the broker that wrote the mark, and to no other."""
        self.words.view[OWNER] = 77
        self.words.view[ABORT_MS] = 5
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
        """Each queue has words of its own, and a line that names it."""
        first = self.words.add_queue("T", 0)
        second = self.words.add_queue("é", 12)
        self.assertEqual((first, second), (FIRST_SLOT, FIRST_SLOT + SLOT_WORDS))
        self.assertEqual(self.words.view[QUEUES], 2)
        lines = self.disk.read("/s/rocketbroker.queues").decode()
        self.assertEqual(lines, "T/0\né/12\n")

    def test_growth(self) -> None:
        """More queues than fit get a larger file; what was there stays, and is still
        seen through the mapping that was there."""
        old = self.words.view
        slots: list[int] = []
        while len(self.words.view) == len(old):
            slots.append(self.words.add_queue("T", len(slots)))
            self.words.view[slots[-1] + MAX] = len(slots)
        self.assertEqual(self.disk.size(f"/s/{WORDS_NAME}"), 2 * FIRST_SIZE)
        for number, slot in enumerate(slots, 1):
            self.assertEqual(self.words.view[slot + MAX], number)
        self.words.view[PUBLISHED] = 9
        self.assertEqual(old[PUBLISHED], 9)

    def test_noRoom(self) -> None:
        """On a disk that has become full no queue is added, and nothing is lost."""
        self.words.started()
        while (self.words.view[QUEUES] + 1) * SLOT_WORDS + FIRST_SLOT <= len(
            self.words.view
        ):
            self.words.add_queue("T", 0)
        self.disk.fail("allocate", errno.ENOSPC)
        count = self.words.view[QUEUES]
        self.assertRaises(OSError, self.words.add_queue, "T", 1)
        self.assertEqual(self.words.view[QUEUES], count)
        self.words.add_queue("T", 1)

    def fill(self, words: SharedPositions) -> None:
        """Add queues until the words have to grow."""
        while (words.view[QUEUES] + 1) * SLOT_WORDS + FIRST_SLOT <= FIRST_SIZE // 8:
            words.add_queue("T", words.view[QUEUES])

    def test_fullDisk(self) -> None:
        """Words of a store that starts on a full disk are in memory, and no files are
        left of them."""
        self.words.close()
        self.words.remove()
        self.disk.capacity = self.disk.used()
        words = SharedPositions(self.disk, "/s")
        self.assertFalse(words.is_shared)
        self.assertEqual(self.disk.list("/s"), [])
        self.fill(words)
        slot = words.add_queue("U", 0)
        words.view[slot + MAX] = 7
        self.assertEqual(words.view[slot + MAX], 7)
        words.started()
        words.add_queue("U", 1)
        words.close()
        words.remove()

    def test_fullWhileStarting(self) -> None:
        """Words that cannot grow while a store starts go to memory with what they say;
        who reads the files does not believe them any more."""
        self.words.view[OWNER] = 77
        self.words.view[PUBLISHED] = 5
        self.fill(self.words)
        reader = self.reader()
        self.disk.capacity = self.disk.used()
        count = self.words.view[QUEUES]
        self.words.add_queue("U", 0)
        self.assertFalse(self.words.is_shared)
        self.assertEqual(self.words.view[QUEUES], count + 1)
        self.assertEqual(self.words.view[PUBLISHED], 5)
        self.assertFalse(reader.belongs_to(77, 0))
        self.assertEqual(self.disk.list("/s"), [])

    def test_broken(self) -> None:
        """A disk that refuses for another reason is an error."""
        self.disk.fail("allocate", errno.EIO)
        self.assertRaises(OSError, SharedPositions, self.disk, "/s")

    def test_newStart(self) -> None:
        """A new start makes them anew; who still has the old ones sees them stand."""
        reader = self.reader()
        self.words.view[PUBLISHED] = 5
        again = SharedPositions(self.disk, "/s")
        again.view[PUBLISHED] = 6
        self.assertEqual(reader.view[PUBLISHED], 5)
        again.close()
        again.remove()
        self.assertEqual(self.disk.list("/s"), [])

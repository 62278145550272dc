"""One consume queue."""

from __future__ import annotations

import errno
from functools import partial
from operator import le

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import ENTRY, FILLED
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.consumequeue.loading import QueueLoading
from rocketbroker.store.consumequeue.queue import Queue, first_from, is_usable
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.shared_positions import SharedPositions
from rocketbroker.testing.files import MemoryDisk

PER_FILE = 10
SIZE = PER_FILE * 20
FOLDER = "/s/consumequeue/T/0"


def entry(number: int) -> bytes:
    """The entry of a record of 100 bytes."""
    return ENTRY.pack(number * 100, 100, number)


class QueueCase(SynchronousTestCase):
    """One queue."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """A queue without files."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.positions = SharedPositions(self.disk, "/s")
        self.queue = self.make()

    def make(self) -> Queue:
        """A handle over what is on the disk."""
        files = QueueFiles(OpenFiles(self.disk), FOLDER, SIZE)
        QueueLoading(OpenFiles(self.disk), True, self.fail).load([([files], 20)])
        slot = self.positions.add_queue("T", 0)
        return Queue("T", 0, self.positions, slot, files, False, True)

    def enter(self, offset: int, *numbers: int) -> None:
        """Enter entries."""
        self.queue.pending = [entry(number) for number in numbers]
        self.queue.pending_offset = offset
        self.queue.pending_end = numbers[-1] * 100 + 100
        self.queue.enter()

    def offsets(self) -> tuple[int, int, int]:
        """First, end, next."""
        queue = self.queue
        return queue.min_offset, queue.max_offset, queue.next_offset


class QueueTests(QueueCase):
    """Entering and reading."""

    def test_enter(self) -> None:
        """What was entered can be read; the numbers follow."""
        self.assertEqual(self.offsets(), (0, 0, 0))
        self.enter(0, 0, 1, 2)
        self.assertEqual(self.offsets(), (0, 3, 3))
        self.assertEqual(self.queue.read(1, 2), entry(1) + entry(2))
        self.assertEqual(self.queue.max_position, 300)
        self.assertEqual(self.disk.size(f"{FOLDER}/{segment_name(0)}"), SIZE)

    def test_cutBeforeTheFirst(self) -> None:
        """A queue that ends before it began begins where it ends."""
        self.enter(7, 7, 8)
        self.queue.cut(5)
        self.assertEqual(self.offsets(), (5, 5, 9))
        self.enter(5, 5)
        self.assertEqual(self.offsets(), (5, 6, 9))

    def test_nextAhead(self) -> None:
        """The next offset is not set back to what has been entered."""
        self.positions.view[self.queue.slot] = 9
        self.enter(0, 0)
        self.assertEqual(self.offsets(), (0, 1, 9))

    def test_rollOver(self) -> None:
        """Entries go over as many files as they need; a read ends with its file."""
        self.enter(0, *range(25))
        self.assertEqual(
            self.disk.list(FOLDER), [segment_name(at) for at in (0, SIZE, 2 * SIZE)]
        )
        self.assertEqual(self.queue.read(8, 30), entry(8) + entry(9))
        self.assertEqual(self.queue.read(10, 30), b"".join(map(entry, range(10, 20))))
        self.assertEqual(self.queue.read(24, 1), entry(24))
        self.assertEqual(self.queue.read(30, 1), b"")

    def test_filled(self) -> None:
        """A queue that does not begin at 0 is filled up from the start of its file, and
        its first offset is the first real one."""
        self.enter(13, 500)
        self.assertEqual(self.offsets(), (13, 14, 14))
        self.assertEqual(self.disk.list(FOLDER), [segment_name(SIZE)])
        self.assertEqual(self.queue.read(10, 4), FILLED * 3 + entry(500))
        self.assertEqual(FILLED.hex(), "00000000000000007fffffff0000000000000000")

    def test_gap(self) -> None:
        """Entries that are lost in the middle are filled in; when files are missing
        between, only what follows can be read."""
        self.enter(0, 0, 1)
        self.enter(4, 4)
        self.assertEqual(self.offsets(), (0, 5, 5))
        self.assertEqual(self.queue.read(1, 4), entry(1) + 2 * FILLED + entry(4))
        self.enter(35, 35)
        self.assertEqual(self.offsets(), (35, 36, 36))
        self.assertEqual(self.disk.list(FOLDER), [segment_name(3 * SIZE)])

    def test_gapOverABorder(self) -> None:
        """A gap that reaches into the next file is filled in both; also where the
        queue ends with its file."""
        for there in (8, 10):
            self.start_over()
            self.enter(0, *range(there))
            self.enter(20 if there == 10 else 13, 50)
            end = self.queue.max_offset
            self.assertEqual(self.offsets()[0], 0)
            read = self.queue.read(there, 10 - there) + self.queue.read(10, 10)
            wanted = FILLED * (end - 1 - there) + entry(50)
            self.assertEqual((read + self.queue.read(20, 1))[: len(wanted)], wanted)

    def test_before(self) -> None:
        """Entries before the end replace all that follows them."""
        self.enter(0, *range(25))
        self.enter(3, 100)
        self.assertEqual(self.queue.max_offset, 4)
        self.assertEqual(self.disk.list(FOLDER), [segment_name(0)])
        self.assertEqual(self.queue.read(3, 3), entry(100) + bytes(40))

    def test_diskRefuses(self) -> None:
        """When the disk refuses nothing is shown, and the next try succeeds."""
        self.disk.fail("pwrite", errno.ENOSPC)
        self.assertRaises(OSError, self.enter, 0, 0, 1)
        self.assertEqual(self.offsets(), (0, 0, 0))
        self.enter(0, 0, 1)
        self.assertEqual(self.offsets(), (0, 2, 2))

    def test_flush(self) -> None:
        """After a flush, a crash loses nothing; without, it does."""
        self.disk.sync_dir("/")
        self.enter(0, *range(15))
        self.assertEqual(self.queue.files.flush(), 2)
        self.disk.sync_dir("/s")
        self.assertEqual(self.queue.files.flush(), 0)
        self.enter(15, 15)
        self.disk.crash()
        files = QueueFiles(OpenFiles(self.disk), FOLDER, SIZE)
        QueueLoading(OpenFiles(self.disk), False, self.fail).load([([files], 20)])
        self.assertEqual(files.read(14 * 20, 40), entry(14) + bytes(20))

    def test_areThere(self) -> None:
        """Entries that the files have already, from before a kill, are shown without a
        write, and the next flush puts them on the disk; but not if the queue was cut to
        enter them."""
        self.enter(0, *range(15))
        self.queue = self.make()
        writes = self.disk.calls["pwrite"]
        for offset, end in ((0, 5), (5, 15), (3, 10)):
            self.queue.pending = [entry(number) for number in range(offset, end)]
            self.queue.pending_offset = offset
            self.queue.pending_end = end * 100
            self.queue.enter(are_there=True)
            self.assertEqual(self.queue.read(end - 1, 1), entry(end - 1))
        self.assertEqual(self.disk.calls["pwrite"], writes + 1)
        self.queue = self.make()
        self.queue.pending = [entry(number) for number in range(10)]
        self.queue.pending_offset = 0
        self.queue.enter(are_there=True)
        for folder in ("/", "/s"):
            self.disk.sync_dir(folder)
        self.queue.mark_dir_unsynced()
        self.queue.flush()
        path = f"{FOLDER}/{segment_name(0)}"
        found = self.disk.image().read(path)
        self.assertEqual(found, self.disk.read(path))
        self.assertEqual(found[-20:], entry(9))

    def test_leastPages(self) -> None:
        """A queue with less than the least pages of new entries is not flushed; one
        with so many is, with all of its files, and so is one that has filled a file."""
        files = QueueFiles(OpenFiles(self.disk), "/s/big/0", 500 * 20)
        files.write(0, entry(0) * 204)
        self.assertEqual(files.flush(1, 204 * 20), 0)
        files.write(204 * 20, entry(0))
        self.assertEqual(files.flush(2, 205 * 20), 0)
        self.assertEqual(files.flush(1, 205 * 20), 1)
        self.assertEqual(files.flush(1, 205 * 20), 0)
        files.write(205 * 20, entry(0) * 300)
        self.assertEqual(files.flush(9, 505 * 20), 2)
        files.cut(20)
        files.write(20, entry(0) * 300)
        self.assertEqual(files.flush(1, 301 * 20), 1)
        files.drop(0)
        files.write(0, entry(0) * 300)
        self.assertEqual(files.flush(1, 300 * 20), 1)

    def test_readOnly(self) -> None:
        """Where the file system can only be read any more, files that are not open can
        be read all the same; and written again when it can be written to."""
        self.enter(0, *range(35))
        found = self.queue.files.all[0]
        self.queue.files._open_files.drop(found)
        self.disk.fail("open", errno.EROFS, times=2)
        self.assertEqual(self.queue.read(5, 1), entry(5))
        self.assertRaises(OSError, lambda: found.file)
        found.file.pwrite(entry(7), 5 * 20)
        self.assertEqual(self.queue.read(5, 1), entry(7))

    def test_flushFails(self) -> None:
        """What could not be flushed is flushed by the next call."""
        self.disk.sync_dir("/")
        self.enter(0, 0)
        for call in ("datasync", "sync_dir"):
            self.disk.fail(call, errno.EIO)
            self.assertRaises(OSError, self.queue.files.flush)
        self.queue.files.flush()
        self.disk.sync_dir("/s")
        self.disk.crash()
        self.assertEqual(self.disk.read(f"{FOLDER}/{segment_name(0)}")[:20], entry(0))

    def test_dropped(self) -> None:
        """Files that are removed while somebody reads them can still be read."""
        self.enter(0, 0)
        found = self.queue.files.find(0)
        assert found is not None
        file = found.file
        self.queue.files.drop(0)
        self.assertEqual(file.pread(20, 0), entry(0))
        self.assertEqual(self.disk.list(FOLDER), [])


class SearchTests(SynchronousTestCase):
    """The search for the first number from which on something is so."""

    def test_hints(self) -> None:
        """Wherever it is, and whatever the hint, it is found."""
        for first in range(3, 21):
            for hint in range(-1, 30):
                found = first_from(partial(le, first), 3, 20, hint)
                self.assertEqual(found, first, hint)

    def test_right(self) -> None:
        """With a right hint two numbers are asked about, and one at an end."""
        asked: list[int] = []

        def is_so(number: int) -> bool:
            asked.append(number)
            return number >= first

        for first, count in ((0, 1), (500, 2), (1000, 1)):
            asked.clear()
            self.assertEqual(first_from(is_so, 0, 1000, first), first)
            self.assertEqual(len(asked), count)


class BoundTests(QueueCase):
    """The search for the begin and the end of a queue."""

    def test_hints(self) -> None:
        """Wherever the log begins and ends, and whatever the hint, right or wrong, the
        same is found."""
        self.enter(0, *range(15))
        places = [-1, 0, 100, 350, 900, 1000, 1400, 1500]
        for before in places:
            for lowest in places:
                self.queue.bound(before, lowest, cut=False)
                expected = *self.offsets(), self.queue.max_position
                for end in range(-1, 22):
                    hint = max(-1, end - 7), end
                    self.queue.bound(before, lowest, False, hint)
                    found = *self.offsets(), self.queue.max_position
                    self.assertEqual(found, expected, (before, lowest, hint))

    def test_right(self) -> None:
        """With a right hint one read is enough in a queue of one file, and two more
        show the begin of another."""
        for count, reads in ((7, 1), (15, 2)):
            self.start_over()
            self.enter(0, *range(count))
            self.disk.calls.clear()
            self.queue.bound(2000, 0, False, (0, count))
            self.assertEqual(self.disk.calls["pread"], reads)
            self.assertEqual(self.offsets(), (0, count, count))


class BeginTests(QueueCase):
    """Queues whose first records are gone."""

    def begin(self, lowest: int) -> tuple[int, int, int]:
        """Let the log begin somewhere; how many files went, first offset, end."""
        removed = self.queue.begin_with(lowest)
        return removed, self.queue.min_offset, self.queue.max_offset

    def test_begin(self) -> None:
        """A queue begins with the first message that is still in the log; files before
        it go; a record that begins exactly where the log does stays."""
        self.enter(0, *range(35))
        self.assertEqual(self.begin(0), (0, 0, 35))
        self.assertEqual(self.begin(900), (0, 9, 35))
        self.assertEqual(self.begin(901), (1, 10, 35))
        self.assertEqual(self.begin(2950), (2, 30, 35))
        self.assertEqual(self.disk.list(FOLDER), [segment_name(3 * SIZE)])

    def test_allGone(self) -> None:
        """When no record is left the queue is empty where it ends, keeps its last
        file, and goes on from there."""
        self.enter(0, *range(15))
        self.assertEqual(self.begin(10_000), (1, 15, 15))
        self.assertEqual(self.begin(20_000), (0, 15, 15))
        self.enter(15, 300)
        self.assertEqual(self.offsets(), (15, 16, 16))
        self.assertEqual(self.begin(20_000), (0, 15, 16))

    def test_filled(self) -> None:
        """Entries filled in are nobody's, even where the log begins at 0."""
        self.enter(13, 0, 1)
        self.assertEqual(self.begin(0), (0, 13, 15))
        self.assertEqual(self.begin(100), (0, 14, 15))

    def test_noFiles(self) -> None:
        """A queue without files stays as it is."""
        self.assertEqual(self.begin(500), (0, 0, 0))


class NameTests(SynchronousTestCase):
    """Topics that can be stored."""

    def test_usable(self) -> None:
        """What would lead out of the store, or be no directory, is not usable."""
        for topic in ("T", "%RETRY%g", "%LMQ%a b", "é", "x" * 255):
            self.assertTrue(is_usable(topic), topic)
        wrong = ("", ".", "..", "a/b", "../a", "a\0", "a\nb", "x" * 256, "\ud800")
        for topic in wrong:
            self.assertFalse(is_usable(topic), topic)

"""Offsets of times, and single records."""

from __future__ import annotations

import contextlib
import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.corruption_log import MAX_TRIES
from rocketbroker.store.file_names import segment_name
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, SEGMENT, START_MS, Wall, draft, opened, put


class TimeTests(SynchronousTestCase):
    """Messages stored at 10, 20, 20, 20 and 30 ms after the start."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """The store with them."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = opened(self.disk, self.wall)
        self.queue = self.store.queue("T", 0)
        for ms in (10, 20, 20, 20, 30):
            self.wall.now_ms = START_MS + ms
            put(self.store, self.queue, b"x" * 15_000)

    def offset(self, ms: int, upper: bool) -> int:
        """The offset for a time after the start."""
        return self.store.offset_by_time(self.queue, START_MS + ms, upper)

    def test_lower(self) -> None:
        """The first message of that time or later; the end if there is none."""
        for ms, offset in ((0, 0), (10, 0), (11, 1), (20, 1), (21, 4), (30, 4)):
            self.assertEqual(self.offset(ms, False), offset, ms)
        self.assertEqual(self.offset(31, False), 5)

    def test_upper(self) -> None:
        """The last message of that time or earlier; the first if there is none."""
        for ms, offset in (
            (0, 0),
            (10, 0),
            (11, 0),
            (20, 3),
            (29, 3),
            (30, 4),
            (99, 4),
        ):
            self.assertEqual(self.offset(ms, True), offset, ms)

    def test_empty(self) -> None:
        """An empty queue has only its end."""
        queue = self.store.queue("T", 1)
        for upper in (False, True):
            self.assertEqual(self.store.offset_by_time(queue, START_MS, upper), 0)

    def test_storeTime(self) -> None:
        """The time of a message; -1 where there is none, or it cannot be read."""
        self.assertEqual(self.store.store_time(self.queue, 1), START_MS + 20)
        for offset in (-1, 5, 1 << 40):
            self.assertEqual(self.store.store_time(self.queue, offset), -1)
        file = self.disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        file.pwrite(bytes(8), 0)
        self.assertEqual(self.store.store_time(self.queue, 0), -1)
        self.assertEqual(self.offset(5, False), 1)

    def test_bad(self) -> None:
        """Messages that cannot be read, in the middle or at the ends, lead nobody to
        what is later than the next one; who asks first is refused some times."""
        for number in range(5):
            self.start_over()
            (position, _, _), *_ = self.store.entries(self.queue, number, 1)
            start = position % SEGMENT
            path = f"{ROOT}/commitlog/{segment_name(position - start)}"
            self.disk.spoil(path, start + BLOCK, start + BLOCK + 1)
            for _ in range(MAX_TRIES - 1):
                error = self.assertRaises(
                    OSError, self.store.store_time, self.queue, number
                )
                self.assertEqual(error.errno, errno.EIO)
                self.assertEqual(self.store.corrupt_records, 0)
            self.assertEqual(self.store.store_time(self.queue, number), -1)
            self.assertIsNone(self.store.record_at(position))
            self.assertEqual(self.store.corrupt_records, 1)
            self.assertIn(f"({path}, position ", self.store.findings()[0])
            times = [10, 20, 20, 20, 30]
            for at, ms in enumerate(times):
                if at != number:
                    first = times.index(ms)
                    first += first == number
                    self.assertEqual(self.offset(ms, False), first, (number, at))

    def test_allBad(self) -> None:
        """Where none can be read, it is the first."""
        for start in (0, SEGMENT):
            path = f"{ROOT}/commitlog/{segment_name(start)}"
            self.disk.spoil(path, 0, SEGMENT)
        for _ in range(99):
            with contextlib.suppress(OSError):
                self.assertEqual(self.offset(20, False), 0)
                return
        self.fail("refused for ever")


class FilesTests(SynchronousTestCase):
    """A queue of three files of ten entries whose first messages are gone, with gaps of
    time where the files meet."""

    def setUp(self) -> None:
        """Messages 0 to 29, stored 10 ms after each other, twice as long from file to
        file; the log begins with message 4."""
        self.wall = Wall()
        self.store = opened(
            None,
            self.wall,
            mapped_file_size_consume_queue=200,
            mapped_file_size_commit_log=1 << 20,
        )
        self.queue = self.store.queue("T", 0)
        self.times = []
        drafts = []
        for number in range(30):
            self.times.append(START_MS + 10 * number + 10 * (number // 10))
            self.wall.now_ms = self.times[-1]
            drafts += put(self.store, self.queue, b"x")
        self.store.queue("T", 0).begin_with(drafts[4].position)

    def offset(self, ms: int, upper: bool) -> int:
        """The offset for a time."""
        return self.store.offset_by_time(self.queue, ms, upper)

    def test_exact(self) -> None:
        """Each message is found by its own time, in whatever file."""
        for number in range(4, 30):
            for upper in (False, True):
                self.assertEqual(self.offset(self.times[number], upper), number)

    def test_between(self) -> None:
        """Between two messages, the lower boundary is the later one, the upper one the
        earlier one; also where one file ends and the next begins."""
        for number in range(4, 29):
            for ms in (self.times[number] + 1, self.times[number + 1] - 1):
                self.assertEqual(self.offset(ms, False), number + 1)
                self.assertEqual(self.offset(ms, True), number)

    def test_outside(self) -> None:
        """Before all there is the first that can be read, for both; behind all the
        end, and the last."""
        for ms in (0, START_MS - 1, self.times[3]):
            self.assertEqual(self.offset(ms, False), 4)
            self.assertEqual(self.offset(ms, True), 4)
        self.assertEqual(self.offset(self.times[29] + 1, False), 30)
        self.assertEqual(self.offset(self.times[29] + 1, True), 29)


class RecordTests(SynchronousTestCase):
    """Records by their position."""

    def test_recordAt(self) -> None:
        """Where a record starts it is given, elsewhere none."""
        store = opened()
        queue = store.queue("T", 0)
        drafts = [draft(queue, b"one"), draft(queue, b"two")]
        store.append(drafts)
        for each in drafts:
            record = store.record_at(each.position)
            assert record is not None
            self.assertEqual(len(record), each.end - each.position)
            self.assertIn(each.body, record)
        end = store.published_position
        for position in (1, drafts[1].position - 1, end, end - 8, -1, 1 << 62):
            self.assertIsNone(store.record_at(position))

    def test_notPublished(self) -> None:
        """What is behind the published position does not exist."""
        disk = MemoryDisk()
        store = opened(disk)
        queue = store.queue("T", 0)
        put(store, queue, b"one")
        end = store.published_position
        file = disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        file.pwrite(file.pread(end, 0), end)
        self.assertIsNone(store.record_at(end))

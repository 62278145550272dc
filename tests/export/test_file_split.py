"""Ranges as files, by hour and by size."""

from __future__ import annotations

import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.file_split import cut, cut_by_hour, cut_by_size, file_count
from rocketbroker.export.plans import HOUR_MS, FileTask, cover_problem
from rocketbroker.export.sizes import Sizes
from rocketbroker.sources.ranges import Queue, Range
from tests.export.slow import QUEUE, WHOLE, SlowOrigin
from tests.sources.messages import stored
from tests.sources.origins import MemoryOrigin

#: The size of a message of the slow origin.
SIZE = len(stored(0, store_ms=0))


class SizedOrigin(MemoryOrigin):
    """Messages of chosen sizes.

    @ivar bodies: how large the body of each message is.
    """

    bodies: dict[int, int]

    def message(self, queue: Queue, number: int) -> bytes:
        """See L{MemoryOrigin}."""
        return stored(number, bytes(self.bodies[number]), queue_id=queue.queue_id)


class HourTests(SynchronousTestCase):
    """L{cut_by_hour}."""

    def setUp(self) -> None:
        """Messages of more than three hours."""
        self.origin = SlowOrigin({QUEUE: 20})

    def hours(self) -> list[tuple[int, int]]:
        """The parts by hour, seen to follow one another."""
        parts = [part for part, _ in cut_by_hour(self.origin, WHOLE, 9)]
        borders = [part.start for part in parts] + [parts[-1].until]
        self.assertEqual(borders, sorted(set(borders)))
        self.assertEqual((borders[0], borders[-1]), (0, 20))
        return [(part.start, part.until) for part in parts]

    def test_hours(self) -> None:
        """A part is what was stored in one hour."""
        # The first message was stored at 22:13:20.
        self.assertEqual(self.hours(), [(0, 5), (5, 11), (11, 17), (17, 20)])
        for part, _ in cut_by_hour(self.origin, WHOLE, 9):
            hours = {
                self.origin.ms(number) // HOUR_MS
                for number in range(part.start, part.until)
            }
            self.assertEqual(len(hours), 1)

    def test_wrongSearch(self) -> None:
        """Wherever a search by time points, the parts still add up."""
        for wrong in (-1, 1, -100, 100):
            self.origin.wrong = wrong
            self.hours()

    def test_damaged(self) -> None:
        """Messages that cannot be read belong to the hour of those around them."""
        self.origin.records = dict.fromkeys((0, 4, 5, 19), b"garbage")
        self.assertEqual(self.hours(), [(0, 5), (5, 11), (11, 17), (17, 20)])

    def test_allDamaged(self) -> None:
        """If none can be read, it is the hour of the export."""
        self.origin.records = dict.fromkeys(range(20), b"garbage")
        self.assertEqual([*cut_by_hour(self.origin, WHOLE, 9)], [(WHOLE, 9)])
        self.origin.ends[QUEUE] = 600
        self.origin.records = dict.fromkeys(range(600), b"garbage")
        long = Range(QUEUE, 0, 600)
        self.assertEqual([*cut_by_hour(self.origin, long, 9)], [(long, 9)])


class SizeTests(SynchronousTestCase):
    """L{cut_by_size}."""

    def parts(
        self, target: int, tasks: int = 1, *wanted: Range
    ) -> list[list[tuple[int, int, int]]]:
        """The files: queue and offsets of their ranges, seen to cover all."""
        ranges = wanted or (WHOLE,)
        origin = SlowOrigin({part.queue: part.until for part in ranges})
        sizes = Sizes(origin, ranges)
        files = [*cut_by_size(sizes, ranges, target, tasks)]
        pieces = [piece for file in files for piece in file]
        self.assertIsNone(cover_problem(ranges, pieces))
        return [
            [(queue.queue_id, start, until) for queue, start, until in file]
            for file in files
        ]

    def test_size(self) -> None:
        """There are as many files as the bytes ask for, of about one size."""
        self.assertEqual(
            self.parts(SIZE * 6), [[(0, 0, 7)], [(0, 7, 13)], [(0, 13, 20)]]
        )
        self.assertEqual(self.parts(10**9), [[(0, 0, 20)]])

    def test_hugeMessages(self) -> None:
        """A message larger than the target has a file of its own."""
        self.assertEqual(len(self.parts(1)), 20)

    def test_quietQueues(self) -> None:
        """Quiet queues share a file."""
        ranges = [Range(Queue("T", "b", n), 0, 2) for n in range(6)]
        self.assertEqual(
            self.parts(SIZE * 6, 1, *ranges),
            [
                [(0, 0, 2), (1, 0, 2), (2, 0, 2)],
                [(3, 0, 2), (4, 0, 2), (5, 0, 2)],
            ],
        )

    def test_busyQueue(self) -> None:
        """A busy one has several, and its last one is shared."""
        ranges = [Range(Queue("T", "b", n), 0, 3) for n in (0, 2)]
        ranges.insert(1, Range(Queue("T", "b", 1), 0, 14))
        self.assertEqual(
            self.parts(SIZE * 5, 1, *ranges),
            [
                [(0, 0, 3), (1, 0, 2)],
                [(1, 2, 7)],
                [(1, 7, 12)],
                [(1, 12, 14), (2, 0, 3)],
            ],
        )

    def test_slack(self) -> None:
        """A file ends where a queue does, if that is near."""
        ranges = [Range(Queue("T", "b", n), 0, size) for n, size in ((0, 11), (1, 9))]
        self.assertEqual(self.parts(SIZE * 10, 1, *ranges), [[(0, 0, 11)], [(1, 0, 9)]])

    def test_tasks(self) -> None:
        """Few files are a multiple of the tasks, so that none waits for the last."""
        counts = [file_count(size, 100, 1, 2) for size in (0, 1, 2, 3, 5, 7, 9)]
        self.assertEqual(counts, [1, 1, 2, 2, 4, 6, 9])
        self.assertEqual(file_count(9, 4, 1, 1), 4)

    def test_any(self) -> None:
        """Each offset is in one file, and there are not too many files."""
        dice = random.Random(7)
        for _ in range(60):
            ranges = [
                Range(Queue("T", "b", n), start, start + dice.randrange(1, 60))
                for n, start in enumerate(
                    dice.choices(range(9), k=dice.randrange(1, 9))
                )
            ]
            target, tasks = dice.randrange(1, SIZE * 50), dice.randrange(1, 5)
            size = SIZE * sum(wanted.size for wanted in ranges)
            files = self.parts(target, tasks, *ranges)
            self.assertTrue(len(files) <= max(1, size // target))


class PlannedTests(SynchronousTestCase):
    """L{cut}."""

    def files(self, origin: MemoryOrigin, target: int) -> list[FileTask]:
        """The files of all that there is."""
        ranges = [Range(queue, 0, end) for queue, end in sorted(origin.ends.items())]
        return [*cut(origin, ranges, 9, target)]

    def test_sizesThatChange(self) -> None:
        """Files have about one size where small messages are followed by large ones."""
        origin = SizedOrigin({QUEUE: 4000}, step=100)
        origin.bodies = {n: 10 if n < 3000 else 1000 for n in range(4000)}
        whole = [len(origin.message(QUEUE, n)) for n in range(4000)]
        target = sum(whole) // 4
        files = self.files(origin, target)
        found = [
            sum(whole[file.wanted[0].start : file.wanted[0].until]) for file in files
        ]
        self.assertEqual(len(files), 4)
        for size in found:
            self.assertTrue(0.9 < size / target < 1.1, found)

    def test_groups(self) -> None:
        """Groups of rows have fewer rows if these are large."""
        origin = SizedOrigin({QUEUE: 3})
        origin.bodies = dict.fromkeys(range(3), 1 << 20)
        (file,) = self.files(origin, 10**9)
        self.assertEqual(file.group_rows, 63)
        origin.bodies = dict.fromkeys(range(3), 10)
        (file,) = self.files(origin, 10**9)
        self.assertEqual(file.group_rows, 131072)

    def test_hours(self) -> None:
        """Queues share the files of an hour, and none has messages of two hours."""
        other = Queue("T", "b", 1)
        files = self.files(SlowOrigin({QUEUE: 20, other: 12}), 10**9)
        self.assertEqual(
            [[(p.queue.queue_id, p.start, p.until) for p in f.wanted] for f in files],
            [
                [(0, 0, 5), (1, 0, 5)],
                [(0, 5, 11), (1, 5, 11)],
                [(0, 11, 17), (1, 11, 12)],
                [(0, 17, 20)],
            ],
        )
        self.assertEqual(len({file.path for file in files}), 4)

"""Batch queues of a store's files."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.message_identity import fingerprint_at
from rocketbroker.arrow.reading import RangeReader
from rocketbroker.sources.offline import StoreOrigin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import DataLoss, Hole, Origin
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, Wall, put, put_batches, with_batches

QUEUE = Queue("B", "local", 3)

#: Messages of each batch, and how many there are in all.
SIZES = (1, 5, 3, 40, 2)
COUNT = 2 * sum(SIZES) + 1


class BatchQueueTests(SynchronousTestCase):
    """L{StoreOrigin} on a topic with batch queues."""

    def setUp(self) -> None:
        """A store with batches, a second apart, a message that is alone, and batches;
        and messages of another topic between them."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        store = with_batches(self.disk, self.wall)
        self.times: list[int] = []
        number = 0
        for size in (*SIZES, 0, *SIZES):
            self.wall.now_ms += 1000
            bodies = [b"%d" % (number + each) for each in range(max(1, size))]
            if size:
                put_batches(store, store.queue("B", 3), bodies)
            else:
                put(store, store.queue("B", 3), *bodies)
            put(store, store.queue("T", 0), b"other")
            self.times += [self.wall.now_ms] * len(bodies)
            number += len(bodies)
        store.close()

    def origin(self, step: int = 16 << 20) -> StoreOrigin:
        """The store as it is now."""
        options = ReadOptions(store=ROOT, topics=("B",))
        return StoreOrigin(options, self.disk, step)

    def reader(self, start: int, until: int, **words: object) -> RangeReader:
        """A reader of a range."""
        options = ReadOptions(topics=("B",), **words)  # type: ignore[arg-type]
        origin: Origin = self.origin(400)
        return RangeReader(origin, Range(QUEUE, start, until), options)

    def read(self, reader: RangeReader) -> list[tuple[int, bytes]]:
        """Offset and body of each message."""
        found = []
        for layout in reader.layouts():
            begins, ends = layout.cuts[::6].tolist(), layout.cuts[1::6].tolist()
            offsets = layout.front["queue_offset"].tolist()
            for offset, begin, end in zip(offsets, begins, ends, strict=True):
                found.append((offset, layout.data[begin:end].tobytes()))
        return found

    def test_queues(self) -> None:
        """Topics, queues and bounds are those of both kinds."""
        origin = self.origin()
        self.assertEqual(origin.topics(), ["B", "T"])
        self.assertEqual(origin.queues("B"), [QUEUE])
        self.assertEqual(origin.bounds(QUEUE), (0, COUNT))
        self.assertEqual(origin.bounds(Queue("T", "local", 0)), (0, 11))
        self.assertEqual(origin.bounds(Queue("B", "local", 9)), (0, 0))

    def test_ranges(self) -> None:
        """Ranges may begin and end within batches: each message once."""
        for start, until in (
            (0, COUNT),
            (0, 1),
            (3, 4),
            (8, 50),
            (51, 52),
            (30, COUNT),
        ):
            self.assertEqual(
                self.read(self.reader(start, until)),
                [(each, b"%d" % each) for each in range(start, until)],
            )

    def test_time(self) -> None:
        """A time is that of a batch."""
        origin = self.origin()
        for ms in (0, self.times[0], self.times[7] + 1, self.times[-1]):
            expected = next(n for n, time in enumerate(self.times) if time >= ms)
            self.assertEqual(origin.offset_at(QUEUE, ms), expected)
        self.assertEqual(origin.offset_at(QUEUE, self.times[-1] + 1), COUNT)

    def test_fingerprint(self) -> None:
        """A message within a batch has a fingerprint of its own offset."""
        for offset in (0, 12, 51):
            found = fingerprint_at(self.origin(), QUEUE, offset)
            self.assertEqual(found.store_ms, self.times[offset])

    def test_damaged(self) -> None:
        """A batch that cannot be read is lost as a whole, and named; the others are
        read."""
        path = f"{ROOT}/commitlog/{self.disk.list(f'{ROOT}/commitlog')[0]}"
        place = self.disk.read(path).index(b"\x0230") - 20
        file = self.disk.open(path)
        file.pwrite(b"\xff", place)
        file.close()
        self.assertRaises(DataLoss, self.read, self.reader(0, COUNT))
        reader = self.reader(0, COUNT, fail_on_data_loss=False)
        kept = [*range(9), *range(49, COUNT)]
        self.assertEqual(self.read(reader), [(n, b"%d" % n) for n in kept])
        ((start, until, reason),) = reader.holes
        self.assertEqual((start, until), (9, 49))
        self.assertIn("CRC", reason)

    def test_missing(self) -> None:
        """Offsets that no batch holds are lost."""
        path = f"{ROOT}/batchconsumequeue/B/3"
        (name, *_) = self.disk.list(path)
        file = self.disk.open(f"{path}/{name}")
        file.pwrite(bytes(46), 46)
        file.close()
        reader = self.reader(0, 12, fail_on_data_loss=False)
        kept = [0, *range(6, 12)]
        self.assertEqual(self.read(reader), [(n, b"%d" % n) for n in kept])
        self.assertEqual(reader.holes, [Hole(1, 6, "no batch of the queue holds them")])

    def test_crash(self) -> None:
        """After a crash the queue ends before a batch that was never written."""
        path = f"{ROOT}/commitlog/{self.disk.list(f'{ROOT}/commitlog')[0]}"
        data = self.disk.read(path)
        end = len(data.rstrip(b"\0"))
        file = self.disk.open(path)
        file.pwrite(bytes(500), end - 500)
        file.close()
        self.disk.open(f"{ROOT}/abort", True).close()
        first, until = self.origin().bounds(QUEUE)
        self.assertEqual(first, 0)
        self.assertTrue(51 < until < COUNT)
        self.assertEqual(len(self.read(self.reader(0, until))), until)

    def test_grown(self) -> None:
        """What came after the files were opened is found."""
        origin = self.origin()
        self.assertEqual(origin.bounds(QUEUE), (0, COUNT))
        store = with_batches(self.disk, self.wall)
        put_batches(store, store.queue("B", 3), [b"new", b"newer"])
        store.close()
        wanted = Range(QUEUE, COUNT, COUNT + 2)
        there: Origin = origin
        reader = RangeReader(there, wanted, ReadOptions(topics=("B",)))
        bodies = [(COUNT, b"new"), (COUNT + 1, b"newer")]
        self.assertEqual(self.read(reader), bodies)

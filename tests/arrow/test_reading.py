"""Reading ranges exactly."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow import reading
from rocketbroker.arrow.reading import RangeReader
from rocketbroker.records.malformed import Malformed
from rocketbroker.sources.open_source import MAX_OPEN, SharedOrigins
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import CountMismatch, DataLoss, Hole, Origin
from tests.sources.messages import stored
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "broker-a", 1)


class ReadingTests(SynchronousTestCase):
    """L{RangeReader} gives each message once, or says why not."""

    def setUp(self) -> None:
        """A queue of 20 messages."""
        self.origin = MemoryOrigin({QUEUE: 20})

    def reader(self, start: int, until: int, **words: object) -> RangeReader:
        """A reader of a range."""
        options = ReadOptions(topics=("T",), **words)  # type: ignore[arg-type]
        origin: Origin = self.origin
        return RangeReader(origin, Range(QUEUE, start, until), options)

    def offsets(self, reader: RangeReader) -> list[int]:
        """The offsets that a reader gives."""
        return [
            offset
            for layout in reader.layouts()
            for offset in layout.front["queue_offset"].tolist()
        ]

    def test_whole(self) -> None:
        """All messages of the range, in order."""
        reader = self.reader(2, 17)
        self.assertEqual(self.offsets(reader), list(range(2, 17)))
        self.assertEqual(reader.rows, 15)

    def test_empty(self) -> None:
        """An empty range gives nothing."""
        self.assertEqual(self.offsets(self.reader(5, 5)), [])

    def test_batches(self) -> None:
        """Pieces are gathered up to a number of rows."""
        self.origin = MemoryOrigin({QUEUE: 50_000}, step=5_000)
        sizes = [layout.size for layout in self.reader(0, 50_000).layouts()]
        self.assertEqual(sizes, [20_000, 20_000, 10_000])
        self.assertTrue(reading.MAX_ROWS <= 20_000)

    def test_moreThanAsked(self) -> None:
        """Messages beyond the range do not count."""
        self.origin.beyond = 3
        self.assertEqual(self.offsets(self.reader(2, 10)), list(range(2, 10)))

    def test_missing(self) -> None:
        """A message that is not there is named."""
        self.origin.records[7] = b""
        error = self.assertRaises(CountMismatch, self.offsets, self.reader(2, 17))
        self.assertEqual(
            str(error), "queue 1 of T on broker-a gave offset 8 where 7 must be"
        )

    def test_missingAtTheEnd(self) -> None:
        """So is one at the end of the range."""
        self.origin.records[16] = b""
        error = self.assertRaises(CountMismatch, self.offsets, self.reader(2, 17))
        self.assertEqual(
            str(error),
            "queue 1 of T on broker-a gave 14 messages for 15 offsets from 2 on",
        )

    def test_twice(self) -> None:
        """A message that comes twice is an error, even if nothing is counted."""
        self.origin.records[7] = stored(6, topic="T", queue_id=1)
        self.assertRaises(CountMismatch, self.offsets, self.reader(2, 17))
        self.assertRaises(
            CountMismatch, self.offsets, self.reader(2, 17, verify_counts=False)
        )

    def test_notCounted(self) -> None:
        """With verifyCounts off a missing message is passed over."""
        self.origin.records[7] = b""
        reader = self.reader(5, 10, verify_counts=False)
        self.assertEqual(self.offsets(reader), [5, 6, 8, 9])

    def test_tags(self) -> None:
        """Messages with other tags are left out, by the broker or here."""
        for self.origin.every in (1, 2):
            reader = self.reader(3, 10, tags=" even|| x")
            self.assertEqual(self.offsets(reader), [4, 6, 8])
            self.assertEqual(reader.rows, 3)
        self.assertEqual(self.offsets(self.reader(3, 10, tags="none")), [])

    def test_sql(self) -> None:
        """So are messages that a condition does not want."""
        for self.origin.every in (1, 2):
            reader = self.reader(3, 10, sql_filter="TAGS = 'even'")
            self.assertEqual(self.offsets(reader), [4, 6, 8])

    def test_otherQueue(self) -> None:
        """A message of another queue or topic is refused."""
        self.origin.records[7] = stored(7, topic="T", queue_id=2)
        error = self.assertRaises(CountMismatch, self.offsets, self.reader(2, 17))
        self.assertIn("another queue", str(error))
        self.origin.records[7] = stored(7, topic="U", queue_id=1)
        error = self.assertRaises(CountMismatch, self.offsets, self.reader(2, 17))
        self.assertIn("another topic", str(error))

    def test_lost(self) -> None:
        """Messages that have been deleted are data loss."""
        self.origin.first[QUEUE] = 5
        error = self.assertRaises(DataLoss, self.offsets, self.reader(2, 9))
        self.assertEqual(
            str(error),
            "the messages [2, 5) of queue 1 of T on broker-a are gone: deleted",
        )

    def test_lostAndRecorded(self) -> None:
        """With failOnDataLoss off the hole is remembered and the rest is given."""
        self.origin.first[QUEUE] = 5
        reader = self.reader(2, 9, fail_on_data_loss=False)
        self.assertEqual(self.offsets(reader), [5, 6, 7, 8])
        self.assertEqual(reader.holes, [Hole(2, 5, "deleted")])

    def test_damaged(self) -> None:
        """So is one message that is damaged, or missing, wherever it stands."""
        for bad in (b"garbage", b"", stored(3, topic="U", queue_id=1)):
            for damaged in ({2}, {7}, {8}, {16}, {2, 9, 16}):
                self.origin.records = dict.fromkeys(damaged, bad)
                reader = self.reader(2, 17, fail_on_data_loss=False)
                kept = [each for each in range(2, 17) if each not in damaged]
                self.assertEqual(self.offsets(reader), kept)
                self.assertEqual([each.start for each in reader.holes], sorted(damaged))
                self.assertTrue(all(each.reason for each in reader.holes))

    def test_damagedTogether(self) -> None:
        """Neighbours make one hole."""
        self.origin.records = dict.fromkeys(range(6, 10), b"garbage")
        reader = self.reader(2, 17, fail_on_data_loss=False)
        self.assertEqual(len(self.offsets(reader)), 11)
        ((start, until, reason),) = reader.holes
        self.assertEqual((start, until), (6, 10))
        self.assertEqual(reason, "half a record at byte 0 of 7")

    def test_queueOfMany(self) -> None:
        """Messages of a C{%LMQ%} queue have the offsets of that queue."""
        queue = Queue("%LMQ%a", "broker-a", 0)
        self.origin = MemoryOrigin({queue: 5})
        self.origin.records = {n: stored(n * 7, topic="T") for n in range(5)}
        origin: Origin = self.origin
        options = ReadOptions(topics=("%LMQ%a",))
        reader = RangeReader(origin, Range(queue, 1, 4), options)
        self.assertEqual(self.offsets(reader), [1, 2, 3])
        self.origin.records = {2: b""}
        reader = RangeReader(origin, Range(queue, 1, 4), options)
        self.assertRaises(CountMismatch, self.offsets, reader)

    def test_garbage(self) -> None:
        """Bytes that are no records are an error of theirs."""
        self.origin.records[7] = b"garbage"
        self.assertRaises(Malformed, self.offsets, self.reader(2, 17))


class SharedTests(SynchronousTestCase):
    """L{SharedOrigins}."""

    def test_shared(self) -> None:
        """An origin is opened once; of too many the one unused longest is closed."""
        made: list[MemoryOrigin] = []

        def make(options: ReadOptions) -> MemoryOrigin:
            made.append(MemoryOrigin({}))
            return made[-1]

        shared = SharedOrigins(make)
        options = [ReadOptions(store=str(number)) for number in range(MAX_OPEN + 1)]
        for each in options[:-1]:
            shared.get(each)
        self.assertIs(shared.get(ReadOptions(store="0")), made[0])
        shared.get(options[-1])
        self.assertEqual([each.closed for each in made[:3]], [False, True, False])
        self.assertEqual(len(made), MAX_OPEN + 1)

"""Reading a store's files."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.reading import RangeReader
from rocketbroker.errors import ConfigurationError, StoreError, TopicNotExist
from rocketbroker.sources.offline import StoreOrigin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import EVERYTHING, Origin
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, Wall, opened, put

QUEUE = Queue("T", "broker-a", 1)


class OfflineTests(SynchronousTestCase):
    """L{StoreOrigin}."""

    def setUp(self) -> None:
        """A store with a queue of 100 messages, stopped."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.fill(0, 100)
        self.options = ReadOptions(
            store=ROOT, topics=("T",), broker_name="broker-a", verify_counts=True
        )
        self.origin = StoreOrigin(self.options, self.disk)

    def fill(self, start: int, until: int) -> None:
        """Append messages, a second apart."""
        store = opened(self.disk, self.wall)
        for number in range(start, until):
            self.wall.now_ms += 1000
            put(store, store.queue("T", 1), b"%d" % number)
        store.close()

    def offsets(self, start: int, until: int, strict: bool = True) -> list[int]:
        """The offsets that are read of a range."""
        origin: Origin = self.origin
        options = ReadOptions(
            store=ROOT, topics=("T",), fail_on_data_loss=strict, verify_counts=True
        )
        reader = RangeReader(origin, Range(QUEUE, start, until), options)
        return [
            offset
            for layout in reader.layouts()
            for offset in layout.front["queue_offset"].tolist()
        ]

    def test_queues(self) -> None:
        """Queues go by the broker's name that was given."""
        self.assertEqual(self.origin.queues("T"), [QUEUE])
        self.assertEqual(self.origin.bounds(QUEUE), (0, 100))

    def test_unknown(self) -> None:
        """A topic that is not there, and a directory without a store, are named."""
        error = self.assertRaises(TopicNotExist, self.origin.queues, "U")
        self.assertIn("holds no queue of U", str(error))
        nowhere = ReadOptions(store="/nowhere", topics=("T",))
        self.assertRaises(StoreError, StoreOrigin, nowhere, self.disk)

    def test_topics(self) -> None:
        """Topics but the system's; what groups consumed is not there."""
        store = opened(self.disk, self.wall)
        put(store, store.queue("SCHEDULE_TOPIC_XXXX", 1), b"x")
        put(store, store.queue("broker-a", 0), b"x")
        store.close()
        self.assertEqual(StoreOrigin(self.options, self.disk).topics(), ["T"])
        self.assertRaises(ConfigurationError, self.origin.group_offset, QUEUE, "G")

    def test_range(self) -> None:
        """Exactly the messages of a range."""
        self.assertEqual(self.offsets(7, 93), list(range(7, 93)))

    def test_time(self) -> None:
        """The first message stored at a time or later."""
        last = self.wall.now_ms
        self.assertEqual(self.origin.offset_at(QUEUE, last), 99)
        self.assertEqual(self.origin.offset_at(QUEUE, last - 1500), 98)
        self.assertEqual(self.origin.offset_at(QUEUE, last + 1), 100)
        self.assertEqual(self.origin.offset_at(QUEUE, 0), 0)

    def test_grown(self) -> None:
        """What came after the files were opened is found."""
        self.fill(100, 120)
        self.assertEqual(self.offsets(90, 120), list(range(90, 120)))

    def test_beyond(self) -> None:
        """What does not exist is lost, and the rest is read."""
        self.assertEqual(self.offsets(95, 110, strict=False), list(range(95, 100)))

    def test_damaged(self) -> None:
        """A record that cannot be read is lost; those around it are read."""
        path = f"{ROOT}/commitlog/{self.disk.list(f'{ROOT}/commitlog')[0]}"
        (piece,) = self.origin.pieces(Range(QUEUE, 50, 51), EVERYTHING)
        position = self.disk.read(path).index(piece.records)
        file = self.disk.open(path)
        file.pwrite(b"\xff", position + 90)
        file.close()
        self.origin = StoreOrigin(self.options, self.disk)
        self.assertEqual(self.offsets(48, 53, strict=False), [48, 49, 51, 52])

    def test_close(self) -> None:
        """It closes its files."""
        self.origin.close()

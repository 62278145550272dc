"""Reading from brokers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import PullOffsetMoved, TopicNotExist
from rocketbroker.spark.network import NetworkOrigin
from rocketbroker.spark.options import ReadOptions
from rocketbroker.spark.origins import DataLoss, Origin
from rocketbroker.spark.ranges import Queue, Range
from rocketbroker.spark.reading import RangeReader
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command
from tests.blocking.cluster import NAME_SERVERS, Fault, MemoryCluster, hang_up

QUEUE = Queue("T", "b1", 0)


def instead(found: Command) -> Fault:
    """A fault: this answer, whatever was asked."""
    return lambda command: found


class NetworkTests(SynchronousTestCase):
    """L{NetworkOrigin}."""

    def setUp(self) -> None:
        """A broker with a queue of 200 messages."""
        self.cluster = MemoryCluster()
        self.broker = self.cluster.brokers["b1"]
        for number in range(200):
            self.broker.put("T", 0, b"%d" % number)
        self.options = ReadOptions(name_server=NAME_SERVERS, topics=("T",))
        self.origin = NetworkOrigin(self.options, self.cluster.client)

    def offsets(self, start: int, until: int, strict: bool = True) -> list[int]:
        """The offsets that are read of a range."""
        origin: Origin = self.origin
        options = ReadOptions(topics=("T",), fail_on_data_loss=strict)
        reader = RangeReader(origin, Range(QUEUE, start, until), options)
        return [
            offset
            for layout in reader.layouts()
            for offset in layout.front["queue_offset"].tolist()
        ]

    def drop(self, count: int) -> None:
        """Let the oldest messages expire."""
        del self.broker.queues["T", 0][:count]
        self.broker.first["T", 0] = count

    def test_queues(self) -> None:
        """Queues and their bounds come from brokers."""
        self.assertIn(QUEUE, self.origin.queues("T"))
        self.assertEqual(self.origin.bounds(QUEUE), (0, 200))

    def test_unknown(self) -> None:
        """A topic that nobody knows is an error."""
        self.assertRaises(TopicNotExist, self.origin.queues, "U")

    def test_range(self) -> None:
        """Exactly the messages of a range, though a pull brings 32 at most."""
        self.assertEqual(self.offsets(3, 190), list(range(3, 190)))

    def test_failure(self) -> None:
        """A connection that breaks is made again, and nothing is lost or doubled."""
        self.broker.faults = [hang_up]
        self.assertEqual(self.offsets(0, 200), list(range(200)))

    def test_time(self) -> None:
        """A search by time is the broker's; its answer stays within the bounds."""
        self.drop(50)
        self.assertEqual(self.origin.offset_at(QUEUE, 1050), 50)
        for wrong, bound in (("7", 50), ("900", 200)):
            self.broker.faults = [instead(answer(ext={"offset": wrong}))]
            self.assertEqual(self.origin.offset_at(QUEUE, 1050), bound)

    def test_expired(self) -> None:
        """Messages that have expired are lost; the rest is read."""
        self.drop(50)
        error = self.assertRaises(DataLoss, self.offsets, 40, 60)
        self.assertIn("begins at 50", str(error))
        self.assertEqual(self.offsets(40, 60, strict=False), list(range(50, 60)))
        self.assertEqual(self.offsets(10, 40, strict=False), [])

    def test_beyond(self) -> None:
        """So is what the queue does not have."""
        error = self.assertRaises(DataLoss, self.offsets, 190, 210)
        self.assertIn("ends at 200", str(error))

    def test_refused(self) -> None:
        """A broker that refuses what it says it has is not passed over."""
        options = ReadOptions(name_server=NAME_SERVERS, topics=("T",))
        origin = NetworkOrigin(options, self.cluster.client)
        moved = self.broker.pull(("T", 0), {"queueOffset": "900"})
        self.broker.faults = [instead(moved)]
        pieces = origin.pieces(Range(QUEUE, 0, 10), "*")
        self.assertRaises(PullOffsetMoved, list, pieces)

    def test_close(self) -> None:
        """Its connections are closed, and made again when it is used."""
        self.origin.close()
        self.assertEqual(self.offsets(0, 5), [0, 1, 2, 3, 4])

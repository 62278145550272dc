"""Reading from brokers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.reading import RangeReader
from rocketbroker.errors import ConnectionLost, PullOffsetMoved, TopicNotExist
from rocketbroker.records.batches import encode
from rocketbroker.sources.network import NetworkOrigin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.retry import NoAnswer
from rocketbroker.sources.source import EVERYTHING, DataLoss, Origin
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.blocking.cluster import NAME_SERVERS, Fault, MemoryCluster, hang_up
from tests.sources.messages import stored

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

    def test_batches(self) -> None:
        """Pulls from a batch queue bring whole batches, whichever of their messages
        they ask for; each message comes once."""

        def pulled(command: Command) -> Command | None:
            ext = command.ext or {}
            if command.code != RequestCode.PULL_MESSAGE:
                return None
            first = int(ext["queueOffset"]) // 5
            until = first + 1 + int(ext["maxMsgNums"]) // 5
            records = [
                stored(
                    number * 5,
                    encode([(0, b"%d" % each, b"") for each in range(5)]),
                    sys_flag=0xC0,
                )
                for number in range(first, until)
            ]
            fields = {"nextBeginOffset": str(until * 5)}
            fields |= {"minOffset": "0", "maxOffset": "200"}
            return answer(0, fields, b"".join(records))

        self.broker.faults = [pulled] * 1000
        for start, until in ((0, 200), (7, 133), (8, 9)):
            for batch_size in (1, 7, 1024):
                self.options = ReadOptions(topics=("T",), pull_batch_size=batch_size)
                self.origin = NetworkOrigin(self.options, self.cluster.client)
                self.assertEqual(self.offsets(start, until), [*range(start, until)])

    def test_queues(self) -> None:
        """Queues and their bounds come from brokers."""
        self.assertIn(QUEUE, self.origin.queues("T"))
        self.assertEqual(self.origin.bounds(QUEUE), (0, 200))

    def test_unknown(self) -> None:
        """A topic that nobody knows is an error."""
        self.assertRaises(TopicNotExist, self.origin.queues, "U")

    def test_topics(self) -> None:
        """Topics but the system's, and those named after brokers and clusters."""
        for name in ("U", "b1", "c2", "c2_REPLY_TOPIC", "RMQ_SYS_TRACE_TOPIC"):
            self.cluster.topics[name] = {"b1": 1}
        self.assertEqual(self.origin.topics(), ["T", "U"])

    def test_group(self) -> None:
        """Where a group goes on, if it has begun."""
        self.assertIsNone(self.origin.group_offset(QUEUE, "G"))
        self.broker.offsets["G", "T", 0] = 7
        self.assertEqual(self.origin.group_offset(QUEUE, "G"), 7)

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
        pieces = origin.pieces(Range(QUEUE, 0, 10), EVERYTHING)
        self.assertRaises(PullOffsetMoved, list, pieces)

    def test_restart(self) -> None:
        """A broker that is away for a while is waited for, in the middle of a range."""
        broker = self.cluster.machine.servers.pop("b1:10911")
        sleeps = 0

        def meanwhile() -> None:
            nonlocal sleeps
            sleeps += 1
            if sleeps == 400:
                self.cluster.machine.servers["b1:10911"] = broker

        self.cluster.machine.meanwhile = meanwhile
        self.assertEqual(self.offsets(0, 200), list(range(200)))
        self.assertEqual(self.origin.bounds(QUEUE), (0, 200))

    def test_gone(self) -> None:
        """One that stays away is an error with its reason, when the time is over."""
        del self.cluster.machine.servers["b1:10911"]
        before = self.cluster.machine.now
        for question in (
            lambda: self.offsets(0, 200),
            lambda: self.origin.bounds(QUEUE),
            lambda: self.origin.offset_at(QUEUE, 5),
            lambda: self.origin.group_offset(QUEUE, "G"),
        ):
            error = self.assertRaises(NoAnswer, question)
            self.assertEqual(
                str(error),
                "cannot connect to b1:10911: nobody is there (tried again for 120 s, "
                "option retryTimeout)",
            )
        self.assertApproximates(self.cluster.machine.now - before, 480, 10)

    def test_noBroker(self) -> None:
        """Where no broker is registered, all of them may be restarting."""
        topics, self.cluster.topics = self.cluster.topics, {}
        brokers, self.cluster.brokers = self.cluster.brokers, {}

        def meanwhile() -> None:
            self.cluster.topics, self.cluster.brokers = topics, brokers

        self.cluster.machine.meanwhile = meanwhile
        self.assertIn(QUEUE, self.origin.queues("T"))

    def test_noNameServer(self) -> None:
        """A name server that has never answered is not waited for, others are."""
        servers = dict.fromkeys(("ns1:9876", "ns2:9876"), self.cluster.name_server)
        for each in servers:
            del self.cluster.machine.servers[each]
        self.assertRaises(ConnectionLost, self.origin.queues, "T")
        self.assertEqual(self.cluster.machine.slept, [])
        self.cluster.machine.servers |= servers
        self.origin.queues("T")
        for each in servers:
            del self.cluster.machine.servers[each]
        self.origin.close()
        self.cluster.client.routes.forget("T")

        def meanwhile() -> None:
            self.cluster.machine.servers |= servers

        self.cluster.machine.meanwhile = meanwhile
        self.assertIn(QUEUE, self.origin.queues("T"))

    def test_close(self) -> None:
        """Its connections are closed, and made again when it is used."""
        self.origin.close()
        self.assertEqual(self.offsets(0, 5), [0, 1, 2, 3, 4])

    def test_allBounds(self) -> None:
        """One request tells of all queues; one that is left out is asked for."""
        self.drop(10)
        other = Queue("T", "b1", 3)
        found = self.origin.all_bounds([QUEUE, other])
        self.assertEqual(found, {QUEUE: (10, 200), other: (0, 0)})
        self.assertEqual(self.origin.asked, 3)

    def test_allBoundsRefused(self) -> None:
        """Where all at once is refused, queues are asked for one by one ever after."""
        self.broker.faults.append(instead(answer(16, remark="no")))
        for asked in (3, 5):
            self.assertEqual(self.origin.all_bounds([QUEUE]), {QUEUE: (0, 200)})
            self.assertEqual(self.origin.asked, asked)

    def test_commit(self) -> None:
        """A group's offset is committed, and found again."""
        self.origin.commit_offset(QUEUE, "G", 7)
        self.assertEqual(self.origin.group_offset(QUEUE, "G"), 7)

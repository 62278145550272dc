"""Settings and state of a broker, as tools ask for them."""

from __future__ import annotations

import errno

import attrs
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.runtime_info import RuntimeInfo, lasted, sized
from rocketbroker.broker.transaction.end_transaction import WARM_BYTES
from rocketbroker.config.properties import parse
from rocketbroker.errors import SystemFailure
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import WALL_MS, Rig, logged, pull_ext, send_ext
from tests.store.stores import options as store_options

#: What C{mqadmin brokerStatus} of 5.3.3 prints of its own broker, but for disks' paths
#: and delay levels.
KEYS_OF_5_3 = """
EndTransactionQueueSize EndTransactionThreadPoolQueueCapacity ackThreadPoolQueueCapacity
ackThreadPoolQueueHeadWaitTimeMills ackThreadPoolQueueSize bootTimestamp brokerActive
brokerVersion brokerVersionDesc commitLogDirCapacity commitLogDiskRatio
commitLogMaxOffset commitLogMinOffset consumeQueueDiskRatio dispatchBehindBytes
dispatchMaxBuffer earliestMessageTimeStamp getFoundTps getMessageEntireTimeMax
getMissTps getTotalTps getTransferredTps litePullThreadPoolQueueCapacity
litePullThreadPoolQueueHeadWaitTimeMills litePullThreadPoolQueueSize
msgGetTotalTodayMorning msgGetTotalTodayNow msgGetTotalYesterdayMorning
msgPutTotalTodayMorning msgPutTotalTodayNow msgPutTotalYesterdayMorning
pageCacheLockTimeMills pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills
pullThreadPoolQueueSize putLatency99 putLatency999 putMessageAverageSize
putMessageDistributeTime putMessageEntireTimeMax putMessageFailedTimes
putMessageSizeTotal putMessageTimesTotal putTps queryThreadPoolQueueCapacity
queryThreadPoolQueueHeadWaitTimeMills queryThreadPoolQueueSize remainHowManyDataToFlush
remainTransientStoreBufferNumbs runtime sendThreadPoolQueueCapacity
sendThreadPoolQueueHeadWaitTimeMills sendThreadPoolQueueSize
startAcceptSendRequestTimeStamp timerCongestNum timerDequeueTps timerEnqueueTps
timerOffsetBehind timerReadBehind
""".split()

#: What that of 4.9.7 has besides.
KEYS_OF_4_9 = ["getTransferedTps"]


class RuntimeInfoTests(SynchronousTestCase):
    """Request 28."""

    def setUp(self) -> None:
        """A broker that waits for the disk."""
        self.rig = self.make({})

    def make(self, settings: dict[str, str], threads: bool = False) -> Rig:
        """A rig that answers request 28."""
        rig = Rig(settings, threads)
        self.addCleanup(rig.close)
        if threads:
            # The figures are read at once although other reads wait.
            RuntimeInfo(
                attrs.evolve(rig.broker.context, in_thread=at_once),
                rig.broker.running,
                rig.statistics,
                rig.group_commit,
                rig.pulling,
                rig.broker.context.waiting.all[RequestCode.END_TRANSACTION].size,
                [],
            ).register(rig.table)
        return rig

    def table(self, rig: Rig | None = None) -> dict[str, str]:
        """The figures."""
        value = loads((rig or self.rig).ask(28, {}).body)
        assert isinstance(value, dict)
        found: dict[str, str] = value["table"]
        return found

    def live(self, seconds: int) -> None:
        """Let time pass, as the broker does."""
        for _ in range(seconds):
            self.rig.clock.advance(1)
            self.rig.statistics.look()

    def test_keys(self) -> None:
        """No key of RocketMQ is missing, and all values are text."""
        table = self.table()
        wanted = {*KEYS_OF_5_3, *KEYS_OF_4_9, "commitLogDiskRatio_/store/commitlog"}
        self.assertEqual(wanted - set(table), set())
        self.assertEqual({type(value) for value in table.values()}, {str})

    def test_young(self) -> None:
        """A broker that has done nothing yet says it as RocketMQ does."""
        table = self.table()
        for key in ("putTps", "getFoundTps", "getMissTps", "getTransferredTps"):
            self.assertEqual(table[key], "  ", key)
        self.assertEqual(table["getTransferedTps"], "  ")
        self.assertEqual(table["getTotalTps"], "0.00 0.00 0.00")
        self.assertEqual(table["putMessageTimesTotal"], "1")
        self.assertEqual(table["putMessageAverageSize"], "0.0")
        self.assertEqual(table["putMessageDistributeTime"], "null")
        self.assertEqual(table["earliestMessageTimeStamp"], "-1")
        self.assertEqual(table["remainHowManyDataToFlush"], "0 B")
        self.assertEqual(table["sendThreadPoolQueueHeadWaitTimeMills"], "0")

    def test_sends(self) -> None:
        """Figures follow what is sent; messages of batches count each."""
        rig = self.rig
        rig.topic("T")
        rig.ask(310, send_ext(), b"body")
        part = b"\0\0\0\x1c" + bytes(12) + b"\0\0\0\4" + b"body" + b"\0\4K\x01v\x02"
        part = len(part).to_bytes(4, "big") + part[4:]
        rig.ask(320, send_ext(m="true"), part * 3)
        self.live(61)
        table = self.table()
        size = rig.store.published_position
        self.assertEqual(table["putMessageTimesTotal"], "4")
        self.assertEqual(table["msgPutTotalTodayNow"], "4")
        self.assertEqual(table["putMessageSizeTotal"], str(size))
        self.assertEqual(table["putMessageAverageSize"], str(size / 4))
        self.assertEqual(table["putTps"], "0.00 0.00 ")
        self.assertIn("[<=0ms]:2 ", table["putMessageDistributeTime"])
        self.assertEqual(table["earliestMessageTimeStamp"], str(WALL_MS))
        self.assertEqual(table["commitLogMaxOffset"], str(size))
        self.assertEqual(table["runtime"], "[ 0 days, 0 hours, 1 minutes, 1 seconds ]")
        self.assertEqual(table["brokerVersion"], "479")

    def test_pulls(self) -> None:
        """Reads that find something and those that do not are told apart."""
        rig = self.rig
        rig.topic("T")
        rig.ask(310, send_ext(), b"body")
        rig.ask(310, send_ext(), b"body")
        for offset in (0, 1, 2):
            rig.ask(11, pull_ext(offset))
        self.assertTrue(rig.hot(11, pull_ext(0)))
        self.assertTrue(rig.hot(11, pull_ext(2)))
        self.live(10)
        table = self.table()
        self.assertEqual(table["msgGetTotalTodayNow"], "5")
        self.assertEqual(rig.pulling.found(), 3)
        self.assertEqual(rig.pulling.missed, 2)

    def test_rates(self) -> None:
        """Events of ten seconds make a rate."""
        rig = self.rig
        rig.topic("T")
        self.live(5)
        rig.ask(310, send_ext(), b"body")
        rig.ask(11, pull_ext(0))
        rig.ask(11, pull_ext(1))
        self.live(5)
        table = self.table()
        self.assertEqual(table["putTps"], "0.10  ")
        self.assertEqual(table["getFoundTps"], "0.10  ")
        self.assertEqual(table["getMissTps"], "0.10  ")
        self.assertEqual(table["getTotalTps"], "0.20 0.00 0.00")
        self.assertEqual(table["getTransferredTps"], "0.10  ")

    def test_forgotten(self) -> None:
        """A total does not fall with a topic that is deleted."""
        rig = self.rig
        rig.topic("T")
        rig.topic("U")
        rig.ask(310, send_ext(), b"body")
        rig.topics.delete("T")
        rig.ask(310, send_ext("U"), b"body")
        rig.hot(310, send_ext("U"), b"body")
        self.assertEqual(rig.sending.forgotten_messages, 1)
        self.assertEqual(self.table()["msgPutTotalTodayNow"], "2")

    def test_delays(self) -> None:
        """A delayed message comes in when it is delivered; each level that had one says
        how far it is."""
        rig = self.rig
        rig.topic("T")
        rig.schedule.start()
        rig.ask(310, send_ext(properties="DELAY\x013\x02"), b"body")
        self.live(1)
        table = self.table()
        self.assertEqual(table["scheduleMessageOffset_3"], "0,1")
        self.assertNotIn("scheduleMessageOffset_2", table)
        self.assertEqual(table["msgPutTotalTodayNow"], "0")
        for _ in range(100):
            rig.clock.advance(0.1)
        table = self.table()
        self.assertEqual(table["scheduleMessageOffset_3"], "1,1")
        self.assertEqual(table["msgPutTotalTodayNow"], "1")
        self.assertEqual(table["putMessageTimesTotal"], "2")

    def test_days(self) -> None:
        """Another day begins with what the days before have brought."""
        rig = self.rig
        rig.topic("T")
        rig.ask(310, send_ext(), b"body")
        for put in ("1", "2"):
            rig.clock.advance(86_400)
            lines = logged(self.rig.statistics.look)
            self.assertEqual(
                lines,
                ["yesterday put message total: 1", "yesterday get message total: 0"],
            )
            table = self.table()
            self.assertEqual(table["msgPutTotalTodayMorning"], put)
            rig.ask(310, send_ext(), b"body")
        self.assertEqual(table["msgPutTotalYesterdayMorning"], "1")

    def test_waiting(self) -> None:
        """With SYNC_FLUSH, sends that wait for the disk are a queue, and what they have
        waited is their time."""
        rig = self.rig = self.make({"flushDiskType": "SYNC_FLUSH"}, True)
        rig.topic("T")
        rig.begin(310, send_ext(), b"body")
        rig.batcher.flush()
        rig.clock.advance(0.3)
        table = self.table()
        self.assertEqual(table["sendThreadPoolQueueSize"], "1")
        self.assertEqual(table["sendThreadPoolQueueHeadWaitTimeMills"], "300")
        self.assertTrue(table["remainHowManyDataToFlush"].endswith(" B"))
        rig.threads.run()
        self.live(60)
        table = self.table()
        self.assertEqual(table["sendThreadPoolQueueSize"], "0")
        self.assertEqual(table["putMessageEntireTimeMax"], "300")
        self.assertIn("[200~500ms]:1 ", table["putMessageDistributeTime"])
        self.assertEqual(table["putLatency99"], "349.50")

    def test_coldPulls(self) -> None:
        """Pulls that wait for the disk are a queue."""
        rig = self.rig = self.make({"accessMessageInMemoryMaxRatio": "0"}, True)
        rig.topic("T")
        rig.append()
        rig.scheduler.dispatch()
        rig.begin(11, pull_ext(0))
        rig.clock.advance(0.2)
        table = self.table()
        self.assertEqual(table["pullThreadPoolQueueSize"], "1")
        self.assertEqual(table["pullThreadPoolQueueHeadWaitTimeMills"], "200")
        rig.threads.run()
        self.assertEqual(self.table()["pullThreadPoolQueueSize"], "0")
        self.assertEqual(rig.pulling.found(), 1)

    def test_transactionEnds(self) -> None:
        """So are ends of transactions that wait for a thread, to read far back."""
        rig = self.rig = self.make({}, True)
        far = str(-WARM_BYTES - 1)
        ext = {"producerGroup": "P", "tranStateTableOffset": "0", "msgId": "U"}
        ext |= {"commitLogOffset": far, "commitOrRollback": "8"}
        done = rig.begin(37, ext)
        self.assertEqual(self.table()["EndTransactionQueueSize"], "1")
        rig.threads.run()
        self.assertEqual(self.table()["EndTransactionQueueSize"], "0")
        assert isinstance(done, Deferred)
        self.failureResultOf(done, SystemFailure)

    def test_pool(self) -> None:
        """As many buffers are left as without a transient store pool, for there is
        none; what is stored can be read at once."""
        self.rig = self.make({"transientStorePoolEnable": "true"})
        self.rig.append(b"x" * 2000)
        table = self.table()
        self.assertEqual(table["remainTransientStoreBufferNumbs"], "2147483647")
        self.assertNotEqual(table["commitLogMaxOffset"], "0")

    def test_disks(self) -> None:
        """Ratios are rounded up to percents; the plain one is that of the emptiest."""
        self.rig.disk.capacity = 1 << 20
        used = self.rig.disk.used()
        self.rig.store.measure_disk()
        table = self.table()
        percent = -(-used * 100 // (1 << 20)) / 100
        self.assertEqual(table["commitLogDiskRatio"], str(percent))
        self.assertEqual(table["consumeQueueDiskRatio"], str(percent))
        self.assertEqual(
            table["commitLogDirCapacity"],
            f"Total : 1.0 MiB, Free : {sized((1 << 20) - used)}.",
        )

    def test_noDisk(self) -> None:
        """A disk that does not say how full it is has the ratio -1.0."""
        self.rig.disk.fail("usage", errno.EIO, times=10)
        self.rig.store.measure_disk()
        table = self.table()
        self.assertEqual(table["commitLogDiskRatio"], "-1.0")
        self.assertEqual(table["commitLogDirCapacity"], "Total : 0 B, Free : 0 B.")

    def test_defaultPath(self) -> None:
        """The log lies in the root unless it is said."""
        root = store_options().store_path_root_dir
        self.assertIn(f"commitLogDiskRatio_{root}/commitlog", self.table())

    def test_sizes(self) -> None:
        """Sizes have units of 1024, with one decimal above the first."""
        for count, text in (
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 << 10, "1.5 MiB"),
            (3 << 30, "3.0 GiB"),
            (5 << 40, "5.0 TiB"),
        ):
            self.assertEqual(sized(count), text)

    def test_times(self) -> None:
        """A time is days, hours, minutes and seconds."""
        text = "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"
        self.assertEqual(lasted(90_061_999), text)


class SettingsTests(SynchronousTestCase):
    """Request 26."""

    def test_settings(self) -> None:
        """All keys of all parts, and those that nobody knows, as properties."""
        settings = {"brokerName": "b", "fileReservedTime": "9", "myKey": "my value"}
        rig = Rig(settings)
        self.addCleanup(rig.close)
        answer = rig.ask(26, {})
        known = parse(answer.body.decode())
        self.assertEqual(known["brokerName"], "b")
        self.assertEqual(known["fileReservedTime"], "9")
        self.assertEqual(known["listenPort"], "10911")
        self.assertEqual(known["connectTimeoutMillis"], "3000")
        self.assertEqual(known["myKey"], "my value")
        assert answer.ext is not None
        self.assertIn('"counter":0', answer.ext["version"])

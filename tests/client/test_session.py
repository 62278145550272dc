"""The simple face on the memory runtime: what all three faces do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.local_offsets import OffsetFolder
from rocketbroker.client.received import ReceivedMessage
from rocketbroker.client.session import Session
from rocketbroker.client.settings import ClientSettings, ProducerSettings
from rocketbroker.errors import ClientClosed, ConfigurationError, MessageIllegal
from rocketbroker.records.hashing import java_hash
from rocketbroker.records.names import retry_topic
from rocketbroker.testing.puppet_cluster import PuppetCluster
from rocketbroker.testing.runtime import Cancelled, MemoryRuntime
from tests.client.cluster import ClientCluster


class SessionTests(SynchronousTestCase):
    """Send, iterate, listen."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.mq = self.here.session()

    def bodies(self, topic: str = "T") -> list[bytes]:
        """What the broker has stored."""
        return [message.body for message in self.here.broker().stored(topic)]

    def test_sentMessageHasWhatWasGiven(self) -> None:
        """Tag, keys, properties."""
        sending = self.mq.send(
            "T", "hello", tag="paid", keys=["k1"], properties={"u": "v"}
        )
        result = self.runtime.finish(sending)
        (stored,) = self.here.broker().stored("T")
        self.assertEqual((stored.body, stored.tags), (b"hello", "paid"))
        self.assertEqual((stored.keys, stored.properties["u"]), (["k1"], "v"))
        self.assertEqual(result.status, 0)

    def test_deliveryIsDelayedInThreeWays(self) -> None:
        """A level of the broker's, a time, or a span."""
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        send = self.mq.send
        self.runtime.finish(send("T", "1", delay_level=3))
        self.runtime.finish(send("T", "2", at=moment))
        self.runtime.finish(send("T", "3", at=moment.timestamp()))
        self.runtime.finish(send("T", "4", delay=timedelta(minutes=1)))
        self.runtime.finish(send("T", "5", delay=0.5))
        text = {one.body: one.properties for one in self.here.broker().stored("T")}
        ms = str(round(moment.timestamp() * 1000))
        self.assertEqual(text[b"1"]["DELAY"], "3")
        self.assertEqual(text[b"2"]["TIMER_DELIVER_MS"], ms)
        self.assertEqual(text[b"3"]["TIMER_DELIVER_MS"], ms)
        self.assertEqual(text[b"4"]["TIMER_DELAY_MS"], "60000")
        self.assertEqual(text[b"5"]["TIMER_DELAY_MS"], "500")
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(send("T", "6", delay=1, delay_level=1))

    def test_messageThatWaitsIsTakenBack(self) -> None:
        """By the handle of its send; anything else is none."""
        result = self.runtime.finish(self.mq.send("T", "later", delay=60))
        handle = result.recall_handle
        assert handle is not None
        found = self.runtime.finish(self.mq.recall("T", handle))
        self.assertEqual(found, result.message_id)
        self.assertEqual(self.here.broker().recalled, [handle])
        plain = self.runtime.finish(self.mq.send("T", "now"))
        self.assertIsNone(plain.recall_handle)
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(self.mq.recall("T", result.message_id))
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(self.mq.recall("T", plain.recall_handle))

    def test_orderKeyChoosesTheQueue(self) -> None:
        """Always the same one, that of Java's hash selector."""
        self.here.cluster.topics["T"] = {"b1": 8}
        for key in ("a", "Zürich", "order-17"):
            results = [
                self.runtime.finish(self.mq.send("T", "x", order_key=key))
                for _ in range(2)
            ]
            expected = abs(java_hash(key)) % 8
            self.assertEqual({one.queue.queue_id for one in results}, {expected})

    def test_iterationEndsWithTheContext(self) -> None:
        """Messages come as long as it lasts."""
        self.here.put("1", "2", "3")

        async def read() -> list[str]:
            found = []
            async with self.mq.consumer("T", "G", start="earliest") as messages:
                async for message in messages:
                    found.append(message.text)
                    await message.ack()
                    if len(found) == 2:
                        break
            return found

        self.assertEqual(self.runtime.finish(read()), ["1", "2"])
        self.assertEqual(self.here.broker().offsets["G", "T", 0], 2)
        self.assertEqual(self.here.broker().members("G"), [])

    def test_cancelledReaderLeavesTheGroup(self) -> None:
        """Nothing is left half done."""
        self.here.put("1")

        async def read() -> None:
            async with self.mq.consumer("T", "G", start="earliest") as messages:
                async for message in messages:
                    await message.ack()

        reading = self.runtime.start(read())
        self.runtime.settle()
        self.assertEqual(len(self.here.broker().members("G")), 1)
        reading.cancel()
        self.runtime.settle()
        self.assertRaises(Cancelled, reading.value)
        self.assertEqual(self.here.broker().members("G"), [])
        self.assertEqual(self.here.broker().offsets["G", "T", 0], 1)

    def test_closedSessionEndsIteration(self) -> None:
        """From another task; whoever reads sees the end, not an error."""

        async def read() -> list[str]:
            async with self.mq.consumer("T", "G") as messages:
                return [message.text async for message in messages]

        reading = self.runtime.start(read())
        self.runtime.settle()
        self.runtime.finish(self.mq.close())
        self.assertEqual(reading.value(), [])
        with self.assertRaises(ClientClosed):
            self.runtime.finish(self.mq.send("T", "x"))
        with self.assertRaises(ClientClosed):
            self.mq.consumer("T", "G")
        self.assertEqual(self.runtime.links, [])

    def test_twoConsumersOfOneSessionAreTwoMembers(self) -> None:
        """Of one group in one process."""

        async def read() -> list[int]:
            one, other = (self.mq.consumer("T", "G") for _ in range(2))
            async with one as first, other as second:
                await self.runtime.sleep(3.0)
                kept = [
                    [queue for queue in each.queues if queue.topic == "T"]
                    for each in (first, second)
                ]
                return [len(queues) for queues in kept]

        reading = self.runtime.start(read())
        self.assertEqual(self.here.until(reading), [1, 1])

    def test_sessionsOfTwoClustersKnowNothingOfEachOther(self) -> None:
        """In one process, with a topic and a group of the same names."""
        other = PuppetCluster(self.runtime, "x1", names="ns2:9876")
        other.topics["T"] = {"x1": 1}
        settings = ClientSettings(name_servers=("ns2:9876",))
        folder = OffsetFolder(self.here.disk, "/home")
        there = Session(self.runtime, settings, ProducerSettings(), lambda: folder)
        found: dict[str, list[str]] = {"here": [], "there": []}

        async def listen(name: str, mq: Session) -> None:
            async def handle(message: ReceivedMessage) -> None:
                found[name].append(message.text)

            mq.on("T", group="G", start="earliest")(handle)
            async with mq:
                await mq.send("T", name)
                await mq.run()

        runs = [
            self.runtime.start(listen(name, mq))
            for name, mq in (("here", self.mq), ("there", there))
        ]
        self.here.wait(lambda: bool(found["here"] and found["there"]))
        self.runtime.advance(60.0)
        self.assertEqual(found, {"here": ["here"], "there": ["there"]})
        members = [self.here.broker().members("G"), other.brokers["x1"].members("G")]
        self.assertEqual([len(each) for each in members], [1, 1])
        self.assertNotEqual(*members)
        for one in (self.mq, there):
            one.stop()
        self.here.wait(lambda: all(run.ended for run in runs))

    def test_nextWaitsNoLongerThanItIsTold(self) -> None:
        """None, then, and the stream goes on."""

        async def read() -> list[str | None]:
            found: list[str | None] = []
            async with self.mq.consumer("T", "G", start="earliest") as messages:
                for _ in range(2):
                    message = await messages.next(timeout=1.0)
                    found.append(message.text if message else None)
                    self.here.put("1")
            return found

        self.assertEqual(self.here.until(self.runtime.start(read())), [None, "1"])


class ListenerTests(SynchronousTestCase):
    """C{on}, C{run}, C{stop}."""

    def setUp(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new cluster, and a session."""
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.mq = self.here.session()
        self.seen: list[str] = []
        self.addCleanup(self.end, self.runtime, self.mq)

    def end(self, runtime: MemoryRuntime, mq: Session) -> None:
        """Let nothing run when the test is over."""
        mq.stop()
        runtime.advance(20.0)

    def listen(self, listener: Callable[[ReceivedMessage], object]) -> None:
        """Give messages of topic T to a listener."""
        self.mq.on("T", group="G", start="earliest", concurrency=2)(listener)

    def test_returnAcknowledgesAndErrorRetries(self) -> None:
        """The error is logged, with the message."""

        async def handle(message: ReceivedMessage) -> None:
            self.seen.append(message.text)
            if message.text == "bad" and message.attempt == 1:
                raise ValueError("no")

        self.listen(handle)
        self.here.put("good", "bad")
        running = self.runtime.start(self.mq.run())
        with self.assertLogs("rocketbroker.client", "ERROR"):
            self.runtime.settle()
        self.here.wait(lambda: self.seen.count("bad") == 2)
        self.mq.stop()
        self.runtime.settle()
        running.value()
        self.assertEqual(self.here.broker().offsets["G", "T", 0], 2)
        self.assertEqual(self.here.broker().offsets["G", retry_topic("G"), 0], 1)

    def test_plainFunctionListensToo(self) -> None:
        """It is called in the loop."""
        self.listen(lambda message: self.seen.append(message.text))
        self.here.put("1", "2")
        self.runtime.start(self.mq.run())
        self.runtime.settle()
        self.assertEqual(self.seen, ["1", "2"])

    def test_noMoreThanSoManyAreInHand(self) -> None:
        """The others wait until one is done."""

        async def handle(message: ReceivedMessage) -> None:
            self.seen.append(message.text)
            await self.runtime.sleep(10.0)

        self.listen(handle)
        self.here.put("1", "2", "3")
        self.runtime.start(self.mq.run())
        self.runtime.settle()
        self.assertEqual(self.seen, ["1", "2"])
        self.runtime.advance(10.0)
        self.assertEqual(self.seen, ["1", "2", "3"])

    def test_stopFinishesWhatIsInHand(self) -> None:
        """By C{stop}, by SIGTERM, by cancellation: the message is acknowledged, no
        other one is begun, and the group is left."""
        for number, stop in enumerate(("stop", "terminate", "cancel")):
            self.begin()

            async def handle(message: ReceivedMessage) -> None:
                self.seen.append(f"begun {message.text}")
                await self.runtime.sleep(5.0)
                self.seen.append(f"done {message.text}")

            self.mq.on("T", group="G", start="earliest", concurrency=1)(handle)
            self.here.put("1", "2")
            running = self.runtime.start(self.mq.run())
            self.runtime.advance(1.0)
            if number == 2:
                running.cancel()
            else:
                (self.mq.stop, self.runtime.terminate)[number]()
            self.runtime.advance(1.0)
            self.assertFalse(running.ended, stop)
            self.runtime.advance(5.0)
            self.assertTrue(running.ended, stop)
            self.assertEqual(self.seen, ["begun 1", "done 1"], stop)
            self.assertEqual(self.here.broker().offsets["G", "T", 0], 1, stop)
            self.assertEqual(self.here.broker().members("G"), [], stop)

    def test_nothingToRunIsAMistake(self) -> None:
        """It says what to do."""
        with self.assertRaises(ConfigurationError):
            self.runtime.finish(self.mq.run())

"""Sending, while servers come and go."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import (
    ConnectionLost,
    MessageIllegal,
    NoPermission,
    RequestTimeout,
    SystemBusy,
    TopicNotExist,
)
from rocketbroker.records.outgoing import Message
from rocketbroker.testing.puppet_cluster import Fault, hang_up, refuse, silent
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

SEND = RequestCode.SEND_MESSAGE_V2


class ProducerTests(SynchronousTestCase):
    """One message after the other."""

    def setUp(self) -> None:
        self.here = ClientCluster()
        self.runtime = self.here.runtime
        self.producer = self.here.producer()

    def stored(self, topic: str = "T") -> list[str]:
        """The bodies of all messages of all brokers."""
        return [
            message.body.decode()
            for broker in self.here.cluster.brokers.values()
            for message in broker.stored(topic)
        ]

    def faults(self, broker: str, *faults: Fault) -> None:
        """What goes wrong with the next sends to a broker."""
        self.here.broker(broker).faults[SEND] = list(faults)

    def test_messageIsStored(self) -> None:
        """The result says where, under the id that readers see."""
        message = Message("T", "hello", tags="paid", keys=["k1"])
        result = self.runtime.finish(self.producer.send(message))
        (found,) = self.here.broker(result.queue.broker).stored("T")
        self.assertEqual((found.tags, found.keys), ("paid", ["k1"]))
        self.assertEqual(found.message_id, result.message_id)
        self.assertEqual(result.offset_ids, (found.offset_id,))
        self.assertEqual(found.queue_id, result.queue.queue_id)

    def test_queuesAreUsedInTurn(self) -> None:
        """Four messages go to four queues."""
        results = [
            self.runtime.finish(self.producer.send(Message("T", str(n))))
            for n in range(4)
        ]
        self.assertEqual(len({result.queue for result in results}), 4)

    def test_anotherBrokerIsTried(self) -> None:
        """After a lost connection, after silence, and after a refusal for now."""
        for fault in (hang_up, silent, refuse(2)):
            self.faults("b1", fault)
            self.faults("b2", fault)
            sending = self.runtime.start(self.producer.send(Message("T", "x")))
            self.here.until(sending)
        self.assertEqual(self.producer.retries, 6)
        self.assertEqual(self.stored(), ["x"] * 3)

    def test_refusalForGoodIsRaised(self) -> None:
        """At once, with the broker's words."""
        self.faults("b1", *[refuse(13)] * 9)
        self.faults("b2", *[refuse(13)] * 9)
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(self.producer.send(Message("T", "x")))
        self.assertEqual(self.producer.retries, 0)

    def test_refusalForNowIsTriedAsOftenAsTheSettingsSay(self) -> None:
        """Three times unless said otherwise."""
        for broker in ("b1", "b2"):
            self.faults(broker, *[refuse(2)] * 9)
        sending = self.runtime.start(self.producer.send(Message("T", "x")))
        self.here.wait(lambda: sending.ended)
        self.assertRaises(SystemBusy, sending.value)
        self.assertEqual(self.runtime.codes().count(SEND), 3)

    def test_restartOfAllBrokersIsRiddenOver(self) -> None:
        """It is said once of each that it is away, and once that one is back; the send
        ends within five seconds of that."""
        self.runtime.finish(self.producer.send(Message("T", "before")))
        for broker in ("b1", "b2"):
            self.here.cluster.stop(broker)
        with self.assertLogs("rocketbroker.client", "INFO") as logs:
            sending = self.runtime.start(self.producer.send(Message("T", "after")))
            self.runtime.advance(60.0)
            self.assertFalse(sending.ended)
            self.here.cluster.start("b2")
            self.assertLess(self.here.wait(lambda: sending.ended), 5.0)
        self.assertEqual(len(logs.output), 3, logs.output)
        self.assertEqual(sorted(self.stored()), ["after", "before"])

    def test_oneTimeoutBoundsAllTries(self) -> None:
        """The last failure is raised."""
        self.runtime.finish(self.producer.send(Message("T", "before")))
        for broker in ("b1", "b2"):
            self.here.cluster.stop(broker)
        late = self.runtime.start(self.producer.send(Message("T", "x"), timeout=4.0))
        passed = self.here.wait(lambda: late.ended)
        self.assertRaises(ConnectionLost, late.value)
        self.assertLess(passed, 4.1)
        patient = self.runtime.start(self.producer.send(Message("T", "x")))
        self.assertGreater(self.here.wait(lambda: patient.ended), 110.0)

    def test_silentBrokersEndInATimeout(self) -> None:
        """Each try waits no longer than a request may take."""
        for broker in ("b1", "b2"):
            self.faults(broker, *[silent] * 9)
        late = self.runtime.start(self.producer.send(Message("T", "x"), timeout=5.0))
        self.assertLess(self.here.wait(lambda: late.ended), 5.2)
        self.assertRaises(RequestTimeout, late.value)

    def test_nameServerIsNotNeededForWhatIsKnown(self) -> None:
        """Sends go on while it is away."""
        self.runtime.finish(self.producer.send(Message("T", "1")))
        del self.runtime.servers["ns:9876"]
        self.runtime.cut("ns:9876")
        self.faults("b1", hang_up)
        self.faults("b2", hang_up)
        self.here.until(self.runtime.start(self.producer.send(Message("T", "2"))))
        self.assertEqual(len(self.stored()), 2)

    def test_newTopicIsCreatedByTheFirstSend(self) -> None:
        """Where brokers create topics."""
        self.runtime.finish(self.producer.send(Message("New", "x")))
        self.assertEqual(self.stored("New"), ["x"])

    def test_chosenQueueIsKept(self) -> None:
        """A send to a queue is tried there and nowhere else."""
        first = self.runtime.finish(self.producer.send(Message("T", "x")))
        self.faults(first.queue.broker, refuse(2))
        again = self.runtime.start(self.producer.send(Message("T", "y"), first.queue))
        self.assertEqual(self.here.until(again).queue, first.queue)

    def test_idleConnectionThatWasClosedIsMadeAgain(self) -> None:
        """Nobody sees it: no try has failed."""
        self.runtime.finish(self.producer.send(Message("T", "1")))
        for broker in ("b1", "b2"):
            self.runtime.cut(f"{broker}:10911")
        self.runtime.advance(120.0)
        self.runtime.finish(self.producer.send(Message("T", "2")))
        self.assertEqual(self.producer.retries, 0)

    def test_groupIsToldInHeartbeats(self) -> None:
        """A producer of a group of its own is known to brokers, and says farewell."""
        producer = self.here.producer(group="PG")
        self.runtime.finish(producer.send(Message("T", "1")))
        codes = self.runtime.codes()
        self.assertIn(RequestCode.HEART_BEAT, codes)
        self.runtime.finish(producer.close())
        self.assertIn(RequestCode.UNREGISTER_CLIENT, self.runtime.codes())

    def test_unknownTopicIsAnErrorWhereNobodyCreatesIt(self) -> None:
        """After a few tries, because a topic may be very new."""
        here = ClientCluster("b1")
        here.runtime.servers["ns:9876"] = lambda link, command: refuse(17)(command)
        sending = here.runtime.start(here.producer().send(Message("No", "x")))
        self.assertLess(here.wait(lambda: sending.ended), 1.0)
        self.assertRaises(TopicNotExist, sending.value)

    def test_permissionIsTried(self) -> None:
        """A broker that may not be written now is left for another one."""
        self.faults("b1", refuse(16), refuse(16), refuse(16))
        self.faults("b2", refuse(16), refuse(16), refuse(16))
        sending = self.runtime.start(self.producer.send(Message("T", "x")))
        self.here.wait(lambda: sending.ended)
        self.assertRaises(NoPermission, sending.value)


class BatchTests(SynchronousTestCase):
    """Several messages in one request, and requests without an answer."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.producer = self.here.producer(batch_bytes=1000)

    def sizes(self) -> list[int]:
        """How many messages each result is about."""
        return [self.runtime.codes().count(code) for code in (310, 320)]

    def test_batchIsSplitBySize(self) -> None:
        """As few requests as the sizes allow, in order."""
        messages = [Message("T", b"x" * 300, keys=str(n)) for n in range(10)]
        results = self.runtime.finish(self.producer.send_batch(messages))
        self.assertEqual([len(one.message_ids) for one in results], [2] * 5)
        self.assertEqual(self.sizes(), [0, 5])
        stored = {one.message_id for one in self.here.broker().stored("T")}
        told = [each for one in results for each in one.message_ids]
        self.assertEqual((set(told), len(told)), (stored, 10))

    def test_messageThatRestsGoesAlone(self) -> None:
        """Brokers take none in a batch."""
        messages = [Message("T", "1"), Message("T", "2", delay_level=1)]
        results = self.runtime.finish(self.producer.send_batch(messages))
        self.assertEqual(len(results), 2)
        self.assertEqual(self.sizes(), [2, 0])

    def test_batchHasOneTopic(self) -> None:
        """Otherwise nothing is sent."""
        messages = [Message("T", "1"), Message("U", "2")]
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(self.producer.send_batch(messages))
        self.assertEqual(self.sizes(), [0, 0])

    def test_onewayIsStoredWithoutAnAnswer(self) -> None:
        """The request says that none is wanted."""
        self.runtime.finish(self.producer.send_oneway(Message("T", "1")))
        self.runtime.settle()
        self.assertEqual(len(self.here.broker().stored("T")), 1)
        (sent,) = (one for _, one in self.runtime.requests if one.code == SEND)
        self.assertTrue(sent.is_oneway)

    def test_largeBodiesAreCompressed(self) -> None:
        """From a size on, in the way that is asked for."""
        for kind in ("zlib", "lz4", "zstd"):
            producer = self.here.producer(compress=kind, compress_over=100)
            self.runtime.finish(producer.send(Message("T", b"a" * 5000)))
        for message in self.here.broker().stored("T"):
            self.assertLess(len(message.body), 200)
            self.assertEqual(message.plain_body(), b"a" * 5000)

    def test_unsafelyStoredMessageIsSentElsewhereIfAskedFor(self) -> None:
        """Unless every broker stores it so; then the result says it."""
        unsafe = self.here.producer(retry_unsafe=True)
        fields = {"msgId": "A", "queueId": "0", "queueOffset": "0"}
        for count in (1, 9):
            faults = [lambda command: answer(10, fields)] * count
            self.here.broker().faults[SEND] = [*faults]
            sending = self.runtime.start(unsafe.send(Message("T", "x")))
            status = self.here.until(sending).status
            self.assertEqual(status, 0 if count == 1 else 10)

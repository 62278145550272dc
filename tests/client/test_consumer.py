"""One member of a group: what becomes of each message."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ClientClosed, TopicNotExist
from rocketbroker.records.names import dlq_topic, retry_topic
from rocketbroker.records.properties import ORIGIN_MESSAGE_ID, RETRY_TOPIC
from rocketbroker.testing.puppet_cluster import refuse
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

BACK = RequestCode.CONSUMER_SEND_MSG_BACK


class ConsumerTests(SynchronousTestCase):
    """One member."""

    def setUp(self) -> None:
        self.here = ClientCluster()
        self.runtime = self.here.runtime

    def committed(self, queue: int = 0, broker: str = "b1") -> int | None:
        """What the broker knows of the group's progress."""
        return self.here.broker(broker).offsets.get(("G", "T", queue))

    def test_messagesOfAllQueuesCome(self) -> None:
        """What is there, and what comes later, without any time passing."""
        self.here.put("1", "2")
        self.here.put("3", queue=1, broker="b2")
        consumer = self.here.started()
        self.assertEqual(self.here.texts(consumer), ["1", "2", "3"])
        self.here.put("4")
        self.assertEqual(self.here.texts(consumer), ["4"])
        self.runtime.advance(60.0)
        self.here.put("5", broker="b2")
        self.assertEqual(self.here.texts(consumer), ["5"])

    def test_firstUnacknowledgedMessageIsCommitted(self) -> None:
        """Every five seconds; acknowledgements behind it wait for it."""
        self.here.put("1", "2", "3")
        consumer = self.here.started()
        first, second, third = self.here.all_of(consumer)
        for message in (second, third):
            self.runtime.finish(message.ack())
        self.runtime.advance(5.0)
        self.assertEqual(self.committed(), 0)
        self.runtime.finish(first.ack())
        self.runtime.advance(5.0)
        self.assertEqual(self.committed(), 3)

    def test_messageHasWhatWasSent(self) -> None:
        """Body, tag, keys, times, place."""
        text = {"UNIQ_KEY": "ID", "TAGS": "paid", "KEYS": "k1 k2", "u": "v"}
        self.here.broker().put("T", 1, "grün".encode(), text)
        message = self.here.take(self.here.started())
        self.assertEqual((message.text, message.tag), ("grün", "paid"))
        self.assertEqual((message.keys, message.message_id), (["k1", "k2"], "ID"))
        self.assertEqual((message.topic, message.offset), ("T", 0))
        self.assertEqual((message.queue.queue_id, message.attempt), (1, 1))
        self.assertEqual((message.sent_at, message.stored_at), (0.005, 1.0))
        self.assertEqual(message.properties["u"], "v")

    def test_leavingCommitsAndSaysFarewell(self) -> None:
        """What is not acknowledged is there for whoever comes next."""
        self.here.put("1", "2", "3")
        consumer = self.here.started()
        first, second, _ = self.here.all_of(consumer)
        self.runtime.finish(first.ack())
        self.runtime.finish(consumer.close())
        self.assertEqual(self.committed(), 1)
        # Not by the end of its connections alone.
        self.assertIn(RequestCode.UNREGISTER_CLIENT, self.runtime.codes())
        self.assertEqual(self.here.broker().members("G"), [])
        self.assertEqual(self.runtime.links, [])
        with self.assertRaises(ClientClosed):
            self.runtime.finish(second.ack())
        with self.assertRaises(ClientClosed):
            self.runtime.finish(consumer.next())
        following = self.here.started()
        self.assertEqual(self.here.texts(following), ["2", "3"])

    def test_readerIsToldOfTheEnd(self) -> None:
        """One that waits is not left waiting; closing twice is closing once."""
        consumer = self.here.started()
        waiting = self.runtime.start(consumer.next())
        self.runtime.settle()
        self.runtime.finish(consumer.close())
        self.assertRaises(ClientClosed, waiting.value)
        self.runtime.finish(consumer.close())

    def test_prefetchIsBounded(self) -> None:
        """Thirty-two messages of a queue wait, whatever there is."""
        self.here.put(*(str(n) for n in range(100)))
        consumer = self.here.started()
        (queue,) = (one for one in consumer.queues.values() if len(one))
        self.assertEqual(len(queue), 32)
        for _ in range(40):
            self.runtime.finish(self.here.take(consumer).ack())
        self.assertLessEqual(len(queue), 64)
        self.assertEqual(len(self.here.all_of(consumer)), 60)

    def test_retryComesAgainLater(self) -> None:
        """As a message of the same topic, with the number of the attempt."""
        self.here.put("1", "2")
        consumer = self.here.started()
        first, second = self.here.all_of(consumer)
        self.runtime.finish(first.retry())
        self.runtime.finish(second.ack())
        self.runtime.advance(5.0)
        self.assertEqual(self.committed(), 2)
        self.here.wait(lambda: consumer.received == 2 and self.has_retry(consumer))
        again = self.here.take(consumer)
        self.assertEqual((again.text, again.topic, again.attempt), ("1", "T", 2))
        self.assertEqual(again.queue.topic, retry_topic("G"))

    def has_retry(self, consumer: object) -> bool:
        """Whether a message of the retry topic is there to be taken."""
        queues = getattr(consumer, "queues")  # noqa: B009
        return any(
            len(one) and key.topic == retry_topic("G") for key, one in queues.items()
        )

    def test_deadLetterIsPutAside(self) -> None:
        """At once, whatever the number of attempts."""
        self.here.put("1")
        consumer = self.here.started()
        self.runtime.finish(self.here.take(consumer).dead_letter())
        (dead,) = self.here.broker().stored(dlq_topic("G"))
        self.assertEqual(dead.body, b"1")

    def test_messageThatCannotBeSentBackGoesToTheRetryTopic(self) -> None:
        """Sent as an ordinary message, as Java's clients do it."""
        self.here.put("1")
        consumer = self.here.started()
        message = self.here.take(consumer)
        self.here.broker().faults[BACK] = [refuse(1)]
        self.runtime.finish(message.retry())
        found = [
            one
            for broker in self.here.cluster.brokers.values()
            for one in broker.stored(retry_topic("G"))
        ]
        (retried,) = found
        self.assertEqual((retried.body, retried.reconsume_times), (b"1", 1))
        self.assertEqual(retried.properties[RETRY_TOPIC], "T")
        self.assertEqual(retried.properties[ORIGIN_MESSAGE_ID], "1")
        self.assertEqual(retried.properties["DELAY"], "3")

    def test_messageThatNobodyTakesIsGivenOutAgainHere(self) -> None:
        """After five seconds; it is not lost, and its offset not committed."""
        self.here.put("1")
        consumer = self.here.started()
        message = self.here.take(consumer)
        for broker in self.here.cluster.brokers.values():
            broker.faults[BACK] = [refuse(1)]
            broker.faults[RequestCode.SEND_MESSAGE_V2] = [refuse(2)] * 9
        self.here.until(self.runtime.start(message.retry()))
        self.runtime.advance(6.0)
        self.assertEqual(self.here.texts(consumer), ["1"])
        self.assertEqual(self.committed(), 0)

    def test_forgottenMessageIsSentBack(self) -> None:
        """Once it has been out for too long; acknowledging it then does nothing."""
        self.here.put("1", "2")
        consumer = self.here.started(consume_timeout=100.0)
        first = self.here.take(consumer)
        self.runtime.advance(130.0)
        backs = [one for _, one in self.runtime.requests if one.code == BACK]
        self.assertEqual([one.ext["delayLevel"] for one in backs if one.ext], ["3"])
        self.runtime.finish(first.ack())
        self.runtime.finish(first.retry())
        self.assertEqual(self.committed(), 1)

    def test_tagsAreFiltered(self) -> None:
        """A message that the broker gives by mistake is passed."""
        for tag in ("a", "b", "a"):
            self.here.broker().put("T", 0, tag.encode(), {"TAGS": tag})
        consumer = self.here.started("a")
        self.assertEqual(self.here.texts(consumer), ["a", "a"])

    def test_newGroupBeginsWhereItIsTold(self) -> None:
        """At the end, at the beginning, or at a time."""
        self.here.put("1", "2", "3")
        for number, (start, expected) in enumerate(
            (("latest", []), ("earliest", ["1", "2", "3"]), (1.001, ["2", "3"]))
        ):
            consumer = self.here.started(group=f"G{number}", start=start)
            self.assertEqual(self.here.texts(consumer), expected)

    def test_offsetThatIsGoneIsLeft(self) -> None:
        """The broker names the next one."""
        self.here.broker().first["T", 0] = 50
        self.here.put("1", "2", "3")
        self.here.broker().offsets["G", "T", 0] = 7
        consumer = self.here.consumer()
        with self.assertLogs("rocketbroker.client", "WARNING"):
            self.runtime.finish(consumer.start())
            self.runtime.settle()
        self.assertEqual(len(self.here.all_of(consumer)), 3)

    def test_topicThatComesLaterIsRead(self) -> None:
        """It is waited for, unless a missing topic is to be an error."""
        queues = self.here.cluster.topics.pop("T")
        consumer = self.here.consumer()
        self.runtime.finish(consumer.start())
        with self.assertRaises(TopicNotExist):
            self.runtime.finish(self.here.consumer().start(wait_for_topic=False))
        self.here.cluster.topics["T"] = queues
        self.here.put("1")
        self.assertLess(self.here.wait(lambda: len(consumer.queues) >= 4), 3.0)
        self.assertEqual(self.here.texts(consumer), ["1"])

    def test_restartOfABrokerIsRiddenOver(self) -> None:
        """The other broker's messages come meanwhile; it is said once."""
        consumer = self.here.started()
        with self.assertLogs("rocketbroker.client", "WARNING") as logs:
            self.here.cluster.stop("b1")
            self.runtime.advance(100.0)
            self.here.put("2", broker="b2")
            self.assertEqual(self.here.texts(consumer), ["2"])
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertIn("broker b1 is away", logs.output[0])
        self.here.put("1")
        self.here.cluster.start("b1")
        mine = [one for one in consumer.queues.values() if one.queue.broker == "b1"]
        passed = self.here.wait(lambda: any(len(queue) for queue in mine))
        self.assertLess(passed, 5.0)
        self.assertEqual(self.here.texts(consumer), ["1"])

    def test_brokerThatForgotTheGroupHearsOfIt(self) -> None:
        """A pull that is refused for want of a subscription brings a heartbeat."""
        consumer = self.here.started()
        broker = self.here.broker()
        broker.groups.clear()
        broker.faults[RequestCode.PULL_MESSAGE] = [refuse(24), refuse(24)]
        self.here.cluster.stop("b1")
        self.here.cluster.start("b1")
        self.here.put("1")
        self.here.wait(lambda: any(len(q) for q in consumer.queues.values()))
        self.assertEqual(self.here.texts(consumer), ["1"])
        self.assertEqual(len(broker.members("G")), 1)

    def test_commitTravelsWithPulls(self) -> None:
        """So that a broker that is asked often needs no commit of its own."""
        self.here.put("1")
        consumer = self.here.started()
        self.runtime.finish(self.here.take(consumer).ack())
        self.here.put("2")
        self.runtime.settle()
        self.here.put("3")
        self.runtime.settle()
        self.assertIn(("G", "T", 0, 1), self.here.broker().commits)

"""Clients of static topics: logical queues, wherever they are."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.consumer import retry_message
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster
from tests.client.messages import stored_message

MOCK = "__syslo__global__"


def queue(number: int) -> MessageQueue:
    """A logical queue, as the members of a group share it."""
    return MessageQueue("T", MOCK, number)


class StaticTopicTests(SynchronousTestCase):
    """Queue 0 of the topic is at b1, queue 1 at b2, and nobody leads queue 2."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1", "b2")
        self.runtime = self.here.runtime
        self.here.cluster.leaders["T"] = ["b1", "b2", None]

    def move(self, offset: int, delta: int) -> None:
        """Queue 0 moves to b2, where it goes on at an offset."""
        self.here.cluster.leaders["T"] = ["b2", "b2", None]
        self.here.broker("b2").first["T", 0] = offset
        self.here.broker("b2").deltas["T", 0] = delta
        self.here.broker("b2").offsets.update(self.here.broker("b1").offsets)

    def test_membersShareLogicalQueues(self) -> None:
        """Each is read where it is; its offset is committed there, by its own name."""
        consumer = self.here.started()
        self.here.put("a", queue=0, broker="b1")
        self.here.put("b", queue=1, broker="b2")
        both = self.here.all_of(consumer)
        places = [(one.text, one.queue) for one in both]
        self.assertEqual(sorted(places), [("a", queue(0)), ("b", queue(1))])
        for one in both:
            self.runtime.finish(one.ack())
        self.runtime.finish(consumer.commit())
        self.assertEqual(self.here.broker("b1").offsets["G", "T", 0], 1)
        self.assertEqual(self.here.broker("b2").offsets["G", "T", 1], 1)
        names = {
            (one.ext or {})["bname"]
            for _, one in self.runtime.requests
            if one.code in (RequestCode.PULL_MESSAGE, RequestCode.QUERY_CONSUMER_OFFSET)
            and (one.ext or {})["topic"] == "T"
        }
        self.assertEqual(names, {MOCK})

    def test_queueThatNobodyLeadsIsAMembersAllTheSame(self) -> None:
        """All members have to share the same queues; it is taken over when it can."""
        consumer = self.here.started()
        self.assertNotIn(queue(2), consumer.queues)
        self.here.cluster.leaders["T"][2] = "b1"
        self.here.wait(lambda: queue(2) in consumer.queues)

    def test_messagesOfAMovedQueueHaveTheOffsetsOfTheLogicalOne(self) -> None:
        """The client follows the queue, and adds what the answer says."""
        consumer = self.here.started()
        self.here.put("a", queue=0)
        self.runtime.finish(self.here.take(consumer).ack())
        self.runtime.finish(consumer.commit())
        self.move(20000, 20000)
        consumer.queues[queue(0)].reset(20000)
        self.here.broker("b2").put("T", 0, b"b")
        with self.assertNoLogs("rocketbroker.client"):
            self.runtime.advance(20.0)
        self.here.wait(lambda: consumer.queues[queue(0)].pull_offset == 20001)
        message = self.here.take(consumer)
        self.assertEqual((message.text, message.offset), ("b", 20000))

    def test_offsetIsAskedForWhereTheQueueHasGone(self) -> None:
        """A broker that does not lead it says so; the route is learned at once."""
        session = self.here.session()
        lite = session.lite_pull("G", queues=[queue(0)])
        self.runtime.finish(lite.start())
        self.move(7, 0)
        position = self.runtime.finish(lite.offset_for_time(queue(0), 0))
        self.assertEqual(position, 7)

    def test_sendGoesToTheLeader(self) -> None:
        """And again to the next one, if the queue has moved meanwhile."""
        producer = self.here.producer()
        there = {
            self.runtime.finish(producer.send(Message("T", "x"))).queue
            for _ in range(4)
        }
        expected = {MessageQueue("T", "b1", 0), MessageQueue("T", "b2", 1)}
        self.assertEqual(there, expected)
        self.move(5, 0)
        sends = [self.runtime.start(producer.send(Message("T", "y"))) for _ in range(2)]
        brokers = {self.here.until(one).queue.broker for one in sends}
        self.assertEqual(brokers, {"b2"})

    def test_sendTakesAQueueAsReadersKnowIt(self) -> None:
        """It goes to the broker that leads it now."""
        producer = self.here.producer()
        sending = producer.send(Message("T", "x"), queue=queue(1))
        result = self.runtime.finish(sending)
        self.assertEqual(result.queue, MessageQueue("T", "b2", 1))

    def test_locksAreTheLeaders(self) -> None:
        """Queues of one mock broker may be locked at several brokers."""
        consumer = self.here.started(ordered=True)
        self.assertIn(("G", ("T", 0)), self.here.broker("b1").locks)
        self.assertIn(("G", ("T", 1)), self.here.broker("b2").locks)
        self.assertTrue({queue(0), queue(1)} <= set(consumer.queues))
        self.runtime.finish(consumer.close())
        self.assertEqual(self.here.broker("b2").locks, {})

    def test_failedMessageGoesToTheRetryTopicAsANewOne(self) -> None:
        """By its position no broker would find it."""
        consumer = self.here.started()
        self.here.put("a", queue=0)
        self.here.until(self.runtime.start(self.here.take(consumer).retry()))
        self.assertNotIn(RequestCode.CONSUMER_SEND_MSG_BACK, self.runtime.codes())
        self.assertEqual(self.here.texts(consumer), ["a"])

    def test_deadLetterIsANewMessageBeyondItsAttempts(self) -> None:
        """The broker puts it aside, as it has been tried too often."""
        settings = ConsumerSettings(group="G")
        dead = retry_message(settings, stored_message(0), is_dead=True)
        self.assertEqual(dead.properties["RECONSUME_TIME"], "1")
        self.assertEqual(dead.properties["MAX_RECONSUME_TIMES"], "0")

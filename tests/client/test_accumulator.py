"""Messages that are gathered into batches."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.producer import Producer
from rocketbroker.client.queue_choice import queue_for_key
from rocketbroker.errors import ClientClosed, MessageIllegal, NoPermission
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.testing.puppet_cluster import refuse, silent
from rocketbroker.testing.runtime import Outcome
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

BATCH = RequestCode.SEND_BATCH_MESSAGE
SINGLE = RequestCode.SEND_MESSAGE_V2


class AccumulatorTests(SynchronousTestCase):
    """Sends side by side."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime

    def producer(self, **settings: Any) -> Producer:
        """One that gathers."""
        return self.here.producer(accumulate=True, **settings)

    def start(
        self, producer: Producer, *messages: Message, **options: Any
    ) -> list[Outcome[SendResult]]:
        """Send messages side by side."""
        sends = [producer.send(one, **options) for one in messages]
        started = [self.runtime.start(one) for one in sends]
        self.runtime.settle()
        return started

    def counts(self) -> tuple[int, int]:
        """How many requests there were, of one message and of several."""
        codes = self.runtime.codes()
        return codes.count(SINGLE), codes.count(BATCH)

    def test_eachSendHasItsOwnResult(self) -> None:
        """As if it had been sent alone; they go when ten milliseconds are over."""
        producer = self.producer()
        messages = [Message("T", f"m{n}", keys=f"k{n}") for n in range(5)]
        sends = self.start(producer, *messages)
        self.assertEqual(self.counts(), (0, 0))
        self.runtime.advance(0.01)
        self.assertEqual(self.counts(), (0, 1))
        stored = {one.queue_offset: one for one in self.here.broker().stored("T")}
        for number, each in enumerate(sends):
            result = each.value()
            found = stored[result.queue_offset]
            self.assertEqual(found.body, b"m%d" % number)
            self.assertEqual(result.message_ids, (found.message_id,))
            self.assertEqual(result.offset_ids, (found.offset_id,))
        self.assertEqual(producer.sent, 5)

    def test_oneAloneIsNoBatch(self) -> None:
        """It is sent as it is."""
        (send,) = self.start(self.producer(), Message("T", "x"))
        self.runtime.advance(0.01)
        self.assertEqual(send.value().status, 0)
        self.assertEqual(self.counts(), (1, 0))

    def test_fullBatchGoesAtOnce(self) -> None:
        """Before the time is over; each as large as the settings say."""
        producer = self.producer(accumulate_bytes=1000)
        messages = [Message("T", b"x" * 300) for _ in range(9)]
        sends = self.start(producer, *messages)
        self.assertGreaterEqual(self.counts()[1], 3)
        self.runtime.advance(0.01)
        self.assertEqual({one.value().status for one in sends}, {0})
        for _, command in self.runtime.requests:
            if command.code == BATCH:
                self.assertLessEqual(len(command.body), 1000)

    def test_someGoAlone(self) -> None:
        """Those that rest, have a priority, are large, or are not to be gathered; and
        when as much is gathered as may be."""
        producer = self.producer(accumulate_total_bytes=100)
        alone = [
            Message("T", "x", delay_level=1),
            Message("T", "x", priority=3),
            Message("T", b"x" * 40000),
            Message("T", b"x" * 101),
        ]
        self.assertEqual(
            [s.value().status for s in self.start(producer, *alone)], [0] * 4
        )
        (plain,) = self.start(producer, Message("T", "x"), accumulate=False)
        self.assertEqual(plain.value().status, 0)
        self.assertEqual(self.counts(), (5, 0))
        other = self.here.producer()
        two = self.start(other, Message("T", "x"), Message("T", "y"), accumulate=True)
        self.runtime.advance(0.01)
        self.assertEqual([one.value().status for one in two], [0, 0])
        self.assertEqual(self.counts(), (5, 1))

    def test_queuesAndKeysAreKept(self) -> None:
        """A batch goes to one queue: the given one, or that of the key."""
        here = self.here = ClientCluster()
        self.runtime = here.runtime
        producer = self.producer()
        queues = [MessageQueue("T", b, n) for b in ("b1", "b2") for n in range(2)]
        expected = []
        sends = []
        for number in range(12):
            queue, key = queues[number % 4], f"key {number % 3}"
            if number < 6:
                expected.append(queue)
                sends += self.start(producer, Message("T", "x"), queue=queue)
            else:
                expected.append(queue_for_key(queues, key))
                sends += self.start(producer, Message("T", "x", sharding_key=key))
        self.runtime.advance(0.01)
        self.assertEqual([one.value().queue for one in sends], expected)

    def test_failureIsThatOfEach(self) -> None:
        """All of a batch fail together; one that cannot be sent fails alone."""
        producer = self.producer()
        self.here.broker().faults[BATCH] = [refuse(16)] * 9
        sends = self.start(producer, Message("T", "x"), Message("T", "y"))
        (empty,) = self.start(producer, Message("T", ""))
        self.assertRaises(MessageIllegal, empty.value)
        self.here.wait(lambda: sends[0].ended)
        for one in sends:
            self.assertRaises(NoPermission, one.value)

    def test_cancelledSendDisturbsNoOther(self) -> None:
        """Its message is stored all the same."""
        first, second = self.start(
            self.producer(), Message("T", "x"), Message("T", "y")
        )
        first.cancel()
        self.runtime.advance(0.01)
        self.assertEqual(second.value().queue_offset, 1)

    def test_closeSendsWhatIsGathered(self) -> None:
        """And waits until it is stored, for a while."""
        producer = self.producer()
        sends = self.start(producer, Message("T", "x"), Message("T", "y"))
        self.runtime.finish(producer.close())
        self.assertEqual([one.value().status for one in sends], [0, 0])
        producer = self.producer()
        self.here.broker().faults[BATCH] = [silent] * 99
        sends = self.start(producer, Message("T", "x"), Message("T", "y"))
        closing = self.runtime.start(producer.close())
        self.assertLess(self.here.wait(lambda: closing.ended), 3.5)
        for one in sends:
            self.assertRaises(ClientClosed, one.value)


class SelectorTests(SynchronousTestCase):
    """A function that chooses the queue; priorities; types."""

    def setUp(self) -> None:
        self.here = ClientCluster()
        self.runtime = self.here.runtime
        self.mq: Any = self.here.session()

    def test_functionChooses(self) -> None:
        """It is given the queues in order, and the message; with and without an answer,
        and in a batch."""
        seen: list[tuple[int, str]] = []

        def last(queues: Any, message: Message) -> MessageQueue:
            seen.append((len(queues), message.body.decode()))
            return MessageQueue(*queues[-1])

        for accumulate in (False, True):
            sending = self.runtime.start(
                self.mq.send("T", "x", queue=last, accumulate=accumulate)
            )
            self.runtime.advance(0.02)
            self.assertEqual(sending.value().queue, MessageQueue("T", "b2", 1))
        self.runtime.finish(self.mq.send_oneway("T", "y", queue=last))
        self.runtime.settle()
        self.assertEqual(len(self.here.broker("b2").stored("T")), 3)
        self.assertEqual(seen, [(4, "x"), (4, "x"), (4, "y")])

    def test_chosenQueueIsTriedAgain(self) -> None:
        """As often as one that was given."""
        self.here.broker("b1").faults[SINGLE] = [refuse(2)]
        sending = self.runtime.start(self.mq.send("T", "x", queue=lambda q, m: q[0]))
        self.assertEqual(self.here.until(sending).queue, MessageQueue("T", "b1", 0))

    def test_whatIsNoQueueOfTheTopicIsRefused(self) -> None:
        """Nothing is sent; what the function raises comes through."""
        for wrong in (None, "b1:0", MessageQueue("U", "b1", 0)):
            with self.assertRaises(MessageIllegal):
                self.runtime.finish(
                    self.mq.send("T", "x", queue=lambda q, m, w=wrong: w)
                )
        with self.assertRaises(ZeroDivisionError):
            self.runtime.finish(self.mq.send("T", "x", queue=lambda q, m: 1 // 0))
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(
                self.mq.send_batch([Message("T", "x")], queue=lambda q, m: q[0])
            )
        self.assertNotIn(SINGLE, self.runtime.codes())

    def test_priorityIsAProperty(self) -> None:
        """Of brokers of RocketMQ 5.4."""
        result = self.runtime.finish(self.mq.send("T", "x", priority=3))
        (stored,) = self.here.broker(result.queue.broker).stored("T")
        self.assertEqual(stored.properties["_SYS_MSG_PRIORITY_"], "3")
        wrong: list[Any] = [-1, "3", True]
        for priority in wrong:
            with self.assertRaises(MessageIllegal):
                self.runtime.finish(self.mq.send("T", "x", priority=priority))

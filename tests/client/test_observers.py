"""What observers are told of sends and of the handling of messages."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.lite_pull import LitePullConsumer
from rocketbroker.client.observers import (
    Handling,
    Observer,
    Outcome,
    Send,
)
from rocketbroker.client.pop_consumer import PopConsumer
from rocketbroker.client.received import ReceivedMessage
from rocketbroker.client.served import Listener
from rocketbroker.client.settings import ClientSettings, ConsumerSettings
from rocketbroker.client.subscription import subscription
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    MessageIllegal,
    NoPermission,
)
from rocketbroker.records.outgoing import Message
from rocketbroker.testing.puppet_cluster import hang_up, refuse, silent
from rocketbroker.testing.runtime import Outcome as Running
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster
from tests.client.diary import Diary

SEND = RequestCode.SEND_MESSAGE_V2
BACK = RequestCode.CONSUMER_SEND_MSG_BACK


class Failing(Observer):
    """Always fails, after it has done harm."""

    def send_started(self, send: Send) -> None:
        """See L{Observer}."""
        send.message.properties.clear()
        raise ValueError("no")

    def send_ended(self, send: Send) -> None:
        """See L{Observer}."""
        raise ValueError("no")

    def handling_started(self, handling: Handling) -> None:
        """See L{Observer}."""
        raise ValueError("no")

    def handling_ended(self, handling: Handling) -> None:
        """See L{Observer}."""
        raise ValueError("no")


class Garbling(Observer):
    """Adds what no message can carry."""

    def send_started(self, send: Send) -> None:
        """See L{Observer}."""
        send.message.properties["a\x01b"] = "c"


class ObserverCase(SynchronousTestCase):
    """A cluster, whose clients are observed."""

    def setUp(self) -> None:
        self.diary = Diary()
        self.here = ClientCluster(observers=[self.diary])
        self.runtime = self.here.runtime


class SendTests(ObserverCase):
    """Sends."""

    def test_sendIsToldWithItsResult(self) -> None:
        """And what is added to it goes out, and not into the user's message."""
        message = Message("T", "1", tags="a")
        result = self.runtime.finish(self.here.producer(group="P").send(message))
        (send,) = self.diary.sends
        self.assertEqual(self.diary.begun, ["T"])
        self.assertEqual((send.group, send.tries, send.problem), ("P", 1, None))
        self.assertEqual((send.result, send.queue), (result, result.queue))
        self.assertEqual(send.message_id, result.message_id)
        self.assertEqual(send.offset_id, result.offset_ids[0])
        self.assertEqual(send.address, f"{result.queue.broker}:10911")
        self.assertNotIn("seen", message.properties)
        broker = self.here.broker(result.queue.broker)
        (stored,) = broker.stored("T")
        self.assertEqual(stored.properties["seen"], "yes")

    def test_triesAndTimeOfASendAreTold(self) -> None:
        """All tries together."""
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults[SEND] = [refuse(2)]
        running = self.runtime.start(self.here.producer().send(Message("T", "1")))
        self.here.until(running)
        (send,) = self.diary.sends
        self.assertEqual((send.tries, send.problem), (3, None))
        self.assertGreater(send.seconds, 0.05)

    def test_failureIsTold(self) -> None:
        """With where it was tried last."""
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults[SEND] = [refuse(16)] * 3
        running = self.runtime.start(self.here.producer().send(Message("T", "1")))
        with self.assertRaises(NoPermission) as caught:
            self.here.until(running)
        (send,) = self.diary.sends
        self.assertIs(send.problem, caught.exception)
        self.assertEqual((send.result, send.message_id), (None, None))
        self.assertIn(send.address, ("b1:10911", "b2:10911"))

    def test_illegalMessageHasAnEndToo(self) -> None:
        """It is tried nowhere."""
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(self.here.producer().send(Message("T", "")))
        (send,) = self.diary.sends
        self.assertIsInstance(send.problem, MessageIllegal)
        self.assertEqual((send.tries, send.address), (0, None))

    def test_messagesOfABatchAreToldOneByOne(self) -> None:
        """Of each request those that are in it."""
        producer = self.here.producer(batch_bytes=250)
        messages = [Message("T", str(number)) for number in range(3)]
        results = self.runtime.finish(producer.send_batch(messages))
        self.assertEqual(len(results), 2)
        ids = [one for result in results for one in result.message_ids]
        self.assertEqual([send.message_id for send in self.diary.sends], ids)
        bodies = [send.message.body for send in self.diary.sends]
        self.assertEqual(bodies, [b"0", b"1", b"2"])
        self.assertEqual([send.tries for send in self.diary.sends], [1, 1, 1])
        stored = [one for b in ("b1", "b2") for one in self.here.broker(b).stored("T")]
        self.assertEqual([one.properties["seen"] for one in stored], ["yes"] * 3)

    def test_failedBatchEndsForAll(self) -> None:
        """Those of later requests are not tried."""
        producer = self.here.producer(batch_bytes=250, attempts=1)
        code = RequestCode.SEND_BATCH_MESSAGE
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults[code] = [refuse(16)]
        messages = [Message("T", str(number)) for number in range(3)]
        with self.assertRaises(NoPermission):
            self.runtime.finish(producer.send_batch(messages))
        self.assertEqual([send.tries for send in self.diary.sends], [1, 1, 0])
        for send in self.diary.sends:
            self.assertIsInstance(send.problem, NoPermission)

    def test_onewaySendHasNoResult(self) -> None:
        """It ends when it is written."""
        producer = self.here.producer()
        self.runtime.finish(producer.send_oneway(Message("T", "1")))
        (send,) = self.diary.sends
        self.assertEqual((send.tries, send.result, send.problem), (1, None, None))

    def test_reconnectionIsTold(self) -> None:
        """Not the first connection."""
        producer = self.here.producer()
        self.here.cluster.topics["T"] = {"b1": 1}
        self.runtime.finish(producer.send(Message("T", "1")))
        self.assertEqual(self.diary.addresses, [])
        self.here.broker().faults[SEND] = [hang_up]
        self.here.until(self.runtime.start(producer.send(Message("T", "2"))))
        self.assertEqual(self.diary.addresses, ["b1:10911"])

    def test_endOfATransactionIsTold(self) -> None:
        """As the broker is told of it."""
        session = self.here.session(group="P")
        session.check("T")(lambda message: True)
        begun = self.runtime.finish(session.transaction("T", "1", tag="a", keys="k"))
        self.runtime.finish(begun.rollback())
        (end,) = self.diary.ends
        self.assertEqual(
            (end.group, end.topic, end.tag, end.keys), ("P", "T", "a", "k")
        )
        self.assertEqual((end.committed, end.asked), (False, False))
        self.assertEqual(end.message_id, begun.result.message_id)
        self.assertEqual(end.address, f"{begun.result.queue.broker}:10911")
        self.runtime.finish(session.close())


class HandlingTests(ObserverCase):
    """Messages that are given out."""

    def test_outcomesAreTold(self) -> None:
        """With group, place and attempt."""
        self.here.put("1", "2", "3")
        consumer = self.here.started()
        first, second, third = self.here.all_of(consumer)
        self.runtime.advance(2.0)
        for call in (first.ack(), second.retry(), third.dead_letter()):
            self.runtime.finish(call)
        self.assertEqual(self.diary.begun, ["T", "T", "T"])
        self.assertEqual(
            self.diary.outcomes,
            [
                ("1", Outcome.ACKNOWLEDGED),
                ("2", Outcome.RETRIED),
                ("3", Outcome.DEAD_LETTER),
            ],
        )
        one = self.diary.handled[0]
        self.assertEqual((one.group, one.topic, one.queue), ("G", "T", first.queue))
        self.assertEqual((one.attempt, one.seconds, one.broadcast), (1, 2.0, False))

    def test_retriedMessageIsToldUnderItsTopic(self) -> None:
        """As the next attempt."""
        self.here.put("1")
        consumer = self.here.started()
        self.runtime.finish(self.here.take(consumer).retry())
        self.runtime.advance(60.0)
        self.runtime.finish(self.here.take(consumer).ack())
        again = self.diary.handled[1]
        self.assertEqual((again.topic, again.attempt), ("T", 2))

    def test_messageOfTooManyAttemptsIsADeadLetter(self) -> None:
        """The broker puts it aside."""
        self.here.put("1")
        consumer = self.here.started(max_attempts=0)
        self.runtime.finish(self.here.take(consumer).retry())
        self.assertEqual(self.diary.outcomes, [("1", Outcome.DEAD_LETTER)])

    def test_orderedMessageIsRetriedInItsPlace(self) -> None:
        """Each time is told."""
        self.here.put("1")
        consumer = self.here.started(ordered=True)
        self.runtime.finish(self.here.take(consumer).retry())
        self.runtime.advance(1.0)
        self.runtime.finish(self.here.take(consumer).ack())
        outcomes = [("1", Outcome.RETRIED), ("1", Outcome.ACKNOWLEDGED)]
        self.assertEqual(self.diary.outcomes, outcomes)
        self.assertEqual([one.attempt for one in self.diary.handled], [1, 2])

    def test_messageHeldTooLongTimesOut(self) -> None:
        """What its reader does then counts for nothing."""
        self.here.put("1")
        consumer = self.here.started(consume_timeout=10.0)
        message = self.here.take(consumer)
        self.runtime.advance(15.0)
        self.runtime.finish(message.ack())
        self.assertEqual(self.diary.outcomes, [("1", Outcome.TIMED_OUT)])

    def test_messageThatNobodyTakesBackFails(self) -> None:
        """It is given out again here."""
        self.here.put("1")
        consumer = self.here.started()
        message = self.here.take(consumer)
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults[BACK] = [refuse(1)]
            self.here.broker(broker).faults[SEND] = [refuse(16)] * 3
        self.here.until(self.runtime.start(message.retry()))
        self.assertEqual(self.diary.outcomes, [("1", Outcome.FAILED)])
        self.assertEqual(self.diary.sends, [])
        self.runtime.advance(5.0)
        self.runtime.finish(self.here.take(consumer).ack())
        self.assertEqual(self.diary.outcomes[1:], [("1", Outcome.ACKNOWLEDGED)])

    def test_whatIsGivenOutFailsAtTheEnd(self) -> None:
        """The group gets it again."""
        self.here.put("1")
        consumer = self.here.started()
        self.here.take(consumer)
        self.assertEqual(len(self.diary.consumers), 1)
        self.runtime.finish(consumer.close())
        self.assertEqual(self.diary.outcomes, [("1", Outcome.FAILED)])
        self.assertEqual(self.diary.consumers, [])

    def test_messageOfALostQueueFails(self) -> None:
        """Another member gets it."""
        self.here.put("1", "2")
        for queue in (0, 1):
            self.here.put(str(queue), queue=queue, broker="b2")
        consumer = self.here.started()
        messages = self.here.all_of(consumer)
        self.here.started()
        self.runtime.advance(20.0)
        lost = len(self.diary.handled)
        self.assertGreater(lost, 0)
        self.assertEqual({one.outcome for one in self.diary.handled}, {Outcome.FAILED})
        for message in messages:
            self.runtime.finish(message.ack())
        self.assertEqual(len(self.diary.handled), len(messages))

    def test_messageBeforeASeekFails(self) -> None:
        """It counts for nothing."""
        self.here.put("1", "2")
        consumer = self.here.started()
        self.here.take(consumer)
        (queue,) = (one for one in consumer.queues.values() if one.given)
        self.runtime.finish(consumer.seek(queue, 1))
        self.assertEqual(self.diary.outcomes, [("1", Outcome.FAILED)])

    def test_prefetchedMessagesAreCounted(self) -> None:
        """Those that wait for a reader."""
        self.here.put("1", "2", "3")
        self.here.take(self.here.started())
        (consumer,) = self.diary.consumers
        self.assertEqual(consumer.group, "G")
        self.assertEqual(consumer.prefetched()["T"], 2)

    def test_poppedMessagesAreObserved(self) -> None:
        """As those of other consumers."""
        self.here.put("1", "2", "3")
        settings = ConsumerSettings(group="G", mode="pop")
        consumer = PopConsumer(self.here.instance(), settings, subscription("T"))
        self.runtime.finish(consumer.start())
        self.runtime.settle()
        taken = [self.runtime.finish(consumer.next(0.0)) for _ in range(3)]
        first, second, third = (one for one in taken if one is not None)
        for call in (first.ack(), second.retry(), third.dead_letter()):
            self.runtime.finish(call)
        outcomes = [outcome for _, outcome in self.diary.outcomes]
        expected = [Outcome.ACKNOWLEDGED, Outcome.RETRIED, Outcome.DEAD_LETTER]
        self.assertEqual(outcomes, expected)
        self.runtime.finish(consumer.close())
        self.assertEqual(self.diary.consumers, [])

    def test_messagesThatBrokersHavePoppedAreObservedOnce(self) -> None:
        """Where brokers say who pops what, the member has parts that pop."""
        self.here.cluster.modes = {"T": "POP"}
        consumer = self.here.started(assignment="broker")
        self.here.put("1", "2", "3")
        self.runtime.settle()
        (one,) = self.diary.consumers
        self.assertEqual(one.prefetched()["T"], 3)
        first, second, _ = self.here.all_of(consumer)
        self.assertEqual(self.diary.begun, ["T"] * 3)
        self.runtime.finish(first.ack())
        self.runtime.finish(second.retry())
        self.runtime.finish(consumer.close())
        outcomes = [outcome for _, outcome in self.diary.outcomes]
        expected = [Outcome.ACKNOWLEDGED, Outcome.RETRIED, Outcome.FAILED]
        self.assertEqual(outcomes, expected)
        self.assertEqual(self.diary.consumers, [])

    def test_polledMessagesAreAcknowledgedByTheNextPoll(self) -> None:
        """That is how lite pull knows it."""
        self.here.put("1")
        settings = ConsumerSettings(group="G", mode="lite", start="earliest")
        wanted = [subscription("T")]
        consumer = LitePullConsumer(self.here.instance(), settings, wanted)
        self.runtime.finish(consumer.start())
        self.runtime.settle()
        self.runtime.finish(consumer.poll(0.0))
        self.assertEqual(self.diary.outcomes, [])
        self.here.until(self.runtime.start(consumer.poll(0.1)))
        self.assertEqual(self.diary.outcomes, [("1", Outcome.ACKNOWLEDGED)])


class PlaceTests(SynchronousTestCase):
    """Names, and processes."""

    def setUp(self) -> None:
        self.diary = Diary()
        self.here = ClientCluster("b1", namespace="INST", observers=[self.diary])
        self.here.cluster.topics["INST%T"] = {"b1": 1}
        self.runtime = self.here.runtime

    def test_namesAreThoseOfUsers(self) -> None:
        """Brokers know others where there is a namespace."""
        session = self.here.session(group="P")
        session.check("T")(lambda message: True)
        begun = self.runtime.finish(session.transaction("T", "1"))
        self.runtime.finish(begun.commit())
        self.runtime.finish(session.close())
        self.here.broker().put("INST%T", 0, b"2")
        consumer = self.here.started()
        self.assertEqual(self.diary.consumers[0].prefetched()["T"], 2)
        self.here.take(consumer)
        self.runtime.finish(self.here.take(consumer).ack())
        (send,), (end,), (handling,) = (
            self.diary.sends,
            self.diary.ends,
            self.diary.handled,
        )
        assert send.queue is not None
        self.assertEqual((send.group, send.queue.topic), ("P", "T"))
        self.assertEqual((end.group, end.topic), ("P", "T"))
        place = (handling.group, handling.topic, handling.queue.topic)
        self.assertEqual(place, ("G", "T", "T"))

    def test_childOfAForkHasNothingPrefetched(self) -> None:
        """That is the parent's."""
        self.here.broker().put("INST%T", 0, b"1")
        consumer = self.here.started()
        self.runtime.settle()
        self.runtime.fork()
        self.assertEqual(self.diary.consumers[0].prefetched(), {})
        self.runtime.finish(consumer.close())


class ListenerTests(SynchronousTestCase):
    """Listeners."""

    def run_listener(self, listener: Listener, *observers: Observer) -> ClientCluster:
        """Let a listener handle one message."""
        here = ClientCluster(observers=observers)
        here.put("1")
        session = here.session()
        session.on("T", group="G", start="earliest", concurrency=1)(listener)
        running: Running[None] = here.runtime.start(session.run())
        here.runtime.advance(1.0)
        session.stop()
        here.until(running)
        here.runtime.finish(session.close())
        return here

    def test_listenerIsCalledInTheContextOfItsObserver(self) -> None:
        """What it raises is told."""
        context: ContextVar[str] = ContextVar("context", default="")
        seen: list[str] = []
        problems: list[object] = []

        class Contexts(Observer):
            """Sets a variable for the listener."""

            def listener_started(self, handling: Handling) -> None:
                """See L{Observer}."""
                self.token = context.set(handling.message.body.decode())

            def listener_ended(self, handling: Handling) -> None:
                """See L{Observer}."""
                context.reset(self.token)
                problems.append(handling.problem)

        async def listen(message: ReceivedMessage) -> None:
            """Fails after it has seen the variable."""
            seen.append(context.get())
            raise KeyError("a fault of the user")

        diary = Diary()
        self.run_listener(listen, Contexts(), diary)
        self.assertEqual(len(self.flushLoggedErrors()), 0)
        self.assertEqual(seen, ["1"])
        self.assertEqual([type(one) for one in problems], [KeyError])
        self.assertEqual(diary.outcomes, [("1", Outcome.RETRIED)])
        self.assertIsInstance(diary.handled[0].problem, KeyError)

    def test_listenerThatAcknowledgesItselfHasAnEnd(self) -> None:
        """Its handling has ended before."""
        ended: list[Outcome | None] = []

        class Ends(Observer):
            """Writes down the ends of listeners."""

            def listener_ended(self, handling: Handling) -> None:
                """See L{Observer}."""
                ended.append(handling.outcome)

        async def listen(message: ReceivedMessage) -> None:
            """Acknowledges."""
            await message.ack()

        self.run_listener(listen, Ends())
        self.assertEqual(ended, [Outcome.ACKNOWLEDGED])


class FaultTests(SynchronousTestCase):
    """Observers that fail."""

    def test_failureIsLoggedOnceAndDisturbsNothing(self) -> None:
        """Neither sends nor handling nor the observers behind it."""
        diary = Diary()
        here = ClientCluster(observers=[Failing(), diary, Garbling()])
        with self.assertLogs("rocketbroker.client", "ERROR") as logs:
            producer = here.producer()
            for _ in range(2):
                message = Message("T", "1", properties={"a": "b"})
                here.runtime.finish(producer.send(message))
            consumer = here.started()
            for received in here.all_of(consumer):
                self.assertEqual(received.properties["a"], "b")
                self.assertEqual(received.properties["seen"], "yes")
                here.runtime.finish(received.ack())
        self.assertEqual(len(logs.records), 2)
        self.assertEqual([send.problem for send in diary.sends], [None, None])
        outcomes = [outcome for _, outcome in diary.outcomes]
        self.assertEqual(outcomes, [Outcome.ACKNOWLEDGED] * 2)

    def test_whatIsNoObserverIsRefused(self) -> None:
        """And none is none."""
        for wrong in (5, [5], [object()]):
            with self.assertRaises(ConfigurationError):
                ClientSettings(observers=wrong)
        none: Sequence[Sequence[Observer] | None] = ([], (), None)
        for given in none:
            self.assertIsNone(ClientSettings(observers=given).observers)

    def test_sendThatIsCancelledEnds(self) -> None:
        """With what has cancelled it."""
        diary = Diary()
        here = ClientCluster(observers=[diary])
        for broker in ("b1", "b2"):
            here.broker(broker).faults[SEND] = [silent]
        sending = here.producer().send(Message("T", "1"), timeout=1.0)
        running = here.runtime.start(sending)
        with self.assertRaises(Exception) as caught:
            here.until(running)
        self.assertNotIsInstance(caught.exception, ConnectionLost)
        self.assertIs(diary.sends[0].problem, caught.exception)

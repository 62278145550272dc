"""Sending a stream of messages."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.messages import Message, SendResult
from rocketbroker.blocking.pipeline import Pipeline, PipelineLimits, SendFailed
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import MessageIllegal, TopicNotExist
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command
from tests.blocking.cluster import MemoryBroker, MemoryCluster, hang_up, silent


class PipelineTestCase(SynchronousTestCase):
    """With a cluster in memory."""

    def setUp(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new cluster."""
        self.cluster = MemoryCluster()
        self.results: list[SendResult] = []

    def pipeline(self, **limits: float) -> Pipeline:
        """A new one; its results go to C{results}."""
        return Pipeline(
            Producer(self.cluster.client),
            PipelineLimits(**limits),  # type: ignore[arg-type]
            self.results.append,
        )

    def brokers(self) -> list[MemoryBroker]:
        """Both."""
        return list(self.cluster.brokers.values())

    def stored(self) -> list[StoredMessage]:
        """All messages, of all brokers."""
        return [
            decode(data)
            for broker in self.brokers()
            for queue in broker.queues.values()
            for data in queue
        ]

    def sizes(self) -> list[int]:
        """How many messages each request had that was stored."""
        return [len(result.message_ids) for result in self.results]


class BatchTests(PipelineTestCase):
    """What goes in one request."""

    def test_all(self) -> None:
        """Messages that come at once go in one request when all are there."""
        pipeline = self.pipeline()
        for number in range(100):
            pipeline.add(Message("T", b"%d" % number))
        self.assertEqual(self.results, [])
        pipeline.finish()
        self.assertEqual(self.sizes(), [100])
        bodies = [message.body for message in self.stored()]
        self.assertEqual(bodies, [b"%d" % number for number in range(100)])
        (send,) = [send for broker in self.brokers() for send in broker.sends]
        self.assertEqual(send.code, 320)

    def test_bytes(self) -> None:
        """A request has no more bytes than allowed, and goes to the next queue."""
        pipeline = self.pipeline(batch_bytes=1000)
        for _ in range(10):
            pipeline.add(Message("T", bytes(200)))
        pipeline.finish()
        self.assertEqual(self.sizes(), [3, 3, 3, 1])
        self.assertEqual(len({result.queue for result in self.results}), 4)

    def test_linger(self) -> None:
        """Messages that have waited long enough go with the next."""
        pipeline = self.pipeline(linger=1.0)
        pipeline.add(Message("T", b"1"))
        self.cluster.machine.now += 0.5
        pipeline.add(Message("T", b"2"))
        self.cluster.machine.now += 0.5
        pipeline.add(Message("T", b"3"))
        self.cluster.machine.now += 0.5
        pipeline.add(Message("T", b"4"))
        pipeline.finish()
        self.assertEqual(self.sizes(), [3, 1])

    def test_queues(self) -> None:
        """Each topic and each queue that is given has a batch of its own."""
        self.cluster.topics["U"] = {"b1": 1}
        pipeline = self.pipeline()
        queue = MessageQueue("T", "b2", 1)
        for _ in range(2):
            pipeline.add(Message("T", b"any"))
            pipeline.add(Message("T", b"here"), queue)
            pipeline.add(Message("U", b"other"))
        pipeline.finish()
        self.assertEqual(self.sizes(), [2, 2, 2])
        self.assertEqual(self.results[1].queue, queue)
        self.assertEqual(self.results[2].queue.topic, "U")

    def test_timed(self) -> None:
        """A message with a time of delivery goes alone."""
        pipeline = self.pipeline()
        pipeline.add(Message("T", b"1"))
        pipeline.add(Message("T", b"2", deliver_at_ms=5_000))
        pipeline.add(Message("T", b"3"))
        pipeline.finish()
        self.assertEqual(self.sizes(), [1, 1, 1])
        times = [m.properties.get("TIMER_DELIVER_MS") for m in self.stored()]
        self.assertCountEqual(times, [None, None, "5000"])

    def test_illegal(self) -> None:
        """What cannot be sent is refused at once."""
        self.assertRaises(MessageIllegal, self.pipeline().add, Message("T", b""))


class InFlightTests(PipelineTestCase):
    """Several requests under way."""

    def test_most(self) -> None:
        """Only so many requests are under way, and results are told as they come."""
        pipeline = self.pipeline(in_flight=3, batch_bytes=300)
        for _ in range(5):
            pipeline.add(Message("T", bytes(200)))
        self.assertEqual(len(self.results), 1)
        pipeline.finish()
        self.assertEqual(len(self.results), 5)

    def test_abandon(self) -> None:
        """What is abandoned is not waited for."""
        pipeline = self.pipeline(batch_bytes=300)
        for _ in range(5):
            pipeline.add(Message("T", bytes(200)))
        pipeline.abandon()
        pipeline.finish()
        self.assertEqual(self.results, [])
        connections = self.cluster.client.connections
        self.assertEqual(connections.to("b1:10911").under_way, 0)


class FailureTests(PipelineTestCase):
    """Requests that fail."""

    def send(self, **limits: float) -> None:
        """Send ten messages, each in a request of its own."""
        pipeline = self.pipeline(batch_bytes=300, **limits)
        for number in range(10):
            pipeline.add(Message("T", b"%200d" % number))
        pipeline.finish()

    def test_again(self) -> None:
        """What failed is stored by another broker; nothing is lost, all is told."""
        for fault in (hang_up, silent, lambda command: answer(2)):
            self.begin()
            self.cluster.brokers["b1"].faults = [lambda command: None, fault, fault]
            self.send()
            self.assertEqual(
                {int(message.body) for message in self.stored()}, set(range(10))
            )
            self.assertEqual(sum(self.sizes()), 10)

    def test_patience(self) -> None:
        """Brokers that come back within the patience are waited for."""
        for broker in self.brokers():
            broker.faults = [hang_up] * 40
        self.send(patience=60.0)
        self.assertEqual(len(self.stored()), 10)
        self.assertEqual(max(self.cluster.machine.slept), 1.0)

    def test_impatience(self) -> None:
        """After that the failure is told in one sentence, with code and remark."""
        for broker in self.brokers():
            broker.faults = [lambda command: answer(14, remark="disk full")] * 999
        error = self.assertRaises(SendFailed, self.send, patience=3.0)
        self.assertRegex(
            str(error),
            "^a message for T could not be stored by broker b[12] in 6 tries: "
            "code 14, disk full$",
        )

    def test_lasting(self) -> None:
        """A refusal that will last is tried as often as the settings say."""
        for broker in self.brokers():
            broker.faults = [lambda command: answer(16, remark="read only")] * 999
        error = self.assertRaises(SendFailed, self.send)
        self.assertIn("in 3 tries: code 16, read only", str(error))

    def test_final(self) -> None:
        """A refusal that no other try can cure is told at once."""
        for broker in self.brokers():
            broker.faults = [lambda command: answer(13, remark="too large")] * 999
        error = self.assertRaises(SendFailed, self.send)
        self.assertIn("in 1 try: code 13, too large", str(error))

    def test_nobody(self) -> None:
        """A topic that nobody has is told, too."""
        del self.cluster.topics["T"]
        error = self.assertRaises(SendFailed, self.send, patience=1.0)
        self.assertIn("could not be stored by any broker", str(error))

    def test_sameQueue(self) -> None:
        """What has to go to one queue is tried again there."""
        asked: list[Command] = []

        def refuse(command: Command) -> Command:
            asked.append(command)
            return answer(2)

        self.cluster.brokers["b1"].faults = [refuse, refuse]
        pipeline = self.pipeline()
        queue = MessageQueue("T", "b1", 1)
        pipeline.add(Message("T", b"x"), queue)
        pipeline.finish()
        self.assertEqual([result.queue for result in self.results], [queue])
        self.assertEqual((len(asked), pipeline.retries), (2, 2))

    def test_queues(self) -> None:
        """Queues of a topic are waited for as long as sends are."""
        counts = self.cluster.topics.pop("T")

        def appear() -> None:
            if self.cluster.machine.now >= 1003:
                self.cluster.topics["T"] = counts

        self.cluster.machine.meanwhile = appear
        self.assertEqual(len(self.pipeline().queues("T")), 4)
        self.assertRaises(TopicNotExist, self.pipeline(patience=2.0).queues, "U")

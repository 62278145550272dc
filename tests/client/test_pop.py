"""Members that pop."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.pop import popped, real_topic, retry_seconds
from rocketbroker.client.pop_consumer import PopConsumer
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.subscription import subscription
from rocketbroker.errors import (
    ClientClosed,
    ConfigurationError,
    RemoteProtocolError,
    SystemBusy,
)
from rocketbroker.records.names import dlq_topic
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.testing.puppet_cluster import hang_up, refuse
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster
from tests.client.messages import stored_record

FIELDS = {
    "popTime": "1700",
    "invisibleTime": "60000",
    "reviveQid": "3",
    "startOffsetInfo": "0 0 5",
    "msgOffsetInfo": "0 0 5,7",
}


class AnswerTests(SynchronousTestCase):
    """What a pop brings."""

    def test_handlesNameMessages(self) -> None:
        """The i-th message of a queue has its i-th offset."""
        body = stored_record(5) + stored_record(7)
        found = popped("b1", answer(0, FIELDS, body))
        self.assertEqual(
            [one.handle.text() for one in found],
            ["5 1700 60000 3 0 b1 0 5", "5 1700 60000 3 0 b1 0 7"],
        )

    def test_brokersHandleCounts(self) -> None:
        """A message of the retry topic brings its own."""
        handle = "1 2 3 4 2 b1 0 9"
        body = stored_record(5, {"POP_CK": handle})
        (found,) = popped("b1", answer(0, FIELDS, body))
        self.assertEqual(found.handle.text(), handle)
        self.assertEqual(real_topic("T", "G", found.handle), "%RETRY%G+T")
        first = ReceiptHandle.parse("1 2 3 4 1 b1 0 9")
        self.assertEqual(real_topic("T", "G", first), "%RETRY%G_T")

    def test_nothingIsNoError(self) -> None:
        """Two codes say so; others are errors."""
        for code in (19, 210):
            self.assertEqual(popped("b1", answer(code)), [])
        with self.assertRaises(SystemBusy):
            popped("b1", answer(2))

    def test_nonsenseIsRefused(self) -> None:
        """Rather than that a wrong message is acknowledged."""
        for info in ("0 0", "0 0 x", "0 0 1 2"):
            with self.assertRaises(RemoteProtocolError):
                popped("b1", answer(0, {**FIELDS, "msgOffsetInfo": info}))
        with self.assertRaises(RemoteProtocolError):
            popped("b1", answer(0, FIELDS, b"no message"))

    def test_restGrowsWithTheAttempts(self) -> None:
        """RocketMQ's table, unless a level is given."""
        found = [retry_seconds(0, times) for times in (0, 1, 5, 99)]
        self.assertEqual(found, [10, 30, 240, 7200])
        self.assertEqual(retry_seconds(3, 0), 120)


class PopConsumerTests(SynchronousTestCase):
    """One broker with two queues."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime

    def started(self, **settings: Any) -> PopConsumer:
        """A member that pops."""
        given = ConsumerSettings(group="G", mode="pop", **settings)
        consumer = PopConsumer(self.here.instance(), given, subscription("T"))
        self.runtime.finish(consumer.start())
        return consumer

    def texts(self, consumer: PopConsumer) -> list[str]:
        """The bodies of all messages that are there now; none is acknowledged."""
        found = []
        self.runtime.settle()
        while (message := self.runtime.finish(consumer.next(0.0))) is not None:
            found.append(message.text)
        return sorted(found)

    def test_membersShareMessagesOfOneQueue(self) -> None:
        """Each is given to one of them."""
        first, second = self.started(), self.started()
        self.here.put("1")
        self.here.put("2")
        self.assertEqual(self.texts(first) + self.texts(second), ["1", "2"])

    def test_acknowledgedMessageDoesNotComeAgain(self) -> None:
        """One that is not does, when it is visible again."""
        consumer = self.started(invisible_seconds=30.0)
        self.here.put("1", "2")
        self.runtime.settle()
        first = self.runtime.finish(consumer.next(0.0))
        assert first is not None
        self.runtime.finish(first.ack())
        self.runtime.finish(first.ack())
        self.assertEqual(self.here.broker().acks, {("T", 0, 0)})
        self.assertEqual(self.texts(consumer), ["2"])
        self.runtime.advance(31.0)
        self.assertEqual(self.texts(consumer), ["2"])

    def test_messageThatWaitedTooLongIsLeftAlone(self) -> None:
        """It comes again with a new handle; the old one counts for nothing."""
        consumer = self.started(invisible_seconds=30.0)
        self.here.put("1")
        self.runtime.settle()
        self.here.broker().faults[RequestCode.POP_MESSAGE] = [refuse(2)] * 99
        self.runtime.advance(31.0)
        self.assertEqual(self.texts(consumer), [])

    def test_retriedMessageRests(self) -> None:
        """Ten seconds the first time."""
        consumer = self.started()
        self.here.put("1")
        self.runtime.settle()
        message = self.runtime.finish(consumer.next(0.0))
        assert message is not None
        self.runtime.finish(message.retry())
        self.runtime.advance(9.0)
        self.assertEqual(self.texts(consumer), [])
        self.runtime.advance(2.0)
        self.assertEqual(self.texts(consumer), ["1"])

    def test_deadLetterIsPutAside(self) -> None:
        """And acknowledged."""
        consumer = self.started()
        self.here.put("1")
        self.runtime.settle()
        message = self.runtime.finish(consumer.next(0.0))
        assert message is not None
        self.runtime.finish(message.dead_letter())
        self.assertEqual(len(self.here.broker().stored(dlq_topic("G"))), 1)
        self.assertEqual(self.here.broker().acks, {("T", 0, 0)})

    def test_prefetchIsBounded(self) -> None:
        """What waits here is invisible to the other members."""
        self.here.put(*(str(n) for n in range(100)))
        consumer = self.started(prefetch=10)
        self.runtime.settle()
        self.assertEqual(len(self.texts(self.started(prefetch=100))), 90)
        self.assertEqual(len(self.texts(consumer)), 10)

    def test_restartOfABrokerIsRiddenOver(self) -> None:
        """It asks again."""
        consumer = self.started()
        self.here.broker().faults[RequestCode.POP_MESSAGE] = [hang_up]
        self.here.cluster.stop("b1")
        self.runtime.advance(30.0)
        self.here.cluster.start("b1")
        self.here.put("1")
        self.runtime.advance(5.0)
        self.assertEqual(self.texts(consumer), ["1"])

    def test_leavingIsToldToReaders(self) -> None:
        """And to the broker; what is not acknowledged then comes again in time."""
        consumer = self.started()
        self.here.put("1")
        self.runtime.settle()
        message = self.runtime.finish(consumer.next(0.0))
        assert message is not None
        self.runtime.finish(consumer.close())
        with self.assertRaises(ClientClosed):
            self.runtime.finish(message.ack())
        with self.assertRaises(ClientClosed):
            self.runtime.finish(consumer.next())
        self.assertEqual(self.here.broker().members("G"), [])
        self.assertEqual(self.runtime.links, [])

    def test_modeGoesWithoutOrder(self) -> None:
        """And there are two modes."""
        for wrong in ({"mode": "x"}, {"mode": "pop", "ordered": True}):
            with self.assertRaises(ConfigurationError):
                self.here.session().consumer("T", "G", **wrong)
        stream = self.here.session().consumer("T", "G", mode="pop")
        self.assertEqual(stream.queues, [])

"""Ordered consumers: one member at a time, one message after the other."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.consumer import Consumer
from rocketbroker.client.received import ReceivedMessage
from rocketbroker.records.names import dlq_topic
from rocketbroker.testing.puppet_cluster import refuse
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster


class OrderedTests(SynchronousTestCase):
    """One broker with two queues."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime

    def started(self, **settings: Any) -> Consumer:
        """An ordered member."""
        return self.here.started(ordered=True, **settings)

    def owners(self) -> dict[int, str]:
        """Who has locked which queue of topic T."""
        return {
            number: owner
            for (_, (topic, number)), (owner, _) in self.here.broker().locks.items()
            if topic == "T"
        }

    def ack(self, message: ReceivedMessage) -> None:
        """Acknowledge a message."""
        self.runtime.finish(message.ack())

    def test_nextMessageComesAfterTheOneBefore(self) -> None:
        """Of each queue one is in hand."""
        self.here.put("1", "2", "3")
        self.here.put("a", queue=1)
        consumer = self.started()
        first, other = self.here.all_of(consumer)
        self.assertEqual({first.text, other.text}, {"1", "a"})
        self.ack(other)
        self.assertEqual(self.here.all_of(consumer), [])
        self.ack(first)
        second = self.here.take(consumer)
        self.assertEqual(second.text, "2")

    def test_failedMessageComesAgainBeforeTheNext(self) -> None:
        """After a second, and with the number of the attempt."""
        self.here.put("1", "2")
        consumer = self.started()
        self.runtime.finish(self.here.take(consumer).retry())
        self.assertEqual(self.here.all_of(consumer), [])
        self.runtime.advance(1.0)
        again = self.here.take(consumer)
        self.assertEqual((again.text, again.attempt), ("1", 2))
        self.ack(again)
        self.assertEqual(self.here.take(consumer).text, "2")

    def test_messageThatFailsTooOftenIsADeadLetter(self) -> None:
        """Unless said otherwise it is tried without end."""
        self.here.put("1", "2")
        consumer = self.started(max_attempts=2)
        for _ in range(3):
            message = self.here.take(consumer)
            self.assertEqual(message.text, "1")
            self.runtime.finish(message.retry())
            self.runtime.advance(1.0)
        self.assertEqual(self.here.take(consumer).text, "2")
        (dead,) = self.here.broker().stored(dlq_topic("G"))
        self.assertEqual(dead.body, b"1")

    def test_queuesAreLocked(self) -> None:
        """By the one member that reads them; another one has the rest."""
        first = self.started()
        self.assertEqual(len(set(self.owners().values())), 1)
        second = self.started()
        self.runtime.advance(5.0)
        self.assertEqual(len(self.owners()), 2)
        self.assertEqual(len(set(self.owners().values())), 2)
        for consumer in (first, second):
            mine = [queue for queue in consumer.queues if queue.topic == "T"]
            self.assertEqual(len(mine), 1)

    def test_messageInHandHoldsTheQueue(self) -> None:
        """The new owner begins when it is acknowledged, with the next message."""
        self.here.put("1", "2")
        self.here.put("1", "2", queue=1)
        first = self.started()
        taken = self.here.all_of(first)
        second = self.started()
        self.runtime.advance(5.0)
        self.assertEqual(self.here.all_of(second), [])
        self.assertEqual(len(set(self.owners().values())), 1)
        for message in taken:
            self.ack(message)
        self.runtime.advance(5.0)
        self.assertEqual(self.here.texts(second), ["2"])

    def test_messageThatFailsDoesNotHoldTheQueue(self) -> None:
        """While it waits to be tried again, the queue may go to another member."""
        self.here.put("1")
        self.here.put("1", queue=1)
        first = self.started(suspend_seconds=30.0)
        for message in self.here.all_of(first):
            self.runtime.finish(message.retry())
        second = self.started()
        self.runtime.advance(5.0)
        self.assertEqual(self.here.texts(second), ["1"])

    def test_leavingUnlocks(self) -> None:
        """Nobody has to wait until the broker takes the locks for lost."""
        self.here.put("1", "2")
        first = self.started()
        self.ack(self.here.take(first))
        second = self.started()
        self.runtime.advance(3.0)
        self.runtime.finish(first.close())
        self.runtime.advance(3.0)
        self.assertEqual(len(set(self.owners().values())), 1)
        self.assertEqual(self.here.texts(second), ["2"])

    def test_lockIsRenewed(self) -> None:
        """Before it is over; while the broker does not answer nothing is given out."""
        consumer = self.started()
        self.runtime.advance(100.0)
        self.here.put("1", "2")
        self.ack(self.here.take(consumer))
        faults = self.here.broker().faults
        faults[RequestCode.LOCK_BATCH_MQ] = [refuse(1)] * 3
        self.runtime.advance(40.0)
        self.assertEqual(self.here.all_of(consumer), [])
        faults.clear()
        self.runtime.advance(40.0)
        self.assertEqual(self.here.texts(consumer), ["2"])

    def test_lockThatAnotherHasIsAwaited(self) -> None:
        """A queue is not read before the lock is there."""
        until = self.runtime.monotonic() + 50.0
        self.here.broker().locks["G", ("T", 0)] = ("other", until)
        self.here.put("1")
        consumer = self.started()
        self.assertEqual(self.here.all_of(consumer), [])
        self.runtime.advance(49.0)
        self.assertEqual(self.here.all_of(consumer), [])
        self.runtime.advance(5.0)
        self.assertEqual(self.here.texts(consumer), ["1"])

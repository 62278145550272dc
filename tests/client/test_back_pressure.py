"""Room for sends."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.back_pressure import SendRoom
from rocketbroker.errors import RequestTimeout
from rocketbroker.records.outgoing import Message
from rocketbroker.testing.puppet_cluster import silent
from rocketbroker.testing.runtime import MemoryRuntime, Outcome
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster


class SendRoomTests(SynchronousTestCase):
    """Three sends of ten bytes together."""

    def setUp(self) -> None:
        self.runtime = MemoryRuntime()
        self.room = SendRoom(self.runtime, 3, 10)

    def wait(self, size: int, seconds: float = 5.0) -> Outcome[None]:
        """Wait for room."""
        deadline = self.runtime.monotonic() + seconds
        outcome = self.runtime.start(self.room.wait(size, deadline))
        self.runtime.settle()
        return outcome

    def test_edges(self) -> None:
        """All that fits exactly, no more; one that is larger than all, alone."""
        self.assertTrue(self.room.take(11))
        self.assertFalse(self.room.take(1))
        self.room.leave(11)
        for size, fits in ((4, True), (7, False), (6, True), (0, True), (0, False)):
            self.assertEqual(self.room.take(size), fits)
        self.assertEqual((self.room.sends, self.room.size), (3, 10))

    def test_waitersComeInTurn(self) -> None:
        """A small one does not overtake a large one; whoever leaves admits all that
        fit."""
        self.assertTrue(self.room.take(10))
        waiting = [self.wait(8), self.wait(1), self.wait(1)]
        self.assertFalse(self.room.take(0))
        self.room.leave(10)
        self.runtime.settle()
        self.assertEqual([one.ended for one in waiting], [True] * 3)
        self.assertEqual((self.room.sends, self.room.size), (3, 10))

    def test_timeIsOver(self) -> None:
        """It is said, and nothing is taken; those behind it go on."""
        self.assertTrue(self.room.take(5))
        late, small = self.wait(8, 1.0), self.wait(2)
        self.runtime.advance(1.0)
        self.assertRaises(RequestTimeout, late.value)
        self.assertTrue(small.ended)
        self.assertEqual((self.room.sends, self.room.size), (2, 7))

    def test_whoIsCancelledTakesNothing(self) -> None:
        """Neither while it waits, nor in the turn in which it is admitted."""
        self.assertTrue(self.room.take(10))
        first, second = self.wait(10), self.wait(10)
        first.cancel()
        self.room.leave(10)
        second.cancel()
        self.runtime.settle()
        self.assertEqual((self.room.sends, self.room.size), (0, 0))


class ProducerTests(SynchronousTestCase):
    """A producer with room for two sends."""

    def test_restWaitsAndNothingIsLost(self) -> None:
        """No more than two are under way at any time."""
        here = ClientCluster()
        producer = here.producer(max_sends=2)
        sends = [
            here.runtime.start(producer.send(Message("T", str(n)))) for n in range(20)
        ]
        here.runtime.settle()
        found = {one.value().message_id for one in sends}
        stored = [
            message.message_id
            for broker in here.cluster.brokers.values()
            for message in broker.stored("T")
        ]
        self.assertEqual(sorted(found), sorted(stored))
        self.assertEqual(len(stored), 20)

    def test_waitIsPartOfTheTimeout(self) -> None:
        """The sentence names the settings."""
        here = ClientCluster("b1")
        producer = here.producer(max_sends=1)
        here.broker().faults[RequestCode.SEND_MESSAGE_V2] = [silent] * 9
        first = here.runtime.start(producer.send(Message("T", "1"), timeout=9.0))
        late = here.runtime.start(producer.send(Message("T", "2"), timeout=1.0))
        here.runtime.advance(1.5)
        self.assertFalse(first.ended)
        with self.assertRaisesRegex(RequestTimeout, "max_sends"):
            late.value()

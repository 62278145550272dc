"""Which message is next."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.inbox import Inbox, Taken
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.errors import ClientClosed
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.testing.runtime import MemoryRuntime
from tests.client.messages import stored_message


class InboxTests(SynchronousTestCase):
    """Queues in turn, readers in turn."""

    def setUp(self) -> None:
        self.runtime = MemoryRuntime()
        self.inbox = Inbox(self.runtime)

    def queue(self, number: int, count: int, **settings: Any) -> ProcessQueue:
        """A queue with messages, offered."""
        given = ConsumerSettings(group="G", **settings)
        queue = ProcessQueue(MessageQueue("T", "b", number), 0, given)
        queue.add([stored_message(n) for n in range(count)], count)
        queue.locked_until = self.runtime.monotonic() + 30.0
        self.inbox.offer(queue)
        return queue

    def places(self, *taken: Taken | None) -> list[tuple[int, int]]:
        """Queue and offset of messages."""
        return [
            (one.queue.queue.queue_id, one.message.queue_offset)
            for one in taken
            if one is not None
        ]

    def test_queuesComeInTurn(self) -> None:
        """A long queue does not hold up a short one."""
        self.queue(0, 3)
        self.queue(1, 1)
        found = self.places(*(self.inbox.take() for _ in range(5)))
        self.assertEqual(found, [(0, 0), (1, 0), (0, 1), (0, 2)])

    def test_everyReaderIsWoken(self) -> None:
        """As many as there are messages, though they come at once."""
        readers = [self.runtime.start(self.inbox.next()) for _ in range(3)]
        self.runtime.settle()
        self.queue(0, 2)
        self.runtime.settle()
        self.assertEqual([one.ended for one in readers], [True, True, False])

    def test_cancelledReaderHandsOn(self) -> None:
        """The message that it was woken for goes to the next one."""
        first, second = (self.runtime.start(self.inbox.next()) for _ in range(2))
        self.runtime.settle()
        self.queue(0, 1)
        first.cancel()
        self.runtime.settle()
        self.assertEqual(self.places(second.value()), [(0, 0)])

    def test_readerWaitsNoLongerThanItSays(self) -> None:
        """Then there is none."""
        reader = self.runtime.start(self.inbox.next(2.0))
        self.runtime.advance(1.9)
        self.assertFalse(reader.ended)
        self.runtime.advance(0.1)
        self.assertIsNone(reader.value())

    def test_droppedQueueGivesNothing(self) -> None:
        """Also where it was offered before."""
        queue = self.queue(0, 2)
        queue.drop()
        self.assertIsNone(self.inbox.take())
        self.inbox.offer(queue)
        self.assertIsNone(self.inbox.take())

    def test_closedInboxTellsReaders(self) -> None:
        """Those that wait, and those that come later."""
        reader = self.runtime.start(self.inbox.next())
        self.runtime.settle()
        self.inbox.close()
        self.runtime.settle()
        self.assertRaises(ClientClosed, reader.value)
        self.assertRaises(ClientClosed, self.inbox.take)

    def test_orderedQueueGivesOneAtATime(self) -> None:
        """The next one when that is settled, and only while the lock is good."""
        self.inbox = Inbox(self.runtime, ordered=True)
        queue = self.queue(0, 3, ordered=True)
        taken = self.inbox.take()
        assert taken is not None
        self.inbox.offer(queue)
        self.assertIsNone(self.inbox.take())
        queue.settle(taken.message)
        self.inbox.offer(queue)
        self.assertEqual(self.places(again := self.inbox.take()), [(0, 1)])
        assert again is not None
        queue.settle(again.message)
        queue.locked_until = self.runtime.monotonic()
        self.inbox.offer(queue)
        self.assertIsNone(self.inbox.take())

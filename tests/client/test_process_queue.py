"""The messages of one queue that are here."""

from __future__ import annotations

import random
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import MessageQueue
from tests.client.messages import stored_message as message


class ProcessQueueTests(SynchronousTestCase):
    """Waiting, given out, settled."""

    def make(self, **settings: Any) -> ProcessQueue:
        """A queue that begins at offset 10."""
        given = ConsumerSettings(**{"group": "G", **settings})
        return ProcessQueue(MessageQueue("T", "b", 0), 10, given)

    def filled(self, count: int, **settings: Any) -> ProcessQueue:
        """One with messages from offset 10."""
        queue = self.make(**settings)
        queue.add([message(10 + n) for n in range(count)], 10 + count)
        return queue

    def take(self, queue: ProcessQueue, now: float = 0.0) -> StoredMessage:
        """The next message, which is there."""
        found = queue.take(now)
        assert found is not None
        return found

    def test_firstUnsettledMessageIsCommitted(self) -> None:
        """Whatever is settled behind it; when all are, the end of the pull."""
        queue = self.filled(3)
        first, second, third = (self.take(queue) for _ in range(3))
        self.assertIsNone(queue.take(0.0))
        self.assertTrue(queue.settle(third))
        self.assertEqual(queue.commit_offset, 10)
        queue.settle(first)
        self.assertEqual(queue.commit_offset, 11)
        queue.settle(second)
        self.assertEqual(queue.commit_offset, 13)
        self.assertFalse(queue.settle(second))

    def test_filteredMessagesArePassed(self) -> None:
        """A pull that brings nothing wanted moves the offset all the same."""
        queue = self.make()
        self.assertEqual(queue.commit_offset, 10)
        queue.add([], 20)
        self.assertEqual((queue.commit_offset, queue.pull_offset), (20, 20))
        queue.add([message(25)], 30)
        self.assertEqual(queue.commit_offset, 25)

    def test_prefetchIsBoundedByCountAndSize(self) -> None:
        """What waits counts, not what is given out."""
        queue = self.filled(3, prefetch=3)
        self.assertTrue(queue.is_full)
        self.take(queue)
        self.assertFalse(queue.is_full)
        large = self.make(prefetch_bytes=100)
        large.add([message(10, 60), message(11, 60)], 12)
        self.assertTrue(large.is_full)

    def test_unacknowledgedMessagesAreBounded(self) -> None:
        """By their number, and by how far the first and the last are apart."""
        queue = self.filled(3, max_unacknowledged=3)
        taken = [self.take(queue) for _ in range(3)]
        self.assertTrue(queue.is_full)
        queue.settle(taken[0])
        self.assertFalse(queue.is_full)
        wide = self.make(max_span=100)
        wide.add([message(10)], 111)
        self.take(wide)
        self.assertTrue(wide.is_full)
        ordered = self.make(max_span=100, ordered=True)
        ordered.add([message(10)], 111)
        self.assertFalse(ordered.is_full)

    def test_roomIsTold(self) -> None:
        """When a message is taken or settled, when all go, and at the end."""
        queue = self.filled(2)
        told: list[int] = []
        queue.watch_room(lambda: told.append(len(queue)))
        queue.settle(self.take(queue))
        queue.reset(50)
        queue.drop()
        self.assertEqual(told, [2, 1, 0, 0])

    def test_messageComesBackFirst(self) -> None:
        """One that is given back is given out before those behind it."""
        queue = self.filled(2)
        first = self.take(queue)
        queue.give_back(first)
        queue.give_back(first)
        self.assertEqual(self.take(queue).queue_offset, 10)
        self.assertEqual(self.take(queue).queue_offset, 11)

    def test_nothingCountsOnceDropped(self) -> None:
        """The queue has another owner."""
        queue = self.filled(1)
        taken = self.take(queue)
        self.assertTrue(queue.is_given(taken))
        queue.drop()
        self.assertFalse(queue.is_given(taken))

    def test_overdueMessagesAreThoseAtTheHead(self) -> None:
        """As in Java: one that is not overdue hides those behind it."""
        queue = self.filled(4, consume_timeout=10.0)
        for now in (0.0, 0.0, 8.0, 0.0):
            self.take(queue, now)
        found = [one.queue_offset for one in queue.overdue(10.1)]
        self.assertEqual(found, [10, 11])
        self.assertEqual(len(queue.overdue(99.0, most=1)), 1)
        self.assertEqual(queue.overdue(10.0), [])

    def test_committedOffsetIsNeverBehindAnUnsettledMessage(self) -> None:
        """Whatever happens in whatever order."""
        for seed in range(20):
            dice = random.Random(seed)
            queue = self.make()
            unsettled: set[int] = set()
            taken: list[StoredMessage] = []
            for _ in range(200):
                act = dice.randrange(4)
                at = queue.pull_offset
                if act == 0:
                    wanted = [n for n in range(at, at + 5) if dice.random() < 0.7]
                    queue.add([message(n) for n in wanted], at + 5)
                    unsettled.update(wanted)
                elif act == 1 and queue.can_give:
                    taken.append(self.take(queue))
                elif act == 2 and taken:
                    one = taken.pop(dice.randrange(len(taken)))
                    queue.settle(one)
                    unsettled.discard(one.queue_offset)
                elif taken and dice.random() < 0.2:
                    queue.give_back(taken.pop())
                expected = min(unsettled, default=queue.pull_offset)
                self.assertEqual(queue.commit_offset, expected)

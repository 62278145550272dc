"""A store with batch queues."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, Wall, put, put_batches, with_batches

FOLDER = f"{ROOT}/batchconsumequeue/B/0"


class BatchCase(SynchronousTestCase):
    """A store that knows that topic B has batch queues."""

    def setUp(self) -> None:
        """The store, and queue 0 of B."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.start()

    def start(self) -> None:
        """Open the store that is on the disk."""
        self.store: Store = with_batches(self.disk, self.wall)
        self.queue = self.store.queue("B", 0)

    def offsets(self) -> tuple[int, int, int]:
        """First, end, next."""
        queue = self.queue
        return queue.min_offset, queue.max_offset, queue.next_offset

    def fill(self, count: int) -> list[tuple[int, bytes]]:
        """Put batches of 1, 2, 3 messages and one that is alone, again and again; what
        a reader has to find."""
        wanted = []
        for number in range(count):
            size = number % 4 + 1
            given = [b"%d.%d" % (number, each) for each in range(size % 4 or 1)]
            wanted += list(enumerate(given, self.queue.next_offset))
            if size == 4:
                put(self.store, self.queue, *given)
            else:
                put_batches(self.store, self.queue, given)
        return wanted

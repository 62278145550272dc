"""Random work on a store, with crashes."""

from __future__ import annotations

import random

from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import Wall, draft, opened


class Script:
    """Random work on a store, and what it must be able to return.

    @ivar sent: all bodies of each queue, in order; None where one was lost.
    @ivar safe: of each queue, how many were flushed.
    @ivar refused: bodies whose append failed. One may be there all the same, if the
        disk has refused to take it back as well.
    """

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.sent: dict[int, list[bytes | None]] = {n: [] for n in range(3)}
        self.safe = dict.fromkeys(range(3), 0)
        self.refused: set[bytes] = set()
        self.count = 0

    def work(self, store: Store) -> None:
        """A step."""
        luck = self.luck
        self.wall.now_ms += luck.choice((0, 1, 50, 4000))
        step = luck.random()
        if step < 0.5:
            self.append(store)
        elif step < 0.7:
            store.dispatch(luck.choice((1, 1000)))
        elif step < 0.85:
            store.flush()
            self.safe = {number: len(sent) for number, sent in self.sent.items()}
        elif step < 0.95:
            store.flush_queues()
        else:
            store.allocate_ahead()

    def append(self, store: Store) -> None:
        """Append, whatever comes of it."""
        drafts = []
        for _ in range(self.luck.randrange(1, 6)):
            self.count += 1
            body = b"%d " % self.count * self.luck.choice((1, 10, 800))
            number = self.luck.randrange(3)
            drafts.append(draft(store.queue("T", number), body))
        store.append(drafts)
        for each in drafts:
            if each.status == PUT_OK:
                self.sent[each.queue.queue_id].append(each.body)
            else:
                self.refused.add(each.body)

    def crash(self) -> Store:
        """Stop the machine and start again."""
        kind = self.luck.randrange(3)
        if kind == 0:
            self.disk.crash()
        elif kind == 1:
            self.disk.crash(self.luck)
        else:
            self.disk.crash(keep_all=True)
            self.safe = {number: len(sent) for number, sent in self.sent.items()}
        return self.open()

    def open(self) -> Store:
        """Start again."""
        return opened(self.disk, self.wall)

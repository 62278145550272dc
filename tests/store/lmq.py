"""A store with LMQs."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.interfaces import PUT_OK, Draft, IQueue, Placed
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import Wall, bodies, draft, opened

ON = {"enable_lmq": True, "enable_multi_dispatch": True}


def spread(queue: IQueue, body: bytes, *lmqs: IQueue, **changes: object) -> Draft:
    """A message for LMQs."""
    names = ",".join(light.topic for light in lmqs).encode()
    found = b"UNIQ_KEY\x01%b\x02INNER_MULTI_DISPATCH\x01%b\x02" % (b"1" * 32, names)
    given: dict[str, object] = {"parts": Placed(found, 1, lmqs), **changes}
    return draft(queue, body, **given)  # type: ignore[arg-type]  # tests name real ones


class LmqCase(SynchronousTestCase):
    """A store with topic T and LMQs a and b."""

    def setUp(self) -> None:
        """The store."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.start()

    def start(self, **settings: object) -> None:
        """Open the store that is on the disk."""
        self.store: Store = opened(self.disk, self.wall, **{**ON, **settings})
        self.queue = self.store.queue("T", 0)
        self.a = self.store.queue("%LMQ%a", 0)
        self.b = self.store.queue("%LMQ%b", 0)

    def put(self, *drafts: Draft) -> None:
        """Append messages together and dispatch them."""
        self.store.append(drafts)
        self.assertEqual({each.status for each in drafts}, {PUT_OK})
        while self.store.dispatch(1000):
            pass

    def fill(self, count: int = 20) -> None:
        """Messages in turn for a, for both, and for none."""
        for number in range(count):
            body = b"%d" % number
            lmqs = ((self.a,), (self.a, self.b), ())[number % 3]
            if lmqs:
                self.put(spread(self.queue, body, *lmqs))
            else:
                self.put(draft(self.queue, body))

    def check(self, count: int = 20) -> None:
        """All queues have what they got."""
        numbers = [b"%d" % number for number in range(count)]
        wanted = {
            self.queue: numbers,
            self.a: [body for at, body in enumerate(numbers) if at % 3 < 2],
            self.b: numbers[1::3],
        }
        for queue, there in wanted.items():
            self.assertEqual(bodies(self.store, queue), there, queue)
            self.assertEqual(queue.next_offset, len(there))

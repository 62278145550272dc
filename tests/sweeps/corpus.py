"""A store with messages whose places are known, and what can be read of one."""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.store.store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import Wall, draft, opened, placed

#: Topic, queue and queue offset of a message.
Place = tuple[str, int, int]

#: So many entries are in one file of a queue.
QUEUE_ENTRIES = 8

#: Two queues of one topic and one of another.
QUEUES = (("T", 0), ("T", 1), ("U", 0))

#: Queues begin a new file often.
SMALL = {"mapped_file_size_consume_queue": 20 * QUEUE_ENTRIES}


class Corpus:
    """Messages in a store.

    @ivar disk: where it is.
    @ivar bodies: of each place, the body.
    @ivar positions: of each place, from where to where its record stands.
    """

    def __init__(self, count: int, clean: bool, large: int = 0) -> None:
        """
        @param clean: whether the store is stopped; if not, its process dies.
        @param large: so many of the first messages have bodies of 1700 bytes.
        """
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.clean = clean
        self.bodies: dict[Place, bytes] = {}
        self.positions: dict[Place, tuple[int, int]] = {}
        store = opened(self.disk, self.wall, **SMALL)
        for number in range(count):
            topic, queue_id = QUEUES[number * 7 % 5 % 3]
            times = 425 if number < large else number * 5 % 17 + 1
            self.add(store, topic, queue_id, b"%03d." % number * times)
        while store.build_index(1000):
            pass
        store.flush()
        store.flush_queues()
        if clean:
            store.close()
        self.end = max(end for _, end in self.positions.values())

    def add(self, store: Store, topic: str, queue_id: int, body: bytes) -> None:
        """Append a message and note where it stands."""
        self.wall.now_ms += 7
        tags = "AB"[len(self.bodies) % 2]
        each = draft(store.queue(topic, queue_id), body, tags)
        store.append([each])
        assert each.status == PUT_OK
        store.dispatch(1)
        place = topic, queue_id, each.queue_offset
        self.bodies[place] = body
        self.positions[place] = each.position, each.end

    def last(self, count: int) -> list[tuple[Place, tuple[int, int]]]:
        """The last records, and where they stand."""
        return sorted(self.positions.items(), key=lambda item: item[1])[-count:]

    def image(self) -> MemoryDisk:
        """A disk to damage."""
        return self.disk.image(keep_all=True)

    def open(self, disk: MemoryDisk) -> Store:
        """Start on a damaged disk."""
        wall = Wall(self.wall.now_ms + 1000)
        return opened(disk, wall, **SMALL)


def handed(store: Store) -> dict[Place, bytes]:
    """The bodies that pulls hand out, many at once, by the place the record says."""
    return {
        (queue.topic, queue.queue_id, offset): body
        for queue in store.queues()
        for offset, body in placed(store, queue).items()
    }


def readable(store: Store) -> dict[Place, StoredMessage]:
    """All messages that pulls hand out, by the place they are handed out for."""
    found: dict[Place, StoredMessage] = {}
    for queue in store.queues():
        for offset, message in pulled(store, queue.topic, queue.queue_id):
            found[queue.topic, queue.queue_id, offset] = message
    return found


def pulled(
    store: Store, topic: str, queue_id: int
) -> Iterator[tuple[int, StoredMessage]]:
    """The messages of a queue with the offsets of their entries."""
    queue = store.queue(topic, queue_id)
    for offset in range(queue.min_offset, queue.max_offset):
        result = store.read(queue, offset, 1, 1 << 20, None)
        if result.count and result.next_offset == offset + 1:
            (message,) = decode_all(b"".join(result.records))
            yield offset, message

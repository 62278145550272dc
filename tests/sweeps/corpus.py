"""A store with messages whose places are known, and what can be read of one."""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.store.message_store import Store
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
    @ivar end: where the log ends.
    """

    #: What is set.
    settings = SMALL

    def __init__(self, count: int, clean: bool, large: int = 0) -> None:
        """
        @param clean: whether the store is stopped; if not, its process dies.
        @param large: so many of the first messages have bodies of 1700 bytes.
        """
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.clean = clean
        self.large = large
        self.bodies: dict[Place, bytes] = {}
        self.positions: dict[Place, tuple[int, int]] = {}
        store = opened(self.disk, self.wall, **self.settings)
        for number in range(count):
            self.wall.now_ms += 7
            self.add(store, self.message(store, number))
        while store.build_index(1000):
            pass
        store.flush()
        store.flush_queues()
        if clean:
            store.close()
        self.end = max(end for _, end in self.positions.values())

    def message(self, store: Store, number: int) -> Draft:
        """One that is to be appended."""
        queue = store.queue(*QUEUES[number * 7 % 5 % 3])
        times = 425 if number < self.large else number * 5 % 17 + 1
        return draft(queue, b"%03d." % number * times, "AB"[number % 2])

    def add(self, store: Store, each: Draft) -> None:
        """Append a message and note where it stands."""
        store.append([each])
        assert each.status == PUT_OK
        store.dispatch(1)
        place = each.queue.topic, each.queue.queue_id, each.queue_offset
        self.bodies[place] = each.body
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
        return opened(disk, wall, **self.settings)


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

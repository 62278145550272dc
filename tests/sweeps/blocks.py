"""Each block of each file of a store unreadable, after a clean stop and after a kill.

The store starts; whatever is handed out has the body that was sent; each message is
handed out that has no byte in the block; no number in a queue is used twice; and what
cannot be read is reported, with its file. So it is after two more starts.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.store.corruption_log import MAX_TRIES
from rocketbroker.store.interfaces import PUT_OK, Draft, IQueue
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, Wall, draft, opened
from tests.sweeps.corpus import Corpus, Place

#: So many entries are in one file of a queue: more than a block of them.
QUEUE_ENTRIES = 260

#: An append may be refused so often before the log has another place for it.
MAX_REFUSED = 4

RECORDS = 800


class Figures:
    """What a sweep has come to.

    @ivar cases: how many stores were damaged.
    @ivar lost: how many messages were not handed out.
    @ivar wrong: what was not as it has to be.
    """

    def __init__(self) -> None:
        self.cases = 0
        self.lost = 0
        self.wrong: list[str] = []

    def __str__(self) -> str:
        return (
            f"{self.cases} blocks: {self.lost} messages in them, "
            f"{len(self.wrong)} wrong"
        )


class KeyedCorpus(Corpus):
    """A store of two queues over several files of each kind; its messages have keys."""

    settings = {"mapped_file_size_consume_queue": 20 * QUEUE_ENTRIES}

    def message(self, store: Store, number: int) -> Draft:
        """See L{Corpus.message}."""
        queue = store.queue("T", number % 5 % 2)
        body = b"%03d." % number * (number * 5 % 17 + 1)
        return draft(queue, body, properties=b"KEYS\x01k%d\x02" % number)

    def blocks(self) -> Iterator[tuple[str, int]]:
        """Each block of each file that is not memory of a process."""
        for path in sorted(self.disk.paths()):
            if path.startswith(f"{ROOT}/rocketbroker.") and not path.endswith("ends"):
                continue
            for start in range(0, max(1, self.disk.size(path)), BLOCK):
                yield path, start


def sweep(figures: Figures, clean: bool, step: int = 1) -> None:
    """Spoil the blocks.

    @param step: only each so-manieth.
    """
    corpus = KeyedCorpus(RECORDS, clean)
    for number, (path, start) in enumerate(corpus.blocks()):
        if number % step == 0:
            disk = corpus.image()
            disk.spoil(path, start, min(start + BLOCK, max(1, disk.size(path))))
            Case(figures, corpus, path, start).check(disk)


class Case:
    """One damaged store."""

    def __init__(self, figures: Figures, corpus: Corpus, path: str, start: int) -> None:
        self.figures = figures
        self.corpus = corpus
        self.path = path
        self.start = start
        self.bodies = dict(corpus.bodies)
        self.given: set[Place] = set(self.bodies)
        self.messages = ""
        self.lost: set[Place] = set()
        #: After a clean stop nobody looks at what queues hold before somebody asks.
        self.may_be_refused = "/consumequeue/" in path and corpus.clean
        self.is_refused = False
        if "/commitlog/" in path:
            first = int(path[-20:]) + start
            for place, (position, end) in corpus.positions.items():
                if position < first + BLOCK and first < end:
                    self.lost.add(place)

    def wrong(self, why: str) -> None:
        """Note that it is not as it has to be."""
        self.figures.wrong.append(
            f"{self.path} at {self.start}, clean {self.corpus.clean}: {why}"
        )

    def check(self, disk: MemoryDisk) -> None:
        """Start, look at all that is handed out, go on, and start again."""
        self.figures.cases += 1
        self.figures.lost += len(self.lost)
        self.wall = Wall(self.corpus.wall.now_ms)
        try:
            store = self.started(disk)
            self.go_on(store)
            self.close(store)
            self.may_be_refused = self.is_refused = False
            store = self.started(disk)
            self.go_on(store)
            disk.crash(keep_all=True)
            store = self.started(disk)
            self.close(store)
        except (OSError, StoreError) as error:
            self.wrong(repr(error))
        if self.lost and self.path not in self.messages:
            self.wrong("nothing is said of it")

    def close(self, store: Store) -> None:
        """Stop it."""
        self.messages += "".join(store.findings())
        store.close()

    def started(self, disk: MemoryDisk) -> Store:
        """Start, and look."""
        self.wall.now_ms += 1000
        store = opened(disk, self.wall, **self.corpus.settings)
        self.messages += "".join(store.report)
        while store.build_index(1000):
            pass
        self.handed(store)
        self.found(store)
        self.messages += "".join(store.findings())
        return store

    def go_on(self, store: Store) -> None:
        """Append to each queue."""
        for queue_id in (0, 1):
            queue = store.queue("T", queue_id)
            body = b"after %d" % len(self.given)
            for _ in range(MAX_REFUSED):
                self.wall.now_ms += 1000
                each = draft(queue, body)
                store.append([each])
                if each.status == PUT_OK:
                    break
                store.allocate_ahead()
            else:
                self.wrong(f"nothing can be appended: {each.status}")
                return
            for _ in range(MAX_REFUSED):
                try:
                    while store.dispatch(1000):
                        pass
                    break
                except OSError:
                    continue
            place = "T", queue_id, each.queue_offset
            if place in self.given:
                self.wrong(f"{place} is given a second time")
            self.given.add(place)
            self.bodies[place] = body
        self.handed(store)

    def handed(self, store: Store) -> None:
        """See what pulls hand out."""
        found: set[Place] = set()
        for queue in store.queues():
            for offset, message in self.pulled(store, queue):
                place = queue.topic, queue.queue_id, offset
                found.add(place)
                if message.queue_offset != offset:
                    self.wrong(f"{place} is {message.queue_offset}")
                if message.body != self.bodies.get(place):
                    self.wrong(f"{place} is {message.body!r}")
        missing = sorted(set(self.bodies) - found - self.lost)
        if missing and not self.is_refused:
            self.wrong(f"{len(missing)} are lost, from {missing[0]} on")

    def pulled(
        self, store: Store, queue: IQueue
    ) -> Iterator[tuple[int, StoredMessage]]:
        """The messages of a queue, up to where a consumer is refused until the next
        start makes the queue again."""
        try:
            yield from pulled(store, queue)
        except OSError as error:
            if error.filename != self.path or not self.may_be_refused:
                raise
            self.is_refused = True

    def found(self, store: Store) -> None:
        """See that those in the log are found by their keys."""
        for place, body in self.corpus.bodies.items():
            if place not in self.lost:
                key = f"k{int(body[:3])}"
                try:
                    records = store.find_by_key("T", key, 9, 0, 1 << 62).records
                except OSError:
                    # The index is built again.
                    while store.build_index(1000):
                        pass
                    records = store.find_by_key("T", key, 9, 0, 1 << 62).records
                bodies = [
                    message.body for each in records for message in decode_all(each)
                ]
                if bodies != [body]:
                    self.wrong(f"{key} of {place} leads to {bodies}")


def pulled(store: Store, queue: IQueue) -> Iterator[tuple[int, StoredMessage]]:
    """The messages of a queue with the offsets at which they are handed out, to a
    consumer who comes again when he is refused."""
    offset = queue.min_offset
    refused = 0
    while offset < queue.max_offset:
        try:
            result = store.read(queue, offset, 32, 1 << 20, None)
        except OSError:
            refused += 1
            if refused > MAX_TRIES:
                raise
            continue
        refused = 0
        for message in decode_all(b"".join(result.records)):
            yield message.queue_offset, message
        assert result.next_offset > offset, result.status
        offset = result.next_offset

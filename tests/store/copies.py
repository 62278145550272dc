"""A store whose log is copied from another, as a slave's is from its master's."""

from __future__ import annotations

import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.hashing import tag_code
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.lmq import ON, spread
from tests.store.stores import (
    BORN_HOST_V6,
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
    batch,
    draft,
    make,
)

#: The longest name that is stored in a record of the old version.
LONG_TOPIC = "%RETRY%" + "t" * 140

MANY_KEYS = " ".join(f"key{number}" for number in range(20)).encode()


def open_copy(disk: MemoryDisk, wall: Wall, **changes: object) -> Store:
    """A store with all kinds of messages: topic B has batch queues."""
    store = make(disk, wall, **{**ON, **changes})
    store.know_topics("B".__eq__)
    store.open()
    return store


def work(store: Store, luck: random.Random, wall: Wall, count: int = 5) -> None:
    """Append messages of some kind."""
    wall.now_ms += luck.choice((0, 1, 40))
    for _ in range(count):
        queue = store.queue("T", luck.randrange(3))
        body = b"%x" % luck.getrandbits(64) * luck.choice((1, 10, 400))
        keys = b"KEYS\x01k%d %b\x02UNIQ_KEY\x01%032d\x02" % (
            luck.randrange(9),
            luck.choice((b"", MANY_KEYS)),
            luck.randrange(1 << 40),
        )
        tag = str(luck.randrange(4))
        tagged = keys + b"TAGS\x01%b\x02" % tag.encode()
        kind = luck.randrange(10)
        if kind < 4:
            made = [
                draft(queue, body, properties=keys),
                draft(queue, body, tag, properties=tagged),
            ]
        elif kind == 4:
            made = [draft(queue, body, sys_flag=luck.choice((4, 8, 12)))]
        elif kind == 5:
            made = [batch(store.queue("B", 0), body, b"", body)]
        elif kind == 6:
            lmqs = [store.queue(f"%LMQ%{name}", 0) for name in luck.choice(("a", "ab"))]
            made = [spread(queue, body, *lmqs)]
        elif kind == 7:
            delayed = keys + b"DELAY\x013\x02"
            schedule = store.queue("SCHEDULE_TOPIC_XXXX", 2)
            made = [draft(schedule, body, properties=delayed)]
        elif kind == 8:
            made = [draft(store.queue(LONG_TOPIC, 0), b"", born_host=BORN_HOST_V6)]
        else:
            parts = [(0, body, tagged, tag_code(tag)), (0, b"", keys, 0)]
            made = [draft(queue, b"", properties=b"", parts=parts)]
        store.append(made)
        assert {each.status for each in made} == {0}, [each.status for each in made]


def segments(disk: MemoryDisk) -> dict[str, bytes]:
    """The files of the log."""
    folder = f"{ROOT}/commitlog"
    return {name: disk.read(f"{folder}/{name}") for name in disk.list(folder)}


def settle(store: Store) -> None:
    """Dispatch all, and enter it into the index."""
    store.flush()
    while store.dispatched_position < store.published_position:
        store.dispatch(1000)
    while store.build_index(1000):
        pass


def differences(master: Store, slave: Store) -> list[str]:
    """In what a slave's queues and index differ from its master's."""
    found: list[str] = []
    for queue in master.queues():
        copy = slave.queue(queue.topic, queue.queue_id)
        for name in ("min_offset", "max_offset", "next_offset", "max_position"):
            wanted, there = getattr(queue, name), getattr(copy, name)
            if wanted != there:
                found.append(f"{queue}: {name} is {there}, not {wanted}")
        first, end = queue.min_offset, queue.max_offset
        same = copy.entries(first, end) == queue.entries(first, end)
        if queue.batch is not None:
            assert copy.batch is not None
            units = queue.batch.units(0, 1 << 20)
            same = copy.batch.units(0, 1 << 20) == units
        if not same:
            found.append(f"{queue}: other entries")
    filled = [{repr(q) for q in s.queues() if q.max_offset} for s in (master, slave)]
    if filled[0] != filled[1]:
        found.append(f"queues {filled[1]}, not {filled[0]}")
    for topic in ("T", "B", "%LMQ%a", LONG_TOPIC, "SCHEDULE_TOPIC_XXXX"):
        for key in ("k1", "k5", "key7"):
            records = [
                s.find_by_key(topic, key, 1000, 0, 1 << 60).records
                for s in (master, slave)
            ]
            if records[0] != records[1]:
                found.append(f"{key} of {topic}: other records")
    return found


class CopyCase(SynchronousTestCase):
    """A master's store, and a slave's."""

    def setUp(self) -> None:
        """Both, without messages."""
        self.start()

    def start(self) -> None:
        """The same, anew."""
        self.disk, self.wall = MemoryDisk(), Wall()
        self.slave_disk, self.slave_wall = MemoryDisk(), Wall(START_MS + 9_000)
        self.master = open_copy(self.disk, self.wall)
        self.slave = open_copy(self.slave_disk, self.slave_wall)

    def copy(self, luck: random.Random, size: int = SEGMENT) -> None:
        """Send the slave what it lacks, in random pieces."""
        rest = b""
        at = self.slave.published_position
        while at < self.master.published_position:
            more = self.master.raw_log.read(at + len(rest), luck.randrange(1, size))
            rest += more
            taken = self.slave.raw_log.append(at, rest)
            at += taken
            rest = rest[taken:]
            self.assertEqual(self.slave.published_position, at)
            self.assertTrue(more or taken, "no more of a record is there")
            if luck.random() < 0.3:
                self.slave.dispatch(luck.choice((1, 100)))
            if luck.random() < 0.1:
                self.slave.flush()
            if luck.random() < 0.1:
                self.slave.allocate_ahead()
        self.assertEqual(rest, b"")

    def check(self) -> None:
        """The slave has what the master has, log, queues and index."""
        for store in (self.master, self.slave):
            settle(store)
        self.assertEqual(segments(self.slave_disk), segments(self.disk))
        self.assertEqual(differences(self.master, self.slave), [])

"""The power goes at a slave, before any call that changes something on its disk.

A workload appends messages of all kinds at a master, and its log to a slave's, which
dispatches, flushes and cleans at random. Now and then the slave has more than the next
master: then it is truncated, and follows that one. Before each of the slave's calls to
the disk, images are taken of what it would hold (L{tests.sweeps.power}), and a store is
started on each.

Its log ends behind a record and is the beginning of its master's, byte by byte, and has
all that was flushed; in the middle of a truncation it ends where it did or where it is
to end. It goes on from there, and then has the same log, queues and index.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.copies import differences, open_copy, settle, work
from tests.store.stores import SEGMENT, Wall
from tests.sweeps.power import Figures, before

#: So many times as many images are taken in the middle of a truncation.
TRUNCATION_RATE = 10

#: So many bytes of a log are sent at once, at the most.
MAX_SENT = 60_000


class Workload:
    """Random work on a slave, watched.

    @ivar flushed: all before it is promised to be there.
    @ivar sent: nothing behind it has been sent.
    @ivar ends: in the middle of a truncation, the two positions where the log may end.
    """

    def __init__(
        self, figures: Figures, seed: int, rate: float, settings: dict[str, object]
    ) -> None:
        """
        @param rate: how many images are taken before each call.
        """
        self.figures = figures
        self.seed = seed
        self.rate = rate
        self.settings: dict[str, object] = {"broker_role": "SLAVE", **settings}
        self.luck = random.Random(seed)
        self.dice = random.Random(-seed - 1)
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.master_wall = Wall()
        self.master = open_copy(MemoryDisk(), self.master_wall)
        self.flushed = 0
        self.sent = 0
        self.ends: tuple[int, ...] = ()
        self.step = "open"

    def open(self, disk: MemoryDisk) -> Store:
        """Start on a disk."""
        return open_copy(disk, Wall(self.wall.now_ms + 1000), **self.settings)

    def run(self, steps: int) -> None:
        """Work, and look at what a crash would leave."""
        self.disk.watch = self.watch
        store = self.open(self.disk)
        for _ in range(steps):
            store = self.work(store)
        self.step = "close"
        store.close()
        self.flushed = self.sent
        self.watch("pwrite")
        self.disk.watch = None

    def work(self, store: Store) -> Store:
        """One step."""
        luck = self.luck
        passed_ms = luck.choice((0, 1, 50, 4000))
        self.wall.now_ms += passed_ms
        self.master_wall.now_ms += passed_ms
        steps: list[tuple[float, Callable[[], object]]] = [
            (
                6,
                lambda: work(self.master, luck, self.master_wall, luck.choice((5, 20))),
            ),
            (12, lambda: self.send(store)),
            (5, lambda: store.dispatch(luck.choice((1, 1000)))),
            (3, lambda: self.flush(store)),
            (2, store.flush_queues),
            (1, store.allocate_ahead),
            (1, lambda: store.build_index(100)),
            (0.5, lambda: self.fail_over(store)),
            (0.3, store.close),
        ]
        (what,) = luck.choices(range(len(steps)), [weight for weight, _ in steps])
        self.step = f"step {what}"
        steps[what][1]()
        if what == len(steps) - 1:
            self.flushed = self.sent
            store = self.open(self.disk)
        return store

    def flush(self, store: Store) -> None:
        """Put the log on the disk."""
        self.flushed = store.flush()

    def send(self, store: Store) -> None:
        """Send the slave some of what it lacks."""
        at = store.published_position
        data = self.master.raw_log.read(at, self.luck.randrange(1, MAX_SENT))
        self.sent = at + len(data)
        self.sent = at + store.raw_log.append(at, data)

    def fail_over(self, store: Store) -> None:
        """Another slave of the same master becomes the next one; it has less, and its
        clock may be slow."""
        end = store.published_position
        store.flush()
        self.flushed = end
        first = self.luck.randrange(end // 2, end + 1)
        self.master_wall = Wall(self.wall.now_ms - self.luck.choice((0, 60_000)))
        other = open_copy(MemoryDisk(), self.master_wall)
        follow(other, self.master, first)
        settle(other)
        self.ends = end, other.published_position
        self.flushed = 0
        store.raw_log.truncate(other.published_position)
        self.ends = ()
        self.master = other
        self.sent = self.flushed = other.published_position

    # Crashes.

    def watch(self, call: str) -> None:
        """Before a call: perhaps the machine stops here."""
        step = f"seed {self.seed}, {self.step}"
        rate = self.rate * (TRUNCATION_RATE if self.ends else 1)
        before(call, self.figures, self.dice, rate, self.disk, step, self.check)

    def check(self, disk: MemoryDisk, what: str) -> None:
        """Look at what is left."""
        figures, master = self.figures, self.master
        store = self.open(disk)
        end = store.published_position
        figures.checked += 1
        if self.ends and end not in self.ends:
            figures.wrong.append(f"{what}: ends at {end}, not one of {self.ends}")
        if not self.flushed <= end <= self.sent:
            figures.wrong.append(f"{what}: ends at {end} of {self.flushed, self.sent}")
        for at in range(0, end, SEGMENT):
            size = min(SEGMENT, end - at)
            if store.raw_log.read(at, size) != master.raw_log.read(at, size):
                figures.wrong.append(f"{what}: other bytes from {at} on")
        follow(store, master, master.published_position)
        if self.dice.random() < 0.5:
            settle(store)
            disk.crash(keep_all=True)
            store = self.open(disk)
        settle(store)
        settle(master)
        if store.published_position != master.published_position:
            figures.wrong.append(f"{what}: it does not follow")
        figures.wrong += [f"{what}: {each}" for each in differences(master, store)]


def follow(store: Store, master: Store, end: int) -> None:
    """Copy what a master has, and does not begin at a position or behind it."""
    while store.published_position < end:
        at = store.published_position
        data = master.raw_log.read(at, min(SEGMENT, max(end - at, 0)))
        if not store.raw_log.append(at, data):
            return


#: What differs between workloads.
SETTINGS: tuple[dict[str, object], ...] = (
    {"flush_disk_type": "ASYNC_FLUSH"},
    {"flush_disk_type": "SYNC_FLUSH"},
)


def sweep(figures: Figures, seeds: range, steps: int, rate: float) -> None:
    """Run workloads.

    @param rate: how many images are taken before each call.
    """
    for seed in seeds:
        settings = SETTINGS[seed % len(SETTINGS)]
        Workload(figures, seed, rate, settings).run(steps)

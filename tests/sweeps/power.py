"""The power goes, before any call that changes something on the disk.

A workload runs once; before each of its calls to the disk, images are taken of what the
disk would hold if the machine stopped there: only what was synced, all, names without
their data, data without names, and any blocks and names. A store is started on each.

What was flushed is there, and nothing that was never sent; each offset leads to its
record, or keeps the place of one that was not flushed; tables have the content of their
last completed write or of one that had begun; and the store goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, SEGMENT, Wall, draft, opened, put
from tests.sweeps.corpus import SMALL, Place, handed

#: What changes a disk; before other calls it is as it was before the last of these.
CHANGES = frozenset(
    {
        "allocate",
        "datasync",
        "make_dirs",
        "open",
        "pwrite",
        "remove",
        "remove_dir",
        "rename",
        "sync_dir",
        "truncate",
    }
)

#: So many steps has a workload.
STEPS = 60

TABLE = f"{ROOT}/config/table.json"

#: So far a clock is set, in ms: an hour, as after a change of the time zone, or a year,
#: as after an empty battery.
JUMPS = (-3_600_000, -3_600_000, 3_600_000, -31_536_000_000, 31_536_000_000)


class Figures:
    """What a sweep has come to.

    @ivar images: how many disks a store was started on, by what was left on them.
    @ivar calls: how many calls the workloads made that change something.
    @ivar checked: how many flushed messages were looked for.
    @ivar beyond: how many others were there.
    @ivar places: how many places were kept of messages that were not.
    @ivar tables: how many tables were read.
    @ivar wrong: what was not as it has to be.
    """

    def __init__(self) -> None:
        self.images: dict[str, int] = {}
        self.calls = 0
        self.checked = 0
        self.beyond = 0
        self.places = 0
        self.tables = 0
        self.wrong: list[str] = []

    def taken(self) -> str:
        """How many disks were left, of which kinds."""
        kinds = ", ".join(f"{what} {count}" for what, count in self.images.items())
        return f"{sum(self.images.values())} images ({kinds}) of {self.calls} calls"

    def __str__(self) -> str:
        return (
            f"{self.taken()}: "
            f"{self.checked} flushed messages there, {self.beyond} beyond them, "
            f"{self.places} places kept, {self.tables} tables read, "
            f"{len(self.wrong)} wrong"
        )


#: What is left on a disk, by its name.
KINDS: dict[str, Callable[[MemoryDisk, random.Random], MemoryDisk]] = {
    "synced": lambda disk, luck: disk.image(),
    "all": lambda disk, luck: disk.image(keep_all=True),
    "names": lambda disk, luck: disk.image(keep_names=True),
    "data": lambda disk, luck: disk.image(keep_all=True, keep_names=False),
    "any": lambda disk, luck: disk.image(luck),
}


def before(
    call: str,
    figures: Figures,
    dice: random.Random,
    rate: float,
    disk: MemoryDisk,
    step: str,
    check: Callable[[MemoryDisk, str], None],
) -> None:
    """Before a call: perhaps the machine stops here.

    @param rate: how many images are taken.
    @param step: what is under way, for what is wrong.
    @param check: given an image, and all that is known of it.
    """
    if call not in CHANGES:
        return
    figures.calls += 1
    images = int(rate) + (dice.random() < rate % 1)
    for _ in range(images):
        kind = dice.choice((*KINDS, "any", "any"))
        figures.images[kind] = figures.images.get(kind, 0) + 1
        what = f"{step}, before {call}, {kind} left"
        image = KINDS[kind](disk, dice)
        try:
            check(image, what)
        except Exception as error:  # whatever it is, it is a finding
            figures.wrong.append(f"{what}: {error!r}")
        finally:
            image.discard()


class Promise:
    """What must be there after a crash, and what may be.

    @ivar sent: of each place, all bodies that were ever put there.
    @ivar safe: of each place, the body that was flushed.
    @ivar positions: of each place, where its record begins, or its batch.
    @ivar waiting: what was appended and is not flushed: end, place, body.
    @ivar appending: the bodies of the append that is under way.
    @ivar deleted_topics: how often a topic was deleted.
    @ivar table: the last content of the table that was written whole.
    @ivar writing: the content that is being written.
    """

    def __init__(self) -> None:
        self.sent: dict[Place, set[bytes]] = {}
        self.safe: dict[Place, bytes] = {}
        self.positions: dict[Place, int] = {}
        self.waiting: list[tuple[int, Place, bytes]] = []
        self.appending: set[bytes] = set()
        self.deleted_topics = 0
        self.table = b""
        self.writing = b""

    def appended(self, each: Draft, bodies: list[bytes]) -> None:
        """Note a draft that was stored."""
        queue = each.queue
        for offset, body in enumerate(bodies, each.queue_offset):
            place = queue.topic, queue.queue_id, offset
            self.sent.setdefault(place, set()).add(body)
            self.positions[place] = each.position
            self.waiting.append((each.end, place, body))

    def flushed(self, position: int) -> None:
        """All before a position is safe."""
        for end, place, body in self.waiting:
            if end <= position:
                self.safe[place] = body
        self.waiting = [each for each in self.waiting if each[0] > position]

    def cleaned(self, position: int) -> None:
        """What is before a position may be removed."""
        self.safe = {
            place: body
            for place, body in self.safe.items()
            if self.positions[place] >= position
        }

    def deleted(self, topic: str) -> None:
        """A topic was deleted: nothing is promised about its messages."""
        self.deleted_topics += 1
        self.safe = {p: body for p, body in self.safe.items() if p[0] != topic}
        self.waiting = [each for each in self.waiting if each[1][0] != topic]


class Workload:
    """Random work on a store, watched."""

    def __init__(
        self, figures: Figures, seed: int, rate: float, settings: dict[str, object]
    ) -> None:
        """
        @param rate: how many images are taken before each call.
        """
        self.figures = figures
        self.seed = seed
        self.rate = rate
        self.settings = {**SMALL, "file_reserved_time": 0, **settings}
        self.luck = random.Random(seed)
        self.dice = random.Random(-seed - 1)
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.promise = Promise()
        self.count = 0
        self.step = "open"

    def open(self, disk: MemoryDisk) -> Store:
        """Start on a disk."""
        return opened(disk, Wall(self.wall.now_ms + 1000), **self.settings)

    def run(self, steps: int) -> None:
        """Work, and look at what a crash would leave."""
        self.disk.watch = self.watch
        store = opened(self.disk, self.wall, **self.settings)
        table = JsonFile(self.disk, TABLE)
        for _ in range(steps):
            store = self.work(store, table)
        self.step = "close"
        store.close()
        self.promise.flushed(1 << 62)
        self.watch("pwrite")
        self.disk.watch = None

    def work(self, store: Store, table: JsonFile) -> Store:
        """One step."""
        luck = self.luck
        self.wall.now_ms += luck.choice((0, 1, 50, 4000))
        steps: list[tuple[float, Callable[[], object]]] = [
            (10, lambda: self.append(store)),
            (5, lambda: store.dispatch(luck.choice((1, 1000)))),
            (3, lambda: self.promise.flushed(store.flush())),
            (2, store.flush_queues),
            (1, store.allocate_ahead),
            (1, lambda: store.build_index(100)),
            (1, lambda: self.write(table)),
            (0.3, lambda: self.clean(store)),
            (0.3, lambda: self.delete(store)),
            (0.3, store.close),
        ]
        (what,) = luck.choices(range(len(steps)), [weight for weight, _ in steps])
        self.step = f"step {what}"
        steps[what][1]()
        if what == len(steps) - 1:
            self.promise.flushed(1 << 62)
            store = opened(self.disk, self.wall, **self.settings)
        return store

    def append(self, store: Store) -> None:
        """Append some messages, single and in a batch."""
        drafts: list[tuple[Draft, list[bytes]]] = []
        for _ in range(self.luck.randrange(1, 5)):
            topic, queue_id = self.luck.choice((("T", 0), ("T", 1), ("U", 0)))
            queue = store.queue(topic, queue_id)
            bodies = [self.body() for _ in range(self.luck.choice((1, 1, 1, 4)))]
            each = draft(queue, bodies[0], "A")
            if len(bodies) > 1:
                each.parts = [(0, body, each.properties, 0) for body in bodies]
            drafts.append((each, bodies))
        self.promise.appending = {body for _, bodies in drafts for body in bodies}
        store.append([each for each, _ in drafts])
        for each, bodies in drafts:
            assert each.status == PUT_OK, each.status
            self.promise.appended(each, bodies)

    def body(self) -> bytes:
        """A body that no other message has."""
        self.count += 1
        return b"%d " % self.count * self.luck.choice((1, 10, 300, 1200))

    def write(self, table: JsonFile) -> None:
        """Write the table anew."""
        self.count += 1
        self.promise.writing = b"%d" % self.count * 2000
        table.save(self.promise.writing)
        self.promise.table = self.promise.writing

    def delete(self, store: Store) -> None:
        """Delete a topic."""
        self.promise.deleted("U")
        store.delete_topic("U")
        store.remove_deleted()

    def clean(self, store: Store) -> None:
        """Remove the segments that are not needed any more; the last one stays."""
        last = store.published_position // SEGMENT * SEGMENT
        self.promise.cleaned(last)
        store.cleaner.expire_now()
        for _ in store.clean():
            pass

    # Crashes.

    def watch(self, call: str) -> None:
        """Before a call: perhaps the machine stops here."""
        step = f"seed {self.seed}, {self.step}"
        before(call, self.figures, self.dice, self.rate, self.disk, step, self.check)

    def check(self, disk: MemoryDisk, what: str) -> None:
        """Look at what is left."""
        figures, promise = self.figures, self.promise
        self.check_table(disk, what)
        store = self.open(disk)
        found = handed(store)
        for place, body in promise.safe.items():
            figures.checked += 1
            if found.get(place) != body:
                figures.wrong.append(f"{what}: {place} is lost")
        for place, body in found.items():
            if place not in promise.safe:
                figures.beyond += 1
                known = promise.sent.get(place)
                if body not in (known or {body}) | promise.appending:
                    figures.wrong.append(f"{what}: {place} was never sent so")
        for queue in store.queues():
            there = {p[2] for p in found if p[:2] == (queue.topic, queue.queue_id)}
            for offset in range(queue.min_offset, queue.max_offset):
                figures.places += offset not in there
            if queue.next_offset != queue.max_offset:
                figures.wrong.append(f"{what}: {queue} does not go on where it ends")
        after = put(store, store.queue("T", 0), b"after")[0]
        found["T", 0, after.queue_offset] = b"after"
        if self.dice.random() < 0.5:
            disk.crash(keep_all=True)
        else:
            store.close()
        again = handed(self.open(disk))
        if promise.deleted_topics:
            # What the log still holds of them may come back.
            found, again = without(found, "U"), without(again, "U")
        if again != found:
            figures.wrong.append(f"{what}: another start finds something else")

    def check_table(self, disk: MemoryDisk, what: str) -> None:
        """The table has one of its last two contents."""
        content = JsonFile(disk, TABLE).load() or b""
        self.figures.tables += 1
        if content not in (self.promise.table, self.promise.writing):
            self.figures.wrong.append(f"{what}: the table is {content[:20]!r}")


class Jumping(Workload):
    """The same with a clock that is set, and with longer runs of messages for one
    queue, so that its files have blocks that are not on the disk before others that
    are."""

    def work(self, store: Store, table: JsonFile) -> Store:
        """One step."""
        luck = self.luck
        self.wall.now_ms += luck.choice((0, 50, 4000))
        steps: list[tuple[float, Callable[[], object]]] = [
            (6, lambda: self.append(store)),
            (3, lambda: self.promise.flushed(store.flush())),
            (3, lambda: store.flush_queues(luck.choice((0, 1000, 1000)))),
            (1, lambda: store.build_index(1000)),
            (1, self.jump),
        ]
        (what,) = luck.choices(range(len(steps)), [weight for weight, _ in steps])
        self.step = f"jumping step {what}"
        steps[what][1]()
        return store

    def jump(self) -> None:
        """Set the clock."""
        self.wall.now_ms += self.luck.choice(JUMPS)

    def append(self, store: Store) -> None:
        """Append many small messages, or some that fill segments, and dispatch them."""
        topic, queue_id = self.luck.choice((("T", 0), ("T", 1), ("U", 0)))
        queue = store.queue(topic, queue_id)
        count, times = self.luck.choice(((300, 1), (300, 1), (10, 2000)))
        drafts = []
        for _ in range(count):
            self.count += 1
            drafts.append(draft(queue, b"%d " % self.count * times, "A"))
        self.promise.appending = {each.body for each in drafts}
        store.append(drafts)
        for each in drafts:
            assert each.status == PUT_OK, each.status
            self.promise.appended(each, [each.body])
        while store.dispatch(1000):
            pass


def without(found: dict[Place, bytes], topic: str) -> dict[Place, bytes]:
    """All but the messages of one topic."""
    return {place: body for place, body in found.items() if place[0] != topic}


#: What differs between workloads.
SETTINGS: tuple[dict[str, object], ...] = (
    {"flush_disk_type": "ASYNC_FLUSH"},
    {"flush_disk_type": "SYNC_FLUSH"},
)


#: One workload in so many has another whose clock is set, of half as many steps.
JUMPING = 3


def sweep(figures: Figures, seeds: range, steps: int, rate: float) -> None:
    """Run workloads.

    @param rate: how many images are taken before each call.
    """
    for seed in seeds:
        settings = SETTINGS[seed % len(SETTINGS)]
        Workload(figures, seed, rate, settings).run(steps)
        if seed % JUMPING == 0:
            settings = SETTINGS[seed // JUMPING % len(SETTINGS)]
            settings = {**settings, "mapped_file_size_consume_queue": 20 * 4000}
            Jumping(figures, seed, rate, settings).run(steps // 2)

"""Stores whose segments grow old."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.interfaces import (
    IQueue,
)
from rocketbroker.store.message_store import Store
from rocketbroker.store.retention.cleaner import local_hour
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
    bodies,
    opened,
    put,
)

LOG = f"{ROOT}/commitlog"
HOUR_MS = 3_600_000
MINUTE_MS = 60_000

#: Another hour than that of START_MS.
NEVER = f"{(local_hour(START_MS) + 12) % 24:02d}"
NOW = f"{local_hour(START_MS):02d}"

#: Two of these fill a segment.
HALF = 30_000


class CleaningCase(SynchronousTestCase):
    """A store whose segments hold two messages each."""

    def setUp(self) -> None:
        """An empty disk."""
        self.disk = MemoryDisk()
        self.wall = Wall()

    def begin(self, messages: int = 6, **changes: object) -> None:
        """Open a store, and put messages into a queue of it; nothing is full."""
        given: dict[str, object] = {
            "delete_when": NEVER,
            "disk_space_enough_bytes": 0,
            "max_hash_slot_num": 10,
            "max_index_num": 20,
            **changes,
        }
        self.store = opened(self.disk, self.wall, **given)
        self.addCleanup(self.close)
        self.queue = self.store.queue("T", 0)
        self.put(messages)

    def close(self) -> None:
        """Close the store, whatever its disk says."""
        self.disk.heal()
        self.disk.capacity = None
        self.store.close()

    def put(self, messages: int, queue: IQueue | None = None) -> None:
        """Put messages into a queue, and all of it on the disk and into the index."""
        queue = queue or self.queue
        for number in range(messages):
            put(self.store, queue, b"%03d" % number + b"x" * HALF)
        self.settle()

    def settle(self) -> None:
        """Let everything that follows the log catch up; files are a minute old."""
        self.store.flush()
        self.store.flush_queues()
        while self.store.build_index(1000):
            pass
        self.touch(self.disk.list(LOG))

    def touch(self, names: list[str]) -> None:
        """Let segments be changed a minute ago, as all that changes from now on."""
        self.disk.now_ms = self.wall.now_ms - MINUTE_MS
        for name in names:
            self.disk.open(f"{LOG}/{name}").truncate(SEGMENT)

    def round(self, store: Store | None = None) -> list[int]:
        """One round; the pauses between its steps."""
        return list((store or self.store).clean())

    def segments(self) -> list[int]:
        """Where the files of the log begin."""
        return [int(name) for name in self.disk.list(LOG)]

    def numbers(self) -> list[int]:
        """The messages that a reader gets."""
        return [int(body[:3]) for body in bodies(self.store, self.queue)]

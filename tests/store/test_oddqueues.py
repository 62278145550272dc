"""Starts that find queue files of a wrong length, or none between two others."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.store.ends import NAME
from rocketbroker.store.segments import segment_name
from rocketbroker.store.store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    Wall,
    opened,
    placed,
    put,
)
from tests.store.test_recovery import restored, snapshot

SIZE = QUEUE_ENTRIES * 20
MESSAGES = 450


def path(start: int) -> str:
    """A file of T/0."""
    return f"{ROOT}/consumequeue/T/0/{segment_name(start)}"


def resized(start: int, length: int) -> Callable[[MemoryDisk], None]:
    """Give such a file another length; what comes to it is rubbish."""

    def change(disk: MemoryDisk) -> None:
        file = disk.open(path(start))
        more = length - file.size()
        file.truncate(length)
        if more > 0:
            file.pwrite(b"\x01" * more, length - more)

    return change


def removed(*starts: int) -> Callable[[MemoryDisk], None]:
    """Remove such files."""

    def change(disk: MemoryDisk) -> None:
        for start in starts:
            disk.remove(path(start))

    return change


def changes() -> Iterator[tuple[str, Callable[[MemoryDisk], None]]]:
    """All that may be odd, and the file that is to be named."""
    for start in range(0, 5 * SIZE, SIZE):
        for length in (0, 1, 20, 700, SIZE - 20, SIZE - 1, SIZE + 1, 2 * SIZE):
            yield path(start), resized(start, length)
    for gone in ((SIZE,), (SIZE, 2 * SIZE), (3 * SIZE,), (2 * SIZE, 3 * SIZE)):
        yield path(gone[0]), removed(*gone)


class OddQueueTests(SynchronousTestCase):
    """A log of several segments, and a queue of five files beside two others."""

    def setUp(self) -> None:
        """The store, stopped cleanly and killed."""
        disk = MemoryDisk()
        wall = Wall()
        store = opened(disk, wall)
        self.bodies = [b"%d " % number + b"x" * 900 for number in range(MESSAGES)]
        for number in range(0, MESSAGES, 50):
            put(store, store.queue("T", 0), *self.bodies[number : number + 50])
            put(store, store.queue("T", 1), b"%d" % number)
            wall.now_ms += 10_000
        store.flush()
        store.flush_queues()
        self.killed = snapshot(disk)
        store.close()
        self.clean = snapshot(disk)
        self.assertIn(path(4 * SIZE), self.clean)

    def start(self, disk: MemoryDisk, gone: int = 0) -> Store:
        """Start, and look whether all can be read.

        @param gone: of how many messages the records may be gone, at the most.
        """
        store = opened(disk)
        queue = store.queue("T", 0)
        self.assertEqual((queue.max_offset, queue.next_offset), (MESSAGES, MESSAGES))
        found = placed(store, queue)
        self.assertTrue(bool(gone) <= queue.min_offset <= gone)
        self.assertEqual(
            found, dict(enumerate(self.bodies[queue.min_offset :], queue.min_offset))
        )
        self.assertEqual(store.queue("T", 1).max_offset, MESSAGES // 50)
        return store

    def files(self, how: str) -> MemoryDisk:
        """The disk after a stop: of ours, of Java's, a kill."""
        disk = restored(self.killed if how == "killed" else self.clean)
        if how == "java":
            disk.remove(f"{ROOT}/{NAME}")
        return disk

    def test_everything(self) -> None:
        """All messages are served, whatever is odd, and however the store was stopped;
        the file is named, and the next start finds nothing odd."""
        for name, change in changes():
            for how in ("clean", "java", "killed"):
                disk = self.files(how)
                change(disk)
                store = self.start(disk)
                self.assertIn(name, "".join(store.report))
                self.assertEqual(disk.size(name), SIZE)
                put(store, store.queue("T", 0), b"next")
                self.assertEqual(placed(store, store.queue("T", 0))[MESSAGES], b"next")
                store.close()
                again = opened(disk)
                self.assertEqual(again.report, [])
                again.close()

    def test_oldRecordsGone(self) -> None:
        """So it is when the first records are not in the log any more."""
        for name, change in changes():
            for how in ("java", "killed"):
                disk = self.files(how)
                for start in range(0, 3 * SEGMENT, SEGMENT):
                    disk.remove(f"{ROOT}/commitlog/{segment_name(start)}")
                change(disk)
                store = self.start(disk, gone=210)
                self.assertIn(name, "".join(store.report))
                store.close()

    def test_killedMeanwhile(self) -> None:
        """A start that is killed while it makes queues again is not believed by the
        next."""
        for change in (removed(SIZE), resized(2 * SIZE, 0), resized(SIZE, SIZE + 1)):
            for how in ("clean", "killed"):
                for call in ("pwrite", "truncate", "datasync", "sync_dir"):
                    for after in (0, 1, 2, 3, 5, 8, 13, 21):
                        disk = self.files(how)
                        change(disk)
                        disk.fail(call, errno.EIO, after)
                        with contextlib.suppress(StoreError):
                            opened(disk)
                        disk.heal()
                        disk.crash(keep_all=True)
                        self.start(disk)

"""A store that starts, and goes on, where files of its queues cannot be read."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.files.os_errors import ReadError
from rocketbroker.records.entries import SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    Wall,
    bodies,
    opened,
    put,
    put_batches,
    unwrapped,
    with_batches,
)

FOLDER = os.path.join(ROOT, "consumequeue", "T", "0")
FILE = os.path.join(FOLDER, segment_name(0))
KEPT = os.path.join(ROOT, "consumequeue.given-up", "T", "0", segment_name(0))

#: A queue whose file has four blocks and a bit.
LARGE = {"mapped_file_size_consume_queue": 820 * SIZE}
COUNT = 700


class UnreadableQueueTests(SynchronousTestCase):
    """Messages of one queue, whose entries are in the blocks of one file."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Fill it, and stop it."""
        self.disk = MemoryDisk()
        store = opened(self.disk, Wall(), **LARGE)
        self.bodies = [b"%d" % number for number in range(COUNT)]
        put(store, store.queue("T", 0), *self.bodies)
        put(store, store.queue("T", 1), b"beside")
        store.close()

    def start(self) -> Store:
        """Start."""
        store = opened(self.disk, Wall(), **LARGE)
        self.addCleanup(store.close)
        return store

    def read(self, store: Store) -> list[bytes]:
        """What a consumer gets."""
        return bodies(store, store.queue("T", 0))

    def test_crash(self) -> None:
        """After a crash a file of which a block cannot be read is reported and kept,
        and all is entered again from the log; numbers go on."""
        for block in range(0, COUNT * SIZE, BLOCK):
            self.start_over()
            self.disk.open(f"{ROOT}/abort", create=True)
            self.disk.spoil(FILE, block, block + BLOCK)
            store = opened(self.disk, Wall(), **LARGE)
            self.assertIn(f"({FILE}, position ", "".join(store.report))
            self.assertIn(f"is now {KEPT};", "".join(store.report))
            self.assertRaises(OSError, self.disk.read, KEPT)
            self.assertEqual(self.read(store), self.bodies)
            (more,) = put(store, store.queue("T", 0), b"more")
            self.assertEqual(more.queue_offset, COUNT)
            store.close()
            store = opened(self.disk, Wall(), **LARGE)
            self.assertEqual((store.report, len(self.read(store))), ([], COUNT + 1))
            store.close()

    def test_lastBlock(self) -> None:
        """After a clean stop so is the block where the queue ends, if the file was
        changed since; else nobody looks at it before a reader, who is refused, and the
        next start makes it again."""
        for is_changed in (True, False):
            self.start_over()
            self.disk.spoil(FILE, COUNT * SIZE // BLOCK * BLOCK, COUNT * SIZE)
            if is_changed:
                self.disk.open(FILE).truncate(820 * SIZE)
            store = opened(self.disk, Wall(), **LARGE)
            self.assertEqual(FILE in "".join(store.report), is_changed)
            if not is_changed:
                self.assertRaises(ReadError, self.read, store)
                store.close()
                store = opened(self.disk, Wall(), **LARGE)
                self.assertIn(FILE, "".join(store.report))
            self.assertEqual(self.read(store), self.bodies)
            store.close()

    def test_reader(self) -> None:
        """After a clean stop who comes upon another is refused, as all its messages are
        good; that is counted once. All else is served, and after the next start this is
        too."""
        for is_killed in (False, True):
            self.start_over()
            self.disk.spoil(FILE, BLOCK, BLOCK + 1)
            store = opened(self.disk, Wall(), **LARGE)
            self.assertEqual(store.report, [])
            for _ in range(2):
                error = self.assertRaises(ReadError, self.read, store)
                self.assertEqual(error.filename, FILE)
            self.assertEqual(store.corrupt_records, 1)
            (message,) = store.findings()
            self.assertIn(FILE, message)
            self.assertEqual(bodies(store, store.queue("T", 1)), [b"beside"])
            put(store, store.queue("T", 0), b"more")
            if is_killed:
                self.disk.crash(keep_all=True)
            else:
                store.close()
            store = opened(self.disk, Wall(), **LARGE)
            self.assertEqual(self.read(store), [*self.bodies, b"more"])
            store.close()

    def test_write(self) -> None:
        """Where a block goes bad that a running store is to write to, its file is set
        aside, and reads of it are refused till the next start; nothing is lost."""
        store = self.start()
        queue = store.queue("T", 0)
        block = COUNT * SIZE // BLOCK * BLOCK
        self.disk.spoil(FILE, block, block + BLOCK)
        put(store, queue, b"one", b"two")
        self.assertTrue(self.disk.exists(KEPT))
        for offset in (0, COUNT):
            error = self.assertRaises(OSError, store.read, queue, offset, 9, 99, None)
            self.assertEqual((error.errno, error.filename), (errno.EIO, FILE))
        self.assertEqual(bodies(store, store.queue("T", 1)), [b"beside"])
        store.close()
        self.assertEqual(self.read(self.start()), [*self.bodies, b"one", b"two"])

    def test_batches(self) -> None:
        """So are the units of a batch queue; after a crash these are made again without
        a look at what stood there."""
        changes = {"mapper_file_size_batch_consume_queue": 300 * BATCH_SIZE}
        path = os.path.join(ROOT, "batchconsumequeue", "B", "0", segment_name(0))
        for clean in (True, False):
            disk = MemoryDisk()
            store = with_batches(disk, Wall(), **changes)
            given = [[b"%d.%d" % (n, m) for m in range(3)] for n in range(200)]
            put_batches(store, store.queue("B", 0), *given)
            expected = unwrapped(store, store.queue("B", 0))
            self.assertEqual(len(expected), 600)
            store.close()
            if not clean:
                disk.open(f"{ROOT}/abort", create=True)
            disk.spoil(path, 2 * BLOCK, 3 * BLOCK)
            store = with_batches(disk, Wall(), **changes)
            self.assertEqual(path in "".join(store.report), clean)
            self.assertEqual(unwrapped(store, store.queue("B", 0)), expected)
            store.close()

    def test_extension(self) -> None:
        """Where the tag code of an entry cannot be read, everybody is given its
        message; after a crash all of it is made again."""
        disk = MemoryDisk()

        def start() -> Store:
            return opened(disk, enable_consume_queue_ext=True)

        store = start()
        for number in range(300):
            put(store, store.queue("T", 0), b"%d" % number, tags="AB"[number % 2])
        store.close()
        path = os.path.join(ROOT, "consumequeue_ext", "T", "0", segment_name(0))
        self.assertGreater(disk.size(path), 2 * BLOCK)
        disk.spoil(path, 0, BLOCK)
        store = start()
        queue = store.queue("T", 0)
        result = store.read(queue, 0, 4, 1 << 20, lambda code: False)
        self.assertEqual(result.count, 4)
        self.assertIn(path, store.findings()[0])
        store.close()
        store = start()
        queue = store.queue("T", 0)
        self.assertEqual(len(bodies(store, queue)), 300)
        result = store.read(queue, 0, 4, 1 << 20, lambda code: False)
        self.assertEqual(result.count, 0)
        store.close()

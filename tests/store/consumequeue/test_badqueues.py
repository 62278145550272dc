"""A store that starts, and goes on, where what is made from its log cannot be read."""

from __future__ import annotations

import contextlib
import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.files.reasons import ReadError
from rocketbroker.records.entries import SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    Wall,
    bodies,
    draft,
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


class BadQueuesTests(SynchronousTestCase):
    """Messages of one queue, whose entries are in the blocks of one file."""

    def setUp(self) -> None:
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
        """After a crash each block that cannot be read is told, its file is kept, and
        all is entered again from the log; numbers go on."""
        for block in range(0, COUNT * SIZE, BLOCK):
            self.setUp()
            self.disk.open(f"{ROOT}/abort", create=True)
            self.disk.spoil(FILE, block, block + BLOCK)
            store = opened(self.disk, Wall(), **LARGE)
            self.assertIn(f"({FILE}, position {block}). The", "".join(store.report))
            self.assertIn(f"is now {KEPT};", "".join(store.report))
            self.assertRaises(OSError, self.disk.read, KEPT)
            self.assertEqual(self.read(store), self.bodies)
            (more,) = put(store, store.queue("T", 0), b"more")
            self.assertEqual(more.queue_offset, COUNT)
            store.close()
            store = opened(self.disk, Wall(), **LARGE)
            self.assertEqual((store.report, len(self.read(store))), ([], COUNT + 1))
            store.close()

    def test_copyIsBad(self) -> None:
        """A start does not end where a copy cannot be read either."""
        self.disk.open(f"{ROOT}/abort", create=True)
        self.disk.spoil(FILE, BLOCK, BLOCK + 1)

        def again(call: str) -> None:
            if call == "pread" and self.disk.exists(KEPT) and self.disk.exists(FILE):
                self.disk.watch = None
                self.disk.spoil(FILE, BLOCK, BLOCK + 1)

        self.disk.watch = again
        store = opened(self.disk, Wall(), **LARGE)
        self.disk.heal()
        self.assertEqual(self.read(store), self.bodies)
        self.assertEqual(len(store.report), 1)
        store.close()

    def test_lastBlock(self) -> None:
        """After a clean stop so is the block where the queue ends."""
        self.disk.spoil(FILE, COUNT * SIZE // BLOCK * BLOCK, COUNT * SIZE)
        store = self.start()
        self.assertIn(FILE, "".join(store.report))
        self.assertEqual(self.read(store), self.bodies)

    def test_reader(self) -> None:
        """After a clean stop who comes upon another is refused, as all its messages are
        good; that is counted once. All else is served, and after the next start this is
        too."""
        for is_killed in (False, True):
            self.setUp()
            self.disk.spoil(FILE, BLOCK, BLOCK + 1)
            store = opened(self.disk, Wall(), **LARGE)
            self.assertEqual(store.report, [])
            for _ in range(2):
                error = self.assertRaises(ReadError, self.read, store)
                self.assertEqual((error.filename, error.position), (FILE, BLOCK))
            self.assertEqual(store.corrupt_records, 1)
            (said,) = store.findings()
            self.assertIn(f"({FILE}, position {BLOCK})", said)
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
        """Where a block goes bad that a running store is to write to, it gets another
        place; what was entered there before is refused till the next start."""
        store = self.start()
        queue = store.queue("T", 0)
        block = COUNT * SIZE // BLOCK * BLOCK
        self.disk.spoil(FILE, block, block + BLOCK)
        put(store, queue, b"one", b"two")
        result = store.read(queue, COUNT, 9, 1 << 20, None)
        self.assertEqual(result.count, 2)
        error = self.assertRaises(OSError, store.read, queue, COUNT - 1, 9, 99, None)
        self.assertEqual((error.errno, error.filename), (errno.EIO, FILE))
        self.assertEqual(store.read(queue, 0, 9, 1 << 20, None).count, 9)
        store.close()
        self.assertEqual(self.read(self.start()), [*self.bodies, b"one", b"two"])

    def test_writeOnFullDisk(self) -> None:
        """If the disk has no room for a copy, who reads in that file is refused, and
        nothing is lost."""
        store = self.start()
        queue = store.queue("T", 0)
        block = COUNT * SIZE // BLOCK * BLOCK
        self.disk.spoil(FILE, block, block + BLOCK)
        store.append([draft(queue, b"more")])
        self.disk.capacity = self.disk.used()
        with contextlib.suppress(OSError):
            store.dispatch(100)
        self.disk.heal()
        self.assertRaises(OSError, store.read, queue, 0, 9, 1 << 20, None)
        self.disk.capacity = None
        store.close()
        self.assertEqual(self.read(self.start()), [*self.bodies, b"more"])

    def test_cut(self) -> None:
        """What cannot be cut because of a bad block is cut in a copy."""
        store = self.start()
        self.disk.spoil(FILE, BLOCK, 2 * BLOCK)
        queue_files = store.queue("T", 0).files
        queue_files.cut(BLOCK + SIZE)
        self.assertEqual(self.disk.size(FILE), 820 * SIZE)
        self.assertRaises(OSError, queue_files.read, BLOCK, SIZE)
        self.assertEqual(queue_files.read(2 * BLOCK, SIZE), bytes(SIZE))

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


class BadIndexTests(SynchronousTestCase):
    """Messages with keys."""

    def setUp(self) -> None:
        """Fill it, and stop it."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        store = opened(self.disk, self.wall)
        for number in range(400):
            keys = b"KEYS\x01k%d\x02" % number
            store.append([draft(store.queue("T", 0), b"%d" % number, properties=keys)])
        while store.dispatch(1000):
            pass
        self.build(store)
        store.close()
        (name,) = self.disk.list(f"{ROOT}/index")
        self.path = f"{ROOT}/index/{name}"

    def build(self, store: Store) -> None:
        """Build the index."""
        while store.build_index(1000):
            pass

    def find(self, store: Store, number: int) -> int:
        """How many messages a key leads to."""
        key = f"k{number}"
        return len(store.find_by_key("T", key, 9, 0, 1 << 62).records)

    def test_header(self) -> None:
        """A file whose header cannot be read is told, and built again."""
        self.disk.spoil(self.path, 0, 1)
        store = opened(self.disk, self.wall)
        (said,) = store.report
        self.assertIn(f"cannot be read: Input/output error ({self.path}, pos", said)
        self.build(store)
        self.assertEqual([self.find(store, n) for n in (0, 399)], [1, 1])
        store.close()

    def test_query(self) -> None:
        """Who comes upon another block is refused, once: then the file is built
        again."""
        store = opened(self.disk, self.wall)
        self.disk.spoil(self.path, BLOCK, 3 * BLOCK)
        error = self.assertRaises(ReadError, self.find, store, 300)
        self.assertEqual(error.filename, self.path)
        self.assertEqual(store.corrupt_records, 1)
        self.assertIn(self.path, store.findings()[0])
        self.build(store)
        self.assertEqual([self.find(store, n) for n in range(400)], [1] * 400)
        store.close()

    def test_slots(self) -> None:
        """So it is where a key is to be entered into slots that cannot be read."""
        store = opened(self.disk, self.wall)
        self.disk.spoil(self.path, 100, 101)
        put(store, store.queue("T", 0), b"more")
        self.build(store)
        self.assertEqual(store.index_failures, 0)
        self.assertEqual([self.find(store, n) for n in range(400)], [1] * 400)
        store.close()

    def test_record(self) -> None:
        """A message that cannot be read hides no other with its key."""
        store = opened(self.disk, self.wall)
        queue = store.queue("T", 0)
        for body in (b"1" * 5000, b"2" * 5000):
            store.append([draft(queue, body, properties=b"KEYS\x01k7\x02")])
        while store.dispatch(1000):
            pass
        self.build(store)
        self.assertEqual(self.find(store, 7), 3)
        log = f"{ROOT}/commitlog/{segment_name(0)}"
        end = store.published_position // BLOCK * BLOCK
        self.disk.spoil(log, end, end + 1)
        self.assertEqual(self.find(store, 7), 2)
        self.disk.spoil(log, 0, end)
        self.assertRaises(OSError, self.find, store, 7)
        store.close()

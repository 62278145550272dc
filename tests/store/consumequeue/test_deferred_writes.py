"""Queues on a disk without room."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.consumequeue.deferred_writes import DeferredWrites, overlay
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.interfaces import SERVICE_NOT_AVAILABLE
from rocketbroker.store.running_flags import WRITE_LOGICS_QUEUE_ERROR, RunningFlags
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import bodies, draft, opened, put

SIZE = 100
FOLDER = "/s/T/0"


class DeferredWritesTests(SynchronousTestCase):
    """One row of files."""

    def setUp(self) -> None:
        """Files of 100 bytes, and a disk that becomes full."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.disk.sync_dir("/")
        self.flags = RunningFlags()
        self.deferred_writes = DeferredWrites(
            self.flags, lambda words, error: words.format(FOLDER)
        )
        self.files = QueueFiles(
            OpenFiles(self.disk), FOLDER, SIZE, deferred_writes=self.deferred_writes
        )
        self.files.write(0, b"a" * 60)
        self.files.flush()

    def full(self) -> None:
        """Let every write fail for want of room."""
        self.disk.fail("pwrite", errno.ENOSPC, times=1000)

    def test_owed(self) -> None:
        """What cannot be written is read as if it were, over several files, and is
        counted; later writes stand behind it."""
        self.full()
        self.files.write(60, b"b" * 60)
        self.files.write(120, b"c" * 10)
        self.assertEqual(self.deferred_writes.bytes, 70)
        self.assertEqual(
            self.flags.reasons(WRITE_LOGICS_QUEUE_ERROR),
            "a consume queue in /s/T/0 cannot be written",
        )
        self.assertEqual(self.files.read(50, 20), b"a" * 10 + b"b" * 10)
        self.assertEqual(self.files.read(90, 100), b"b" * 10)
        self.assertEqual(self.files.read(100, 40), b"b" * 20 + b"c" * 10 + bytes(10))
        self.assertEqual(self.files.read(0, 20), b"a" * 20)

    def test_paid(self) -> None:
        """With room again the next flush writes it; till then there is none."""
        self.full()
        self.files.write(60, b"b" * 60)
        self.assertRaises(OSError, self.files.flush)
        self.disk.heal()
        self.files.flush()
        self.assertEqual((self.deferred_writes.bytes, self.flags.bits), (0, 0))
        self.assertEqual(self.files.read(60, 40), b"b" * 40)
        self.disk.crash()
        name = self.disk.list(FOLDER)[1]
        self.assertEqual(self.disk.read(f"{FOLDER}/{name}")[:20], b"b" * 20)

    def test_paidByWrite(self) -> None:
        """Or the next write does, in the order of before."""
        self.full()
        self.files.write(60, b"b" * 10)
        self.files.write(65, b"c" * 10)
        self.disk.heal()
        self.files.write(75, b"d" * 5)
        self.assertEqual(self.deferred_writes.bytes, 0)
        self.assertEqual(self.files.read(60, 20), b"b" * 5 + b"c" * 10 + b"d" * 5)

    def test_noFile(self) -> None:
        """It holds even for a file that cannot be made."""
        self.disk.fail("open", errno.ENOSPC, times=3)
        self.files.write(100, b"b" * 10)
        self.assertEqual(self.files.read(100, 10), b"b" * 10)
        self.assertEqual(self.files.read(200, 10), b"")
        self.disk.heal()
        self.files.flush()
        self.assertEqual(len(self.files.all), 2)

    def test_cut(self) -> None:
        """What is cut or dropped is not owed any more."""
        self.full()
        self.files.write(60, b"b" * 30)
        self.files.write(90, b"c" * 30)
        self.files.cut(70)
        self.assertEqual(self.deferred_writes.bytes, 10)
        self.assertEqual(self.files.read(60, 40), b"b" * 10 + bytes(30))
        self.files.drop(0)
        self.assertEqual((self.deferred_writes.bytes, self.flags.bits), (0, 0))
        self.assertEqual(self.files.read(60, 40), b"")

    def test_gap(self) -> None:
        """What stands behind a gap is written, and nothing else that is owed is
        forgotten: only the files before it go."""
        self.full()
        self.files.write(60, b"b" * 10)
        self.files.write(500, b"c" * 10)
        self.files.write(510, b"d" * 10)
        self.disk.heal()
        self.files.flush()
        self.assertEqual((self.deferred_writes.bytes, self.flags.bits), (0, 0))
        self.assertEqual([each.start for each in self.files.all], [500])
        self.assertEqual(self.files.read(500, 20), b"c" * 10 + b"d" * 10)
        self.files.write(900, b"e" * 10)
        self.assertEqual(self.files.read(900, 10), b"e" * 10)

    def test_otherError(self) -> None:
        """A disk that is broken is an error, also while something is owed."""
        self.disk.fail("pwrite", errno.EIO)
        self.assertRaises(OSError, self.files.write, 60, b"b")
        self.full()
        self.files.write(60, b"b")
        self.disk.heal()
        self.disk.fail("pwrite", errno.EIO)
        self.assertRaises(OSError, self.files.write, 61, b"c")
        self.assertEqual(self.files.read(60, 2), b"b\0")

    def test_withoutDebt(self) -> None:
        """Where nobody counts it, a full disk is an error."""
        files = QueueFiles(OpenFiles(self.disk), "/s/T/1", SIZE)
        self.full()
        self.assertRaises(OSError, files.write, 0, b"b")

    def test_over(self) -> None:
        """Later pieces lie over earlier ones."""
        self.assertEqual(overlay(b"", 0, 4, []), b"")
        self.assertEqual(overlay(b"ab", 0, 4, [(9, b"x")]), b"ab")
        self.assertEqual(overlay(b"ab", 4, 4, [(0, b"12345"), (3, b"xyz")]), b"yz\0\0")


class FullStoreTests(SynchronousTestCase):
    """A store whose queues have no room."""

    def setUp(self) -> None:
        """A store with a message in one queue, none in the other."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        self.queues = [self.store.queue(topic, 0) for topic in ("T", "U")]
        put(self.store, self.queues[0], b"before")
        self.store.flush()

    def fill(self) -> None:
        """Append a message to each queue when no queue can be written any more."""
        self.store.append([draft(queue, b"full") for queue in self.queues])
        self.disk.capacity = self.disk.used()

    def test_found(self) -> None:
        """What is acknowledged is found; nothing else is taken until there is room."""
        self.fill()
        self.disk.fail("pwrite", errno.ENOSPC, times=2)
        self.store.dispatch(100)
        self.assertEqual(bodies(self.store, self.queues[0]), [b"before", b"full"])
        self.assertEqual(bodies(self.store, self.queues[1]), [b"full"])
        late = draft(self.queues[0])
        self.store.append([late])
        self.assertEqual(late.status, SERVICE_NOT_AVAILABLE)
        self.disk.capacity = None
        self.store.flush_queues()
        self.assertIsNone(self.store.refusal())
        put(self.store, self.queues[0], b"after")

    def test_startOnFullDisk(self) -> None:
        """A start on a full disk finds what was acknowledged, takes nothing, and goes
        on when there is room."""
        self.fill()
        self.disk.crash(keep_all=True)
        for name in ("rocketbroker.words", "rocketbroker.queues"):
            self.disk.remove(f"/store/{name}")
        self.disk.capacity = self.disk.used()
        self.disk.fail("allocate", errno.ENOSPC, times=1000)
        self.disk.fail("pwrite", errno.ENOSPC, times=1000)
        store = opened(self.disk)
        queues = [store.queue(topic, 0) for topic in ("T", "U")]
        self.assertEqual(bodies(store, queues[0]), [b"before", b"full"])
        self.assertEqual(bodies(store, queues[1]), [b"full"])
        self.assertIn("positions that readers", store.report[-1])
        late = draft(queues[0])
        store.append([late])
        self.assertEqual(late.status, SERVICE_NOT_AVAILABLE)
        self.disk.heal()
        self.disk.capacity = None
        store.measure_disk()
        store.allocate_ahead()
        store.flush_queues()
        put(store, queues[0], b"after")
        self.assertEqual(queues[0].max_offset, 3)
        store.close()
        store = opened(self.disk)
        self.assertEqual(store.queue("T", 0).max_offset, 3)
        self.assertEqual(store.queue("U", 0).max_offset, 1)

    def test_stopOnFullDisk(self) -> None:
        """A stop that cannot write them says so, and the next start makes them."""
        self.fill()
        self.disk.fail("pwrite", errno.ENOSPC, times=1000)
        self.assertRaises(StoreError, self.store.close)
        self.disk.heal()
        self.disk.capacity = None
        store = opened(self.disk)
        self.assertEqual(store.queue("T", 0).max_offset, 2)
        self.assertEqual(store.queue("U", 0).max_offset, 1)

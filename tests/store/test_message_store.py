"""The store as a whole."""

from __future__ import annotations

import errno
from functools import partial

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.errors import ServiceNotAvailable, StoreError
from rocketbroker.store.interfaces import SERVICE_NOT_AVAILABLE, IQueue, IStore
from rocketbroker.store.reads import NO_MESSAGE_IN_QUEUE
from rocketbroker.store.recovery.clean_shutdown import NAME
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    START_MS,
    bodies,
    draft,
    make,
    opened,
    put,
)


class LifeTests(SynchronousTestCase):
    """Opening, closing, and what is refused."""

    def test_interfaces(self) -> None:
        """The store and its queues provide what they promise."""
        store = opened()
        verifyObject(IStore, store)
        verifyObject(IQueue, store.queue("T", 0))

    def test_again(self) -> None:
        """What was stored is there after a clean stop, and the next message follows."""
        disk = MemoryDisk()
        store = opened(disk)
        put(store, store.queue("T", 1), b"one", b"two")
        store.close()
        store.close()
        store = opened(disk)
        self.assertEqual(store.report, [])
        queue = store.queue("T", 1)
        self.assertEqual([each.queue_id for each in store.queues()], [1])
        put(store, queue, b"three")
        self.assertEqual(bodies(store, queue), [b"one", b"two", b"three"])
        self.assertEqual((queue.min_offset, queue.max_offset), (0, 3))

    def test_sameHandle(self) -> None:
        """The same queue has the same handle; a queue without messages has no files."""
        disk = MemoryDisk()
        store = opened(disk)
        self.assertIs(store.queue("T", 0), store.queue("T", 0))
        self.assertEqual(disk.list(f"{ROOT}/consumequeue"), [])
        result = store.read(store.queue("T", 0), 0, 32, 1000, None)
        self.assertEqual(result.status, NO_MESSAGE_IN_QUEUE)

    def test_cleanStopLeavesNothing(self) -> None:
        """After a clean stop there are only RocketMQ's files, at their sizes, and
        one of ours."""
        disk = MemoryDisk()
        store = opened(disk)
        put(store, store.queue("T", 0), b"one")
        self.assertTrue(disk.read(f"{ROOT}/abort").isdigit())
        store.close()
        self.assertEqual(
            disk.list(ROOT),
            ["checkpoint", "commitlog", "consumequeue", "index", "lock", NAME],
        )
        self.assertEqual(disk.list(f"{ROOT}/commitlog"), ["0" * 20])
        self.assertEqual(disk.size(f"{ROOT}/commitlog/{'0' * 20}"), 64 << 10)
        self.assertEqual(disk.size(f"{ROOT}/consumequeue/T/0/{'0' * 20}"), 2000)
        self.assertEqual(disk.size(f"{ROOT}/checkpoint"), 4096)
        self.assertEqual(disk.read(f"{ROOT}/lock"), b"rocketbroker")

    def test_deletedBeforeFlush(self) -> None:
        """A topic that is deleted before its queues were ever flushed does not hinder
        the flush of others, nor the checkpoint."""
        disk = MemoryDisk()
        store = opened(disk)
        for topic in ("U", "T"):
            put(store, store.queue(topic, 0), b"one")
        store.delete_topic("U")
        store.flush()
        store.flush_queues()
        self.assertTrue(disk.exists(f"{ROOT}/checkpoint"))
        self.assertTrue(disk.image().exists(f"{ROOT}/consumequeue/T/0/{'0' * 20}"))
        self.assertFalse(disk.image().exists(f"{ROOT}/consumequeue/U"))

    def test_deletedUnderLock(self) -> None:
        """The directory of a topic that is deleted is moved away while nobody can
        append or dispatch; its files are removed later, while others can."""
        disk = MemoryDisk()
        store = opened(disk)
        append_lock = store.sharing.threads
        put(store, store.queue("T", 0), b"one")
        free: dict[str, bool] = {}

        def watch(call: str) -> None:
            free[call] = append_lock.acquire(False)
            if free[call]:
                append_lock.release()

        disk.watch = watch
        store.delete_topic("T")
        self.assertEqual(free, {"make_dirs": False, "rename": False})
        self.assertEqual(disk.list(f"{ROOT}/consumequeue"), [])
        free.clear()
        store.remove_deleted()
        self.assertEqual(free, {"sync_dir": True, "remove": True, "remove_dir": True})
        self.assertEqual(disk.list(f"{ROOT}/consumequeue.deleted"), [])
        self.assertFalse(disk.image().exists(f"{ROOT}/consumequeue/T"))

    def test_deletedBeforeCrash(self) -> None:
        """What a deletion has moved away before a crash is removed by the next
        start."""
        disk = MemoryDisk()
        store = opened(disk)
        put(store, store.queue("T", 0), b"one")
        store.delete_topic("T")
        disk.crash(keep_all=True)
        opened(disk)
        self.assertEqual(disk.list(f"{ROOT}/consumequeue.deleted"), [])

    def test_deletedWhereItIs(self) -> None:
        """Where a directory cannot be moved, its files are removed at once."""
        disk = MemoryDisk()
        store = opened(disk)
        put(store, store.queue("T", 0), b"one")
        disk.fail("rename", errno.EXDEV)
        store.delete_topic("T")
        self.assertEqual(disk.list(f"{ROOT}/consumequeue"), [])
        put(store, store.queue("T", 0), b"two")
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"two"])

    def test_locked(self) -> None:
        """A second broker is told in one sentence, and changes nothing."""
        disk = MemoryDisk()
        store = opened(disk)
        put(store, store.queue("T", 0), b"one")
        error = self.assertRaises(StoreError, make(disk).open)
        self.assertIn("The store /store is used by another broker, ", str(error))
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"one"])
        store.close()
        opened(disk).close()

    def test_whileOpening(self) -> None:
        """A store that cannot be opened says why, and with which setting it needs less;
        and unlocks."""
        disk = MemoryDisk(capacity=8192)
        error = self.assertRaises(StoreError, make(disk).open)
        self.assertEqual(
            str(error),
            "The store /store cannot be used: No space left on device. The log begins "
            "with 64.0 KiB, and the disk of /store/commitlog has 8.0 KiB free. Make "
            "room, or set a smaller mappedFileSizeCommitLog: 1048576 is enough to try "
            "things.",
        )
        disk.fail("open", errno.EDQUOT)
        disk.capacity = 1 << 30
        error = self.assertRaises(StoreError, make(disk).open)
        self.assertEqual(
            str(error), "The store /store cannot be used: Disk quota exceeded."
        )
        disk.capacity = None
        opened(disk)

    def test_closed(self) -> None:
        """A closed store takes nothing, and says so."""
        store = opened()
        queue = store.queue("T", 0)
        put(store, queue, b"one")
        self.assertIsNone(store.refusal())
        store.close()
        self.assertEqual(store.refusal(), "the store is closed")
        late = draft(queue)
        store.append([late])
        self.assertEqual(late.status, SERVICE_NOT_AVAILABLE)
        self.assertEqual(store.append_failures, 1)
        self.assertRaises(ServiceNotAvailable, store.read, queue, 0, 1, 1, None)
        self.assertEqual(store.dispatch(1), [])
        for ask in (
            partial(store.offset_by_time, queue, START_MS, False),
            partial(store.log_tail, 0),
        ):
            self.assertRaises(ServiceNotAvailable, ask)

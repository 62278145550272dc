"""How far the log may be read, and how far it is on the disk."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
    bodies,
    draft,
    opened,
    put,
)


class FlushTests(SynchronousTestCase):
    """Putting the log on the disk."""

    def setUp(self) -> None:
        """A store on a disk."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        self.queue = self.store.queue("T", 0)

    def test_flush(self) -> None:
        """A flush reaches the end of the log, over several segments, each once."""
        for _ in range(3):
            put(self.store, self.queue, b"x" * 50_000)
        self.assertEqual(self.store.flushed_position, 0)
        syncs = self.disk.calls["datasync"]
        self.assertEqual(self.store.flush(), self.store.published_position)
        self.assertEqual(self.store.flushed_position, self.store.published_position)
        self.assertEqual(self.disk.calls["datasync"], syncs + 3)
        self.store.flush()
        self.assertEqual(self.disk.calls["datasync"], syncs + 3)

    def test_fails(self) -> None:
        """When the disk refuses, the position stands; what may be lost is written
        again before the next sync."""
        put(self.store, self.queue, b"x")
        self.disk.fail("datasync", errno.EIO)
        self.assertRaises(OSError, self.store.flush)
        self.assertEqual(self.store.flushed_position, 0)
        writes = self.disk.calls["pwrite"]
        self.store.flush()
        self.assertEqual(self.disk.calls["pwrite"], writes + 1)
        self.assertEqual(self.store.flushed_position, self.store.published_position)
        put(self.store, self.queue, b"y")
        writes = self.disk.calls["pwrite"]
        self.store.flush()
        self.assertEqual(self.disk.calls["pwrite"], writes)

    def test_onlyNew(self) -> None:
        """Segments that are on the disk are not put there again, nor such that hold
        nothing yet."""
        put(self.store, self.queue, b"x" * 50_000)
        self.store.flush()
        put(self.store, self.queue, b"x" * 50_000)
        first = self.store.published_position
        self.store.flush()
        self.disk.calls["datasync"] = 0
        put(self.store, self.queue, b"x" * 50)
        self.assertTrue(first > SEGMENT)
        self.store.flush()
        self.assertEqual(self.disk.calls["datasync"], 1)

    def meanwhile(self, wall: Wall) -> None:
        """Let a message come a second later, while the disk works for the first
        time."""

        def watch(call: str) -> None:
            if call == "datasync":
                self.disk.watch = None
                wall.now_ms += 1000
                put(self.store, self.queue, b"meanwhile")

        self.disk.watch = watch

    def restarted(self) -> Wall:
        """The store, with a clock that a test sets, and a message."""
        self.store.close()
        wall = Wall()
        self.store = opened(self.disk, wall)
        self.queue = self.store.queue("T", 0)
        put(self.store, self.queue, b"x")
        return wall

    def test_meanwhile(self) -> None:
        """What is appended while the disk works waits for the next flush; until then
        neither position nor time speak of it."""
        wall = self.restarted()
        end = self.store.published_position
        self.meanwhile(wall)
        self.assertEqual(self.store.flush(), end)
        self.assertTrue(self.store.published_position > end)
        self.assertEqual(self.store.flushed_position, end)
        self.store.flush_queues()
        self.assertEqual(self.checkpoint().physic_ms, START_MS)
        self.store.flush()
        self.store.flush_queues()
        self.assertEqual(self.checkpoint().physic_ms, START_MS + 1000)

    def test_queuesMeanwhile(self) -> None:
        """The same is true of the queues."""
        wall = self.restarted()
        self.store.flush()
        self.meanwhile(wall)
        self.store.flush_queues()
        self.assertEqual(wall.now_ms, START_MS + 1000)
        self.assertEqual(self.checkpoint().logics_ms, START_MS)
        self.store.flush_queues()
        self.assertEqual(self.checkpoint().logics_ms, START_MS + 1000)

    def checkpoint(self) -> Checkpoint:
        """What a start would read."""
        found = Checkpoint(self.disk, ROOT)
        found.load()
        return found


class CommitTests(SynchronousTestCase):
    """The transient store pool: what is published is seen when it is committed."""

    def setUp(self) -> None:
        """A store with a pool."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = self.opened()
        self.queue = self.store.queue("T", 0)

    def opened(self, **changes: object) -> Store:
        """A store with a pool on the disk."""
        return opened(
            self.disk, self.wall, **{"transient_store_pool_enable": True, **changes}
        )

    def append(self, *bodies: bytes) -> None:
        """Append, and dispatch what can be."""
        self.store.append([draft(self.queue, body) for body in bodies])
        self.store.dispatch(100)

    def test_heldBack(self) -> None:
        """Before the commit nobody sees a message: no queue, no reader by position, no
        reader in another process; then all do."""
        self.append(b"one")
        store = self.store
        self.assertEqual(store.committed_position, 0)
        self.assertEqual((self.queue.next_offset, self.queue.max_offset), (1, 0))
        self.assertIsNone(store.record_at(0))
        reader = StoreReader(self.disk, ROOT)
        self.assertEqual(reader.log_end(), 0)
        self.assertTrue(store.commit())
        self.assertFalse(store.commit())
        self.assertEqual(store.committed_position, store.published_position)
        store.dispatch(100)
        self.assertEqual(bodies(store, self.queue), [b"one"])
        self.assertIsNotNone(store.record_at(0))
        self.assertEqual(reader.log_end(), store.published_position)
        reader.close()

    def test_leastPages(self) -> None:
        """Less than the least pages is not committed, so many are, and what has filled
        a segment is."""
        self.append(b"x" * 4000)
        self.assertFalse(self.store.commit(2))
        self.append(b"x" * 3000)
        self.assertFalse(self.store.commit(2))
        self.append(b"x" * 4000)
        self.assertTrue(self.store.commit(2))
        self.append(b"x" * 30_000)
        self.append(b"x" * 30_000)
        self.assertTrue(self.store.commit(100))

    def test_flush(self) -> None:
        """What is not committed is not flushed either, and the checkpoint says nothing
        of it."""
        self.append(b"one")
        self.store.commit()
        committed = self.store.committed_position
        first_ms = self.wall.now_ms
        self.wall.now_ms += 5000
        self.append(b"two")
        self.assertEqual(self.store.flush(), committed)
        self.assertEqual(self.store.flushed_position, committed)
        self.store.flush_queues()
        checkpoint = Checkpoint(self.disk, ROOT)
        checkpoint.load()
        self.assertEqual(checkpoint.physic_ms, first_ms)

    def test_killed(self) -> None:
        """A process that is killed loses nothing that it has acknowledged."""
        self.append(b"one", b"two")
        self.disk.crash(keep_all=True)
        store = self.opened()
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"one", b"two"])
        self.assertEqual(store.committed_position, store.published_position)

    def test_close(self) -> None:
        """A clean stop commits, flushes and enters all."""
        self.append(b"one")
        self.store.close()
        self.disk.crash()
        store = self.opened()
        self.assertEqual(store.recovered.records, 0)
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"one"])

    def test_synchronous(self) -> None:
        """With SYNC_FLUSH nothing waits for a commit; and a slave has no pool."""
        for changes in ({"flush_disk_type": "SYNC_FLUSH"}, {"broker_role": "SLAVE"}):
            self.disk = MemoryDisk()
            self.store = self.opened(**changes)
            self.queue = self.store.queue("T", 0)
            self.append(b"one")
            self.assertEqual(
                self.store.committed_position, self.store.published_position
            )
            self.assertFalse(self.store.commit())

    def test_readUnCommitted(self) -> None:
        """With SYNC_FLUSH readers wait for the flush, unless they are not to."""
        for early in (False, True):
            store = opened(flush_disk_type="SYNC_FLUSH", read_un_committed=early)
            queue = store.queue("T", 0)
            put(store, queue, b"x")
            self.assertEqual(queue.max_offset, int(early))
            store.flush()
            store.dispatch(100)
            self.assertEqual(queue.max_offset, 1)

    def test_withoutPool(self) -> None:
        """Without the pool what is published is committed."""
        store = opened()
        put(store, store.queue("T", 0), b"x")
        self.assertEqual(store.committed_position, store.published_position)
        self.assertFalse(store.commit())
        self.assertIsNone(store.buffers_left())
        self.assertFalse(store.lacks_buffers())

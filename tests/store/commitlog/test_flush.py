"""How far the log may be read, and how far it is on the disk."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
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


class ReadTests(SynchronousTestCase):
    """Before a message is flushed."""

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

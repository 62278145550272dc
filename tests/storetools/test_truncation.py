"""Truncating a stopped store."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.record import decode_all
from rocketbroker.storetools.truncation import StoreTruncation
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.users import GivenUsers
from tests.store.stores import (
    ROOT,
    Wall,
    batch,
    bodies,
    draft,
    opened,
    options,
    put,
    with_batches,
)


class StoreTruncationTests(SynchronousTestCase):
    """A stopped store with messages of three topics, in several segments."""

    def setUp(self) -> None:
        """Make it."""
        self.disk = MemoryDisk()
        store = with_batches(self.disk)
        put(store, store.queue("T", 0), *[b"1" * 9_000] * 6)
        self.position = put(store, store.queue("T", 0), b"2" * 30_000)[0].position
        put(store, store.queue("U", 1), b"3" * 30_000)
        inner = batch(store.queue("B", 0), b"4", b"5", b"6")
        store.append([inner, draft(store.queue("T", 0), b"7")])
        self.end = store.published_position
        while store.dispatch(1000):
            pass
        store.close()

    def truncation(self, position: int) -> StoreTruncation:
        """One to a position."""
        made = StoreTruncation(self.disk, GivenUsers(), options(), Wall(), position)
        self.addCleanup(made.close)
        return made

    def test_counts(self) -> None:
        """It says what goes before it is done; closed, nothing is changed."""
        truncation = self.truncation(self.position)
        self.assertEqual(truncation.open(), [])
        self.assertEqual(truncation.topics, {"T": 2, "U": 1, "B": 3})
        self.assertEqual(truncation.end, self.end)
        truncation.close()
        self.assertEqual(opened(self.disk).published_position, self.end)

    def test_done(self) -> None:
        """What goes is kept in a file, byte by byte; the store has the rest, is closed
        cleanly, and goes on from there."""
        truncation = self.truncation(self.position)
        truncation.open()
        truncation.run()
        truncation.close()
        kept = self.disk.read(truncation.kept)
        self.assertEqual(truncation.kept.rpartition("/")[0], ROOT)
        self.assertIn(f"truncated-{self.position}-", truncation.kept)
        self.assertEqual(len(kept), self.end - self.position)
        size = int.from_bytes(kept[:4], "big")
        (message,) = decode_all(kept[:size])
        self.assertEqual(message.body, b"2" * 30_000)
        store = with_batches(self.disk)
        self.assertEqual(store.recovered.records, 0)
        self.assertEqual(store.published_position, self.position)
        queue = store.queue("T", 0)
        self.assertEqual(put(store, queue, b"new")[0].queue_offset, 6)
        self.assertEqual(bodies(store, queue)[-1], b"new")
        self.assertEqual(store.queue("B", 0).max_offset, 0)

    def test_noRoom(self) -> None:
        """Where there is no room for what goes, it says so, and does without."""
        self.disk.capacity = self.disk.used() + (16 << 20)
        truncation = self.truncation(self.position)
        truncation.open()
        self.assertIn("not kept", truncation.not_kept)
        truncation.run()
        self.assertEqual(truncation.kept, "")
        truncation.close()
        self.assertEqual(opened(self.disk).published_position, self.position)

    def test_noBoundary(self) -> None:
        """A position where no record begins is refused, and nothing is changed."""
        for position in (self.position + 1, self.end + 1):
            truncation = self.truncation(position)
            with self.assertRaises(StoreError):
                truncation.open()
            truncation.close()
        self.assertEqual(opened(self.disk).published_position, self.end)

    def test_inUse(self) -> None:
        """The store of a running broker is refused."""
        store = opened(self.disk)
        with self.assertRaises(StoreError):
            self.truncation(self.position).open()
        self.assertEqual(store.published_position, self.end)

    def test_refusedDisk(self) -> None:
        """A disk that refuses is told; the next start has all or nothing of it."""
        truncation = self.truncation(self.position)
        truncation.open()
        self.disk.fail("remove", errno.EIO)
        with self.assertRaises(StoreError) as refused:
            truncation.run()
        self.assertIn("the next start of the store finishes it", str(refused.exception))
        truncation.close()
        self.assertEqual(opened(self.disk).published_position, self.position)

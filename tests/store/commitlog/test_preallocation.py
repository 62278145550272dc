"""Room for the log ahead of its writer."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.commitlog.preallocation import MARGIN
from rocketbroker.store.commitlog.segment import ALLOCATION
from rocketbroker.store.commitlog.segments import WARMED_BATCH_SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, SEGMENT, bodies, draft, opened, put

AHEAD = f"{ROOT}/commitlog.ahead/{segment_name(SEGMENT)}"


class PreallocationTests(SynchronousTestCase):
    """Blocks and segments."""

    def setUp(self) -> None:
        """A disk."""
        self.disk = MemoryDisk()

    def large(self, segments: int) -> Store:
        """A store whose segments are so many times what is reserved at once."""
        return opened(self.disk, mapped_file_size_commit_log=segments * ALLOCATION)

    def fill(self, store: Store, size: int) -> None:
        """Append so many bytes, in bodies of 4 MiB."""
        queue = store.queue("T", 0)
        for _ in range(size // (4 << 20)):
            store.append([draft(queue, bytes(4 << 20))])
            while store.dispatch(1000):
                pass

    def test_nextIsMade(self) -> None:
        """Near the end of the last segment the next is made, and then not again."""
        store = opened(self.disk)
        self.assertTrue(self.disk.exists(AHEAD))
        self.assertFalse(store.lacks_room())
        self.assertFalse(store.allocate_ahead())

    def test_scarce(self) -> None:
        """Room is scarce when half of what is kept reserved is used, or a roll has
        taken the next segment."""
        store = self.large(4)
        self.fill(store, ALLOCATION // 4)
        self.assertFalse(store.lacks_room())
        self.fill(store, ALLOCATION // 2)
        self.assertTrue(store.lacks_room())
        self.assertTrue(store.allocate_ahead())
        self.assertFalse(store.lacks_room())
        store.close()
        store = opened(MemoryDisk())
        put(store, store.queue("T", 0), b"x" * 60_000, b"x" * 60_000)
        self.assertTrue(store.lacks_room())
        self.assertTrue(store.allocate_ahead())
        self.assertFalse(store.lacks_room())
        store.close()
        self.assertFalse(store.lacks_room())

    def test_outrun(self) -> None:
        """What others may be about to write is not reserved: blocks come a margin
        behind the writer."""
        store = self.large(4)
        self.fill(store, 2 * ALLOCATION)
        used = self.disk.used()
        self.assertTrue(store.allocate_ahead())
        reserved = self.disk.used() - used
        least = 2 * ALLOCATION - MARGIN - 2 * BLOCK
        self.assertTrue(least <= reserved < 2 * ALLOCATION - MARGIN, reserved)
        store.close()


class WarmTests(SynchronousTestCase):
    """Pages written ahead."""

    def setUp(self) -> None:
        """A disk."""
        self.disk = MemoryDisk()

    def opened(self, **changes: object) -> Store:
        """A store that writes pages ahead."""
        return opened(self.disk, None, **{"warm_maped_file_enable": True, **changes})

    def test_warm(self) -> None:
        """The segment made ahead is filled with zeros, once, and then used as any."""
        store = self.opened()
        writes = self.disk.calls["pwrite"]
        self.assertTrue(store.allocate_ahead())
        self.assertEqual(self.disk.calls["pwrite"], writes + 1)
        self.assertFalse(store.allocate_ahead())
        self.assertEqual(self.disk.calls["pwrite"], writes + 1)
        queue = store.queue("T", 0)
        put(store, queue, *[b"%d" % number * 30_000 for number in range(4)])
        self.assertEqual(len(bodies(store, queue)), 4)
        self.assertTrue(store.allocate_ahead())

    def test_steps(self) -> None:
        """A large segment is filled in steps; what is used meanwhile is let alone."""
        store = self.opened(
            mapped_file_size_commit_log=ALLOCATION + 2 * WARMED_BATCH_SIZE
        )
        put(store, store.queue("T", 0), bytes(3 * WARMED_BATCH_SIZE))
        store.allocate_ahead()
        log = store._segments
        assert log._ahead is not None
        self.assertEqual(log._ahead.warmed, ALLOCATION)
        store.allocate_ahead()
        self.assertEqual(log._ahead.warmed, log.size)
        self.assertFalse(log.warm(ALLOCATION, 0))
        log.prepare()
        log.roll()
        self.assertFalse(log.warm(ALLOCATION, 0))
        store.close()

    def test_synced(self) -> None:
        """With SYNC_FLUSH so many pages reach the disk at a time."""
        size = 4 * WARMED_BATCH_SIZE
        for kind, syncs in (("SYNC_FLUSH", 2), ("ASYNC_FLUSH", 0)):
            self.disk = MemoryDisk()
            store = self.opened(
                mapped_file_size_commit_log=size,
                flush_disk_type=kind,
                flush_least_pages_when_warm_maped_file=512,
            )
            before = self.disk.calls["datasync"]
            store.allocate_ahead()
            self.assertEqual(self.disk.calls["datasync"], before + syncs)

    def test_syncedInSmallSteps(self) -> None:
        """So few pages as somebody likes."""
        store = self.opened(
            mapped_file_size_commit_log=WARMED_BATCH_SIZE,
            flush_disk_type="SYNC_FLUSH",
            flush_least_pages_when_warm_maped_file=16,
        )
        before = self.disk.calls["datasync"]
        store.allocate_ahead()
        self.assertEqual(self.disk.calls["datasync"], before + 16)

    def test_noRoom(self) -> None:
        """Where there is no room for it nothing else is hindered."""
        store = self.opened()
        self.disk.fail("pwrite", errno.ENOSPC)
        store.allocate_ahead()
        self.assertIsNone(store.refusal())
        put(store, store.queue("T", 0), b"x")

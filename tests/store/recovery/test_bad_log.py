"""A store that starts, and goes on, where some blocks of its log cannot be read."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.commitlog.badblocks import MAX_BAD
from rocketbroker.store.commitlog.write_backoff import RETRY_MS
from rocketbroker.store.corruption_log import MAX_TRIES
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import SERVICE_NOT_AVAILABLE, Draft
from rocketbroker.store.message_store import Store
from rocketbroker.store.reads import MessageFilter
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, SEGMENT, Wall, bodies, draft, opened, put

LOG = os.path.join(ROOT, "commitlog", segment_name(0))


def served(store: Store) -> list[bytes]:
    """The bodies that a consumer gets who comes again when he is refused."""
    for _ in range(MAX_TRIES):
        try:
            return bodies(store, store.queue("T", 0))
        except OSError:
            continue
    return bodies(store, store.queue("T", 0))


class BadLogTests(SynchronousTestCase):
    """Messages of one queue over two files of the log."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Fill it, and stop it."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        self.drafts: list[Draft] = []
        for number in range(150):
            queue = store.queue("T", 0)
            self.drafts += put(store, queue, b"%03d" % number * 100, tags="A")
        self.end = store.published_position
        store.close()

    def start(self, clean: bool, *blocks: int) -> Store:
        """Start with blocks of the log that cannot be read."""
        if not clean:
            self.disk.open(f"{ROOT}/abort", create=True)
        for block in blocks:
            path = LOG.replace(
                segment_name(0), segment_name(block // SEGMENT * SEGMENT)
            )
            at = block % SEGMENT
            self.disk.spoil(path, at, at + BLOCK)
        return opened(self.disk)

    def readable(self, *blocks: int) -> list[bytes]:
        """The bodies of records that have no byte in these blocks."""
        return [
            draft.body
            for draft in self.drafts
            if not any(
                draft.position < block + BLOCK and block < draft.end for block in blocks
            )
        ]

    def test_crash(self) -> None:
        """After a crash a block in the middle is passed over: it is reported with
        its file and position, and counted, and all messages beside it are handed
        out."""
        for block in (0, 5 * BLOCK, SEGMENT - BLOCK, SEGMENT):
            store = self.start(False, block)
            self.assertEqual(
                bodies(store, store.queue("T", 0)), self.readable(block), block
            )
            self.assertTrue(store.corrupt_records)
            at = block % SEGMENT
            name = segment_name(block - at)
            self.assertIn(f"{name}, position {at})", "".join(store.report))
            self.assertEqual(store.queue("T", 0).next_offset, 150)
            store.close()
            self.disk.heal()

    def test_largeGap(self) -> None:
        """The log goes on behind a whole file of which nothing can be read."""
        store = opened(self.disk)
        while store.published_position < 2 * SEGMENT + 1000:
            self.drafts += put(store, store.queue("T", 0), b"more" * 100)
        store.close()
        blocks = range(SEGMENT - BLOCK, 2 * SEGMENT, BLOCK)
        store = self.start(False, *blocks)
        self.assertEqual(bodies(store, store.queue("T", 0)), self.readable(*blocks))

    def test_reader(self) -> None:
        """After a clean stop, who comes upon it is refused some times, as the disk may
        read it after all; then he is led past it, and it is counted."""
        block = 5 * BLOCK
        store = self.start(True, block)
        queue = store.queue("T", 0)
        first = next(each for each in self.drafts if each.end > block)
        before = first.queue_offset - 5
        result = store.read(queue, before, 9, 1 << 20, None)
        self.assertEqual(result.next_offset, first.queue_offset)
        for _ in range(MAX_TRIES - 2):
            error = self.assertRaises(
                OSError, store.read, queue, first.queue_offset, 9, 1 << 20, None
            )
            self.assertEqual(error.errno, errno.EIO)
            self.assertEqual(store.corrupt_records, 0)
        self.assertEqual(bodies(store, queue), self.readable(block))
        self.assertEqual(store.corrupt_records, 150 - len(self.readable(block)))
        self.assertIn("position 20480)", store.findings()[0])
        self.disk.heal()
        self.assertEqual(bodies(store, queue), self.readable())

    def test_wanted(self) -> None:
        """So is who looks at properties."""
        block = 5 * BLOCK
        store = self.start(False, block)
        queue = store.queue("T", 0)
        wanted = MessageFilter(None, lambda properties: b"TAGS" in properties)
        count = offset = 0
        while offset < queue.max_offset:
            result = store.read(queue, offset, 32, 1 << 20, wanted)
            count += result.count
            offset = result.next_offset
        self.assertEqual(count, len(self.readable(block)))

    def test_neverMapped(self) -> None:
        """What was there before is not read through a mapping, where a bad block is a
        signal that kills the process."""
        store = self.start(True)
        before = self.disk.calls.get("map", 0)
        bodies(store, store.queue("T", 0))
        self.assertEqual(self.disk.calls.get("map", 0), before)

    def test_end(self) -> None:
        """Where the block of the log's end cannot be read, what is there stays as it
        is, and the log goes on with the next file; no number is given twice."""
        block = self.end // BLOCK * BLOCK
        for clean in (True, False):
            disk, drafts = self.disk, list(self.drafts)
            self.disk = disk.image(keep_all=True)
            for _ in range(2):
                store = self.start(clean, block)
                self.assertIn(f"it goes on at {2 * SEGMENT}.", "".join(store.report))
                self.assertEqual(served(store), self.readable(block))
                store.close()
            store = self.start(clean, block)
            queue = store.queue("T", 0)
            (after,) = put(store, queue, b"after")
            self.assertEqual((after.position, after.queue_offset), (2 * SEGMENT, 150))
            self.drafts.append(after)
            self.assertEqual(served(store), self.readable(block))
            store.close()
            store = self.start(clean)
            self.assertEqual(served(store), self.readable(block))
            store.close()
            self.disk.heal()
            store = self.start(clean)
            self.assertEqual(bodies(store, store.queue("T", 0)), self.readable())
            store.close()
            self.disk, self.drafts = disk, drafts

    def test_endGoesBad(self) -> None:
        """Where the block of the log's end goes bad while a broker runs, one send is
        refused; then the log goes on with the next file."""
        for is_killed in (False, True):
            self.start_over()
            wall = Wall()
            store = opened(self.disk, wall)
            queue = store.queue("T", 0)
            put(store, queue, b"before")
            block = store.published_position // BLOCK * BLOCK
            path = LOG.replace(segment_name(0), segment_name(SEGMENT))
            self.disk.spoil(path, block % SEGMENT, block % SEGMENT + BLOCK)
            refused = draft(queue, b"refused")
            store.append([refused])
            self.assertEqual(refused.status, SERVICE_NOT_AVAILABLE)
            wall.now_ms += RETRY_MS
            after = put(store, queue, b"after", b"wards")
            self.assertEqual(
                [(each.position >= 2 * SEGMENT, each.queue_offset) for each in after],
                [(True, 151), (True, 152)],
            )
            store.dispatch(9)
            self.assertEqual(queue.max_offset, 153)
            self.assertEqual(store.corrupt_records, 1)
            self.assertIn(path, store.findings()[0])
            if is_killed:
                self.disk.crash(keep_all=True)
            else:
                store.close()
            store = opened(self.disk, wall)
            self.assertEqual(served(store), [*self.readable(block), b"after", b"wards"])
            (last,) = put(store, store.queue("T", 0), b"last")
            self.assertEqual(last.queue_offset, 153)
            store.close()

    def test_aheadIsBad(self) -> None:
        """A bad block ahead of the writer, where nothing is, is given back to the disk;
        one send is refused."""
        wall = Wall()
        store = opened(self.disk, wall)
        queue = store.queue("T", 0)
        at = (self.end // BLOCK + 1) * BLOCK % SEGMENT
        path = LOG.replace(segment_name(0), segment_name(SEGMENT))
        self.disk.spoil(path, at, at + BLOCK)
        refused = draft(queue, b"x" * BLOCK)
        store.append([refused])
        self.assertEqual(refused.status, SERVICE_NOT_AVAILABLE)
        wall.now_ms += RETRY_MS
        (after,) = put(store, queue, b"x" * BLOCK)
        self.assertEqual((after.position, after.queue_offset), (self.end, 150))
        self.assertEqual(bodies(store, queue)[-1], b"x" * BLOCK)

    def test_badDisk(self) -> None:
        """Where nearly nothing can be read, the disk may be away: the start is refused
        with file and position, and the next one finds all."""
        disk = MemoryDisk()
        size = 2 * MAX_BAD * BLOCK
        store = opened(disk, mapped_file_size_commit_log=size)
        put(store, store.queue("T", 0), b"1", b"2")
        disk.crash(keep_all=True)
        disk.spoil(LOG, 0, size)
        error = self.assertRaises(
            StoreError, opened, disk, mapped_file_size_commit_log=size
        )
        self.assertIn(f"({LOG}, position {MAX_BAD * BLOCK})", str(error))
        disk.heal()
        store = opened(disk, mapped_file_size_commit_log=size)
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"1", b"2"])

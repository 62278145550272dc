"""A store on a disk of which some blocks cannot be read."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.files.blocks import BLOCK
from rocketbroker.records.entries import SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.verify.log import Verification
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.repairs import verified
from tests.store.stores import ROOT, SEGMENT, opened, put

LOG = os.path.join(ROOT, "commitlog", segment_name(0))
LAST = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))
QUEUE = os.path.join(ROOT, "consumequeue", "T", "0", segment_name(0))
COUNT = 150


class BadBlocksTests(SynchronousTestCase):
    """A store of one queue over two files of the log, stopped cleanly."""

    def setUp(self) -> None:
        """Fill it."""
        self.disk = MemoryDisk()
        store = opened(self.disk, mapped_file_size_consume_queue=4000 * SIZE)
        for number in range(COUNT):
            queue = store.queue("T", 0)
            put(store, queue, b"%03d" % number * 100, tags=f"tag{number}")
        self.end = store.published_position
        store.close()
        reader = StoreReader(self.disk, ROOT)
        self.entries = reader.entries("T", 0, 0)
        self.assertEqual((len(reader.segments), len(self.entries)), (2, COUNT))
        reader.close()

    def walk(self) -> tuple[Verification, list[Fault]]:
        """Verify it."""
        return verified(self.disk)

    def in_block(self, start: int) -> set[int]:
        """The offsets of records that have a byte in a block of the log."""
        return {
            offset
            for offset, (position, size, _) in enumerate(self.entries)
            if position < start + BLOCK and position + size > start
        }

    def test_firstOfLast(self) -> None:
        """Where the first block of the last file cannot be read it is not taken for one
        that was only made ahead."""
        self.disk.spoil(LAST, 0, 1)
        walk, _ = self.walk()
        lost = self.in_block(SEGMENT)
        self.assertLess(len(lost), 20)
        self.assertGreaterEqual(walk.records, COUNT - len(lost))

    def test_behindBody(self) -> None:
        """A record is more than its body where what follows that cannot be read: its
        properties are not taken for zeros."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        put(store, store.queue("T", 0), bytes(BLOCK - 92), b"x")
        store.close()
        for block in (0, BLOCK):
            self.disk.heal()
            self.disk.spoil(LOG, block, block + 1)
            _, faults = self.walk()
            kinds = [each.kind for each in faults if each.kind in ("record", "body")]
            self.assertEqual(kinds[:1], ["record"], block)

    def test_everyBlock(self) -> None:
        """Of each block of the log: it is reported, with all messages that have a
        byte in it and no others; these are what is not shown, and all others are."""
        for block in range(0, self.end, BLOCK):
            path = LOG if block < SEGMENT else LAST
            at = block % SEGMENT + 17
            self.disk.spoil(path, at, at + 1)
            walk, faults = self.walk()
            lost = self.in_block(block)
            (fault,) = [each for each in faults if each.kind == "unreadable"]
            self.assertEqual((fault.where, fault.position), (path, block))
            self.assertEqual(
                fault.text, "4096 bytes cannot be read: Input/output error"
            )
            reader = StoreReader(self.disk, ROOT)
            shown = list(inspect.messages(reader, "T", 0, 0, None))
            reader.close()
            bad = {at for at, each in enumerate(shown) if isinstance(each, StoreError)}
            self.assertEqual((len(shown), bad), (COUNT, lost))
            regions = [each.region for each in faults if each.region != (0, 0)]
            for offset, (position, size, _) in enumerate(self.entries):
                is_told = any(
                    first < position + size and position < last
                    for first, last in regions
                )
                self.assertEqual(is_told, offset in lost, (block, offset))
            self.assertGreaterEqual(walk.records, COUNT - len(lost))
            self.disk.heal()
        self.assertEqual(self.walk()[1], [])

    def test_unusedBlock(self) -> None:
        """A block behind the last record is reported, and hides nothing."""
        at = self.end % SEGMENT // BLOCK * BLOCK + 2 * BLOCK
        self.disk.spoil(LAST, at, at + 1)
        walk, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.position), ("unreadable", SEGMENT + at))
        self.assertEqual(walk.records, COUNT)

    def test_queue(self) -> None:
        """A file of a queue with a bad block is reported once, as a whole; no message
        is shown whose entry is in it."""
        self.disk.spoil(QUEUE, 100 * SIZE, 100 * SIZE + 1)
        walk, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.where), ("unreadable", QUEUE))
        self.assertEqual((fault.position, fault.queue), (0, ("T", 0)))
        self.assertEqual(walk.records, COUNT)
        reader = StoreReader(self.disk, ROOT)
        (shown,) = inspect.messages(reader, "T", 0, 0, None)
        assert isinstance(shown, StoreError)
        self.assertIn(f"Messages 0 to {COUNT - 1} of T/0 are not found", str(shown))
        row = inspect.topic_figures(reader, "T", lambda count: None)
        self.assertEqual((row["messages"], row["least_size"]), (0, 0))
        reader.close()

    def test_small(self) -> None:
        """Checkpoint, what was written down at the stop, and the list of topics may be
        unreadable, and all else is checked."""
        checkpoint = os.path.join(ROOT, "checkpoint")
        ends = os.path.join(ROOT, "rocketbroker.ends")
        topics = os.path.join(ROOT, "config", "topics.json")
        self.disk.make_dirs(os.path.dirname(topics))
        self.disk.open(topics, create=True).pwrite(b"{}", 0)
        for path in (checkpoint, ends, topics):
            self.disk.spoil(path, 0, 1)
        walk, faults = self.walk()
        self.assertEqual({each.kind for each in faults}, {"unreadable"})
        self.assertEqual([each.where for each in faults], [checkpoint, ends])
        self.assertEqual(walk.records, COUNT)

    def test_afterACrash(self) -> None:
        """So it is in a store that was not stopped cleanly."""
        self.disk.open(os.path.join(ROOT, "abort"), create=True).close()
        self.disk.spoil(LOG, 5 * BLOCK, 5 * BLOCK + 1)
        _, faults = self.walk()
        self.assertIn("unreadable", {each.kind for each in faults})
        self.assertIn("record", {each.kind for each in faults})

    def test_refused(self) -> None:
        """A file of the log that cannot be opened is one sentence with its name; one of
        a queue is a fault."""
        for after, path in ((0, LOG), (1, LAST)):
            self.disk.fail("open_readonly", errno.EACCES, after)
            error = self.assertRaises(StoreError, self.walk)
            self.assertEqual(str(error), f"{path} cannot be read: Permission denied.")
            self.disk.heal()
        self.disk.fail("open_readonly", errno.EACCES, 2)
        _, (fault,) = self.walk()
        self.assertEqual((fault.where, fault.queue), (QUEUE, ("T", 0)))

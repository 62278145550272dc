"""What a repair changes, kept; on a disk of which some blocks cannot be read, too."""

from __future__ import annotations

import json
import os

from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.copies import Copies
from rocketbroker.store.segments import segment_name
from tests.store.repairs import LOG, QUEUE, DamagedStore
from tests.store.stores import ROOT, SEGMENT, Wall

LAST_LOG = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))


class CopiesTests(DamagedStore):
    """The directory for copies."""

    def test_unreadable(self) -> None:
        """In the place of what cannot be read are zeros, and it is listed."""
        before = self.disk.read(LOG)[: 3 * BLOCK]
        self.disk.spoil(LOG, BLOCK + 5, BLOCK + 6)
        copies = Copies(self.disk, ROOT, Wall()())
        file = self.disk.open(LOG)
        copies.keep(LOG, file, 100, 3 * BLOCK - 100)
        copies.sync()
        copies.close()
        file.close()
        kept = self.disk.read(os.path.join(copies.folder, "before.bin"))
        self.assertEqual(kept[: BLOCK - 100], before[100:BLOCK])
        self.assertEqual(kept[BLOCK - 100 : 2 * BLOCK - 100], bytes(BLOCK))
        self.assertEqual(kept[2 * BLOCK - 100 :], before[2 * BLOCK :])
        lines = self.disk.read(os.path.join(copies.folder, "changes.jsonl"))
        rows = [json.loads(line) for line in lines.splitlines()]
        unread = [row for row in rows if "unreadable" in row]
        self.assertEqual(
            unread,
            [
                {
                    "path": LOG,
                    "unreadable": BLOCK,
                    "length": BLOCK,
                    "why": "Input/output error",
                }
            ],
        )


class BadDiskTests(DamagedStore):
    """A store on such a disk, repaired."""

    def expect_repaired(self, least: int) -> None:
        """All that was elsewhere is there; nothing is wrong any more."""
        self.assertEqual(self.faults(), [])
        found = self.messages()
        self.assertEqual(len(found), 40)
        good = [
            number
            for number, message in enumerate(found)
            if message.body == b"%02d" % number * 600
        ]
        self.assertGreaterEqual(len(good), least)
        self.assertTrue({m.body for m in found} - {b""})
        self.assertEqual(len(self.messages(1)), 40)

    def test_everyBlock(self) -> None:
        """A block of the log cannot be read: it is given up, told, and written again;
        all messages outside of it are there."""
        for path in (LOG, LAST_LOG):
            for block in range(0, SEGMENT if path == LOG else BLOCK, BLOCK):
                self.setUp()
                self.disk.spoil(path, block + 100, block + 101)
                self.repair(dry=True, left=None)
                self.repair()
                told = [
                    (each.position % SEGMENT, each.length)
                    for each in self.told
                    if "refuses to read" in each.text
                ]
                self.assertEqual(told, [(block, BLOCK)])
                self.expect_repaired(36)

    def test_queue(self) -> None:
        """A block of a queue cannot be read: it is made again from the log."""
        self.disk.spoil(QUEUE, 100, 101)
        repair = self.repair()
        self.assertIn(os.path.dirname(QUEUE), [each.where for each in self.told])
        self.assertTrue(repair.copies)
        self.expect_repaired(40)

    def test_index(self) -> None:
        """So is an index."""
        folder = os.path.join(ROOT, "index")
        self.disk.spoil(os.path.join(folder, self.disk.list(folder)[0]), 50, 51)
        self.repair()
        self.expect_repaired(40)

    def test_checkpoint(self) -> None:
        """So is a checkpoint, after a crash, too."""
        for name in ("checkpoint", "abort"):
            self.disk.open(os.path.join(ROOT, name), create=True).close()
            self.disk.spoil(os.path.join(ROOT, "checkpoint"), 0, 1)
            self.repair()
            self.expect_repaired(40)

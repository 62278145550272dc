"""What a repair changes, kept; on a disk of which some blocks cannot be read, too."""

from __future__ import annotations

import json
import os
import random

from rocketbroker.files.blocks import BLOCK
from rocketbroker.records.entries import SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.storetools.repair.backup import Backup
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import forget_ends
from tests.store.repairs import LOG, QUEUE, DamagedStore, repair_of, verified
from tests.store.stores import ROOT, SEGMENT, Wall, opened, put

LAST_LOG = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))


class CopiesTests(DamagedStore):
    """The directory for copies."""

    def test_unreadable(self) -> None:
        """In the place of what cannot be read are zeros, and it is listed; behind the
        end of a file is nothing to copy."""
        before = self.disk.read(LOG)[: 3 * BLOCK]
        self.disk.spoil(LOG, BLOCK + 5, BLOCK + 6)
        copies = Backup(self.disk, ROOT, Wall()())
        file = self.disk.open(LOG)
        copies.keep(LOG, file, 100, 3 * BLOCK - 100)
        copies.keep(LOG, file, SEGMENT - 5, 100)
        copies.sync()
        copies.close()
        file.close()
        kept = self.disk.read(os.path.join(copies.folder, "before.bin"))
        self.assertEqual(kept[: BLOCK - 100], before[100:BLOCK])
        self.assertEqual(kept[BLOCK - 100 : 2 * BLOCK - 100], bytes(BLOCK))
        self.assertEqual(kept[2 * BLOCK - 100 : 3 * BLOCK - 100], before[2 * BLOCK :])
        self.assertEqual(len(kept), 3 * BLOCK - 100 + 5)
        lines = self.disk.read(os.path.join(copies.folder, "changes.jsonl"))
        rows = [json.loads(line) for line in lines.splitlines()]
        lengths = [row["length"] for row in rows if "at" in row]
        self.assertEqual(lengths, [3 * BLOCK - 100, 5])
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
        """A block of the log cannot be read: it is discarded, reported and rewritten;
        all messages outside of it are there."""
        for path in (LOG, LAST_LOG):
            for block in range(0, SEGMENT if path == LOG else BLOCK, BLOCK):
                self.start_over()
                self.disk.spoil(path, block, block + BLOCK)
                self.repair(dry=True, left=None)
                self.repair()
                steps = [
                    (each.position % SEGMENT, each.length)
                    for each in self.steps
                    if "refuses to read" in each.text
                ]
                self.assertEqual(steps, [(block, BLOCK)])
                self.expect_repaired(36)

    def test_queue(self) -> None:
        """A block of a queue cannot be read: it is made again from the log, also where
        one of its messages is lost."""
        for lost in (0, 1):
            self.start_over()
            for at in [self.position(7)[0] + 500] * lost:
                self.change(LOG, at, b"!")
            self.disk.spoil(QUEUE, 100, 101)
            repair = self.repair()
            self.assertIn(os.path.dirname(QUEUE), [each.where for each in self.steps])
            self.assertTrue(repair.copies)
            self.expect_repaired(40 - lost)

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


class PowerLossTests(DamagedStore):
    """A repair in the middle of which the power is lost."""

    def images(self) -> list[MemoryDisk]:
        """What the disk may have then, after each call."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        self.change(QUEUE, 3 * SIZE, b"\x01" * SIZE)
        for path in (LOG, QUEUE):
            file = self.disk.open(path)
            file.datasync()
            file.close()
        images: list[MemoryDisk] = []

        def watch(call: str) -> None:
            luck = random.Random(len(images))
            images.append(self.disk.image(luck, keep_names=luck.random() < 0.8))

        self.before = self.disk.read(LOG)
        self.disk.watch = watch
        self.repair()
        self.disk.watch = None
        return images

    def restored(self, image: MemoryDisk, folder: str) -> bytes:
        """The log with all put back that was kept of it."""
        log = bytearray(image.read(LOG))
        if image.exists(f"{folder}/before.bin"):
            kept = image.read(f"{folder}/before.bin")
            for line in image.read(f"{folder}/changes.jsonl").splitlines():
                row = json.loads(line) if line.startswith(b"{") else {}
                if row.get("path") == LOG and "at" in row:
                    start, at, length = row["position"], row["at"], row["length"]
                    log[start : start + length] = kept[at : at + length]
        return bytes(log)

    def test_kept(self) -> None:
        """Whatever has changed in the log by then is kept as it was."""
        images = self.images()
        (name,) = [n for n in self.disk.list(ROOT) if n.startswith("repair-")]
        changed = [each for each in images if each.read(LOG) != self.before]
        self.assertGreater(len(changed), 10)
        for image in changed:
            self.assertEqual(self.restored(image, f"{ROOT}/{name}"), self.before)

    def test_start(self) -> None:
        """A start has all messages then, also where nobody wrote down where the queues
        ended; and another repair makes good what is left."""
        forget_ends(self.disk)
        self.disk.sync_dir(ROOT)
        for number, image in enumerate(self.images()[::4]):
            store = opened(image)
            ends = [store.queue("T", queue_id).max_offset for queue_id in (0, 1)]
            self.assertEqual(ends, [40, 40], number)
            store.close()
            repair = repair_of(image)
            repair.run(False)
            self.assertEqual((repair.left, verified(image)[1]), (0, []))

    def test_onlyQueue(self) -> None:
        """So it has where the repair was killed and a topic has one queue, which was
        moved away by then, though one without entries could be that of a deleted
        topic."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        for _ in range(3):
            put(store, store.queue("T", 0), *[b"%d" % number for number in range(25)])
            put(store, store.queue("U", 0), b"last")
        store.close()
        forget_ends(self.disk)
        self.change(QUEUE, 10 * SIZE, b"\x01" * 3 * SIZE)
        images: list[MemoryDisk] = []
        self.disk.watch = lambda call: images.append(self.disk.image(keep_all=True))
        repair_of(self.disk).run(False)
        self.disk.watch = None
        for number, image in enumerate(images):
            found = opened(image).queue("T", 0).max_offset
            self.assertEqual(found, 75, number)

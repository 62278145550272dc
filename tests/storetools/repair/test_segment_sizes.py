"""The files of a log that are too short, too long or missing."""

from __future__ import annotations

import json
import os

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.storetools.repair.run import Repair
from rocketbroker.storetools.repair.segment_sizes import SegmentSizes
from rocketbroker.testing.files import MemoryDisk
from tests.store.repairs import DamagedStore, repair_of
from tests.store.stores import ROOT, SEGMENT, opened, options, put

LAST_LOG = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))


def resize(disk: MemoryDisk, path: str, size: int) -> None:
    """Cut or extend a file."""
    file = disk.open(path)
    file.truncate(size)
    file.close()


class SizeTests(DamagedStore):
    """What the files say about their length."""

    def size(self, sizes: dict[int, int], setting: int = 0) -> int:
        """The length, with files of these lengths; -1 if nothing tells it."""
        disk = MemoryDisk()
        disk.make_dirs("/s/commitlog")
        for start, size in sizes.items():
            path = os.path.join("/s/commitlog", segment_name(start))
            disk.open(path, create=True).close()
            resize(disk, path, size)
        try:
            return SegmentSizes(disk, "/s", None, setting).size
        except StoreError as error:
            self.assertIn("Nothing was changed.", str(error))
            return -1

    def test_most(self) -> None:
        """That of most, if all names are multiples of it; nothing is guessed."""
        page = 4096
        self.assertEqual(self.size({0: page, page: page, 2 * page: 9}), page)
        self.assertEqual(self.size({0: page, 3 * page: page}), page)
        self.assertEqual(self.size({0: 7 * page}), 7 * page)
        self.assertEqual(self.size({0: 100, 100: 100}), 100)
        self.assertEqual(self.size({0: 0}), 0)
        self.assertEqual(self.size({}), 0)
        self.assertEqual(self.size({0: page + 1, page: page}), -1)
        self.assertEqual(self.size({page: page + 1, 2 * page: 9}), -1)
        self.assertEqual(self.size({0: 0, page: 0}), -1)

    def test_settings(self) -> None:
        """That of the settings, if the files can be such."""
        page = 4096
        self.assertEqual(self.size({0: 9}, page), page)
        self.assertEqual(self.size({0: page + 1}, page), page)
        self.assertEqual(self.size({0: 2 * page}, page), -1)
        self.assertEqual(self.size({0: 2 * page, 2 * page: 2 * page}, 3 * page), -1)


class LengthTests(DamagedStore):
    """A store of two files, repaired."""

    def run_without_settings(self) -> Repair:
        """Repair it; the settings are not given."""
        self.steps = []
        given = options(mapped_file_size_commit_log=0)
        repair = repair_of(self.disk, self.steps.append, given=given)
        repair.run(False)
        return repair

    def texts(self) -> str:
        """What was reported."""
        return "\n".join(
            f"{each.kind} {each.where}: {each.text}" for each in self.steps
        )

    def expect_same(self, before: dict[str, bytes]) -> None:
        """Nothing has changed."""
        for path, content in before.items():
            self.assertEqual(self.disk.read(path), content)

    def contents(self) -> dict[str, bytes]:
        """Log and queues."""
        return {
            path: self.disk.read(path)
            for folder in ("commitlog", "consumequeue/T/0", "consumequeue/T/1")
            for path in (
                os.path.join(ROOT, folder, name)
                for name in self.disk.list(os.path.join(ROOT, folder))
            )
        }

    def test_middleMissing(self) -> None:
        """No file is made longer because one between them is missing; it is
        reported, and nothing is changed."""
        store = opened(self.disk)
        for number in range(40, 80):
            put(store, store.queue("T", 0), b"%02d" % number * 600)
        store.close()
        middle = self.disk.read(LAST_LOG)
        self.disk.remove(LAST_LOG)
        before = self.contents()
        for repair in (self.run_without_settings(), self.repair(left=None)):
            self.assertTrue(repair.left)
            self.assertEqual(self.kinds(), ["unrepaired"])
            self.assertIn(f"from position {SEGMENT} to {2 * SEGMENT}", self.texts())
            self.assertEqual(repair.copies, "")
            self.expect_same(before)
        file = self.disk.open(LAST_LOG, create=True)
        file.pwrite(middle, 0)
        file.close()
        self.repair()
        self.assertEqual(self.steps, [])

    def test_lastMissing(self) -> None:
        """The last one is missed after a clean stop."""
        self.disk.remove(LAST_LOG)
        before = self.contents()
        given = options(mapped_file_size_commit_log=SEGMENT)
        repair = repair_of(self.disk, self.steps.append, given=given)
        repair.run(False)
        self.assertEqual(self.kinds(), ["unrepaired"])
        self.assertIn(f"from position {SEGMENT} to {2 * SEGMENT}", self.texts())
        self.expect_same(before)

    def test_lastEmptied(self) -> None:
        """Of a file that is there and empty, all messages keep their places."""
        resize(self.disk, LAST_LOG, 0)
        self.repair()
        self.assertEqual(self.kinds(), ["changed", "emptied", "moved"])
        bodies = [m.body for m in self.messages(1)]
        self.assertEqual(bodies, [b"x" * 300] * 36 + [b""] * 4)
        self.assertEqual(self.faults(), [])

    def test_lastCut(self) -> None:
        """The same, if it was cut between two records, or in one."""
        data = self.disk.read(os.path.join(ROOT, "consumequeue/T/1", segment_name(0)))
        position, _, _ = ENTRY.unpack(data[38 * SIZE : 39 * SIZE])
        for more in (0, 1, 100):
            self.start_over()
            resize(self.disk, LAST_LOG, position - SEGMENT + more)
            repair = self.repair()
            lines = self.disk.read(os.path.join(repair.copies, "changes.jsonl"))
            row = json.loads(lines.splitlines()[0])
            self.assertEqual((row["path"], row["length"]), (LAST_LOG, 0))
            self.assertEqual(row["position"], position - SEGMENT + more)
            bodies = [m.body for m in self.messages(1)]
            self.assertEqual(bodies, [b"x" * 300] * 38 + [b""] * 2)
            self.assertEqual(self.faults(), [])

    def test_lengthUnknown(self) -> None:
        """Where nothing tells the length, nothing is done, and the settings are asked
        for."""
        resize(self.disk, LAST_LOG, 100)
        before = self.contents()
        error = self.assertRaises(StoreError, self.run_without_settings)
        self.assertIn("have 100, 65536 bytes. Give -c", str(error))
        self.assertIn("Nothing was changed.", str(error))
        self.expect_same(before)
        self.repair()
        self.assertEqual(self.faults(), [])

"""The messages that a repair reports as discarded, and their copies."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.backup import Done
from rocketbroker.storetools.repair.rebuild import Rebuild
from rocketbroker.storetools.repair.run import Keeping, Repair
from rocketbroker.testing.files import MemoryDisk
from tests.store.repairs import LOG, DamagedStore, repair_of, verified
from tests.store.stores import (
    ROOT,
    SEGMENT,
    Wall,
    opened,
    put,
    put_batches,
    with_batches,
)

LAST_LOG = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))
LAST_QUEUE = os.path.join(ROOT, "consumequeue", "T", "1", segment_name(0))
INDEX = os.path.join(ROOT, "index")


class LossTests(DamagedStore):
    """A store of 80 messages that has lost some."""

    def crash(self) -> None:
        """Let it look like one that was not stopped."""
        self.disk.open(os.path.join(ROOT, "abort"), create=True).close()

    def index_more(self) -> None:
        """Append, until the index has several files."""
        store = opened(self.disk)
        for _ in range(20):
            put(store, store.queue("T", 0), *[b"more"] * 100)
        while store.build_index(1000):
            pass
        store.close()

    def rows(self, kind: str) -> list[str]:
        """What was reported of a kind: where."""
        return [done.where for done in self.steps if done.kind == kind]

    def both(self) -> Repair:
        """Say what would be done, and do it; that is the same."""
        self.repair(dry=True, left=None)
        wanted = [(each.kind, each.where) for each in self.steps]
        repair = self.repair()
        done = [(each.kind, each.where) for each in self.steps if each.kind != "start"]
        self.assertEqual(sorted(done), sorted(wanted))
        return repair

    def test_crashed(self) -> None:
        """After a crash the log ends before what the queues know: the messages are
        told, and what the queues knew is kept."""
        foreign = os.path.join(os.path.dirname(LAST_QUEUE), "!foreign")
        self.disk.open(foreign, create=True).close()
        ends = self.disk.read(os.path.join(ROOT, "rocketbroker.ends"))
        entries = self.disk.read(LAST_QUEUE)[36 * SIZE : 40 * SIZE]
        file = self.disk.open(LAST_LOG)
        file.truncate(0)
        file.truncate(SEGMENT)
        file.close()
        self.crash()
        repair = self.both()
        lost = ["T/0 offsets 37 to 39", "T/1 offsets 36 to 39"]
        self.assertEqual(self.rows("discarded"), lost)
        kept = self.disk.read(os.path.join(repair.copies, "before.bin"))
        self.assertIn(entries, kept)
        self.assertIn(ends, kept)
        self.disk.remove(foreign)
        self.assertEqual(len(self.messages(1)), 36)

    def test_index(self) -> None:
        """The files of an index that is made again are kept, and reported."""
        names = self.disk.list(INDEX)
        self.assertEqual(len(names), 1)
        before = self.disk.read(os.path.join(INDEX, names[0]))
        self.change(LOG, self.position(7)[0] + 500, b"!")
        repair = self.both()
        self.assertIn(os.path.join(INDEX, names[0]), self.rows("moved"))
        kept = os.path.join(repair.copies, "index", names[0])
        self.assertEqual(self.disk.read(kept), before)

    def test_indexAfterCrash(self) -> None:
        """After a crash alone the start makes of it again what it does not trust."""
        self.index_more()
        for position in range(SEGMENT, 6 * SEGMENT, SEGMENT):
            path = os.path.join(ROOT, "commitlog", segment_name(position))
            if self.disk.exists(path):
                self.disk.remove(path)
        self.crash()
        self.both()
        self.assertEqual(self.rows("moved"), [])
        self.assertEqual(self.faults(), [])


class BatchLossTests(SynchronousTestCase):
    """Three batches, of which the second is lost."""

    def bases(self) -> list[int]:
        """The batches that the queue has, by their first offsets."""
        reader = StoreReader(self.disk, ROOT)
        found = [unit.base for unit in BatchQueueReader(reader, "B", 0).units()]
        reader.close()
        return found

    def test_destroyed(self) -> None:
        """A batch of which nothing can be read any more is reported, and its unit
        goes with it."""
        disk = MemoryDisk()
        store = with_batches(disk, Wall())
        queue = store.queue("B", 0)
        drafts = put_batches(store, queue, *[[b"a", b"b", b"c"]] * 3)
        store.close()
        size = drafts[2].position - drafts[1].position
        file = disk.open(LOG)
        file.pwrite(b"\xaa" * size, drafts[1].position)
        file.close()
        steps: list[Done] = []
        repair = repair_of(disk, steps.append)
        repair.run(False)
        self.assertEqual((repair.left, verified(disk)[1]), (0, []))
        lost = [each.where for each in steps if each.kind == "discarded"]
        self.assertIn("B/0 offset 3 to 5", lost)
        self.disk = disk
        self.assertEqual(self.bases(), [0, 6])


class RoomTests(DamagedStore):
    """A disk that is nearly full."""

    def test_nothing(self) -> None:
        """It is reported before anything is changed, and nothing that was not done."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        file = self.disk.open(LAST_LOG)
        file.truncate(SEGMENT - 100)
        file.close()
        self.disk.capacity = self.disk.used() + (1 << 20)
        asked = []

        def others(keeping: Keeping | None) -> list[Done]:
            asked.append(keeping)
            return [Done("changed", "topics.json", 0, 10, "its copy takes its place")]

        repair = repair_of(self.disk, self.steps.append, others)
        before = dict(self.disk.calls)
        error = self.assertRaises(StoreError, repair.run, False)
        self.assertIn("Nothing was changed.", str(error))
        self.assertEqual((self.steps, asked, repair.copies), ([], [None], ""))
        for call in ("pwrite", "truncate", "remove", "rename", "make_dirs"):
            self.assertEqual(self.disk.calls[call], before[call])

    def test_others(self) -> None:
        """What of the rest cannot be repaired keeps nothing else of it from that."""
        asked: list[Keeping | None] = []

        def others(keeping: Keeping | None) -> list[Done]:
            asked.append(keeping)
            return [
                Done("unrepaired", "delayOffset.json", 0, 10, "it has no copy"),
                Done("changed", "topics.json", 0, 10, "its copy takes its place"),
            ]

        repair = repair_of(self.disk, self.steps.append, others)
        repair.run(False)
        self.assertEqual([each is None for each in asked], [True, False])
        self.assertEqual((repair.faults, repair.left), (2, 1))

    def test_inTheMiddle(self) -> None:
        """What a disk refuses in the middle is not reported as done, and it is
        reported where everything is as it was."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        self.disk.fail("datasync", 28)
        error = self.assertRaises(StoreError, self.repair)
        self.assertIn(f"{ROOT}/repair-", str(error))
        self.assertEqual(self.steps, [])

    def test_startRefused(self) -> None:
        """So it is if the start of the store, in the end, is refused."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        self.disk.fail("map", 5, times=99)
        self.disk.fail("allocate", 5, times=99)
        error = self.assertRaises(StoreError, self.repair)
        self.assertIn(f"changed until then are in {ROOT}/repair-", str(error))


class RebuildTests(DamagedStore):
    """Files that are moved away, and made again."""

    def test_size(self) -> None:
        """They need the room that the old ones have."""
        rebuild = Rebuild(self.disk, ROOT)
        rebuild.queues({("T", 1), ("none", 0)})
        rebuild.index()
        folders = os.path.dirname(LAST_QUEUE), INDEX
        paths = [
            os.path.join(folder, name)
            for folder in folders
            for name in self.disk.list(folder)
        ]
        self.assertGreater(len(paths), 1)
        self.assertEqual(rebuild.size(), sum(map(self.disk.size, paths)))

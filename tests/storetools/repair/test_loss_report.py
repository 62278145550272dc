"""What a repair says that it gives up, and what it keeps of it."""

from __future__ import annotations

import os
import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.backup import Done
from rocketbroker.storetools.repair.run import Keeping, Repair
from rocketbroker.testing.files import MemoryDisk
from tests.store.repairs import LOG, QUEUE, DamagedStore, repair_of, verified
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
        """What was told of a kind: where."""
        return [done.where for done in self.told if done.kind == kind]

    def both(self) -> Repair:
        """Say what would be done, and do it; that is the same."""
        self.repair(dry=True, left=None)
        wanted = [(each.kind, each.where) for each in self.told]
        repair = self.repair()
        done = [(each.kind, each.where) for each in self.told if each.kind != "start"]
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
        self.assertEqual(self.rows("given-up"), lost)
        kept = self.disk.read(os.path.join(repair.copies, "before.bin"))
        self.assertIn(entries, kept)
        self.assertIn(ends, kept)
        self.disk.remove(foreign)
        self.assertEqual(len(self.messages(1)), 36)

    def test_index(self) -> None:
        """The files of an index that is made again are kept, and told."""
        names = self.disk.list(INDEX)
        self.assertEqual(len(names), 1)
        before = self.disk.read(os.path.join(INDEX, names[0]))
        self.change(LOG, self.position(7)[0] + 500, b"!")
        repair = self.both()
        self.assertIn(os.path.join(INDEX, names[0]), self.rows("moved"))
        kept = os.path.join(repair.copies, "index", names[0])
        self.assertEqual(self.disk.read(kept), before)

    def test_indexAfterCrash(self) -> None:
        """Also those alone that a start after a crash does not believe."""
        self.index_more()
        self.crash()
        names = self.disk.list(INDEX)
        self.assertGreater(len(names), 2)
        before = self.disk.read(os.path.join(INDEX, names[-1]))
        repair = self.both()
        moved = self.rows("moved")
        self.assertIn(os.path.join(INDEX, names[-1]), moved)
        self.assertNotIn(os.path.join(INDEX, names[0]), moved)
        kept = os.path.join(repair.copies, "index", names[-1])
        self.assertEqual(self.disk.read(kept), before)

    def test_indexBehindEnd(self) -> None:
        """Or that know messages which the log has lost."""
        self.index_more()
        for position in range(SEGMENT, 6 * SEGMENT, SEGMENT):
            path = os.path.join(ROOT, "commitlog", segment_name(position))
            if self.disk.exists(path):
                self.disk.remove(path)
        self.crash()
        names = self.disk.list(INDEX)
        self.both()
        moved = [path for path in self.rows("moved") if path.startswith(INDEX)]
        self.assertEqual(moved, [os.path.join(INDEX, name) for name in names])

    def test_tags(self) -> None:
        """A tag that is not the one that its entry knows is told: no checksum says
        which of the two is right."""
        position, size = self.position(7)
        record = self.disk.read(LOG)[position : position + size]
        self.change(LOG, position + record.index(b"TAGS\x01A") + 5, b"B")
        self.both()
        self.assertEqual(self.rows("changed"), ["T/0 offset 7"])
        self.assertEqual(self.faults(), [])

    def test_tagsBesides(self) -> None:
        """Entries that lead nowhere, or say another size, hide none of these, and are
        none themselves."""
        position, size = self.position(7)
        record = self.disk.read(LOG)[position : position + size]
        self.change(LOG, position + record.index(b"TAGS\x01A") + 5, b"B")
        self.change(LOG, self.position(1)[0] + 500, b"!")
        for number, entry in (
            (2, (9, 300)),
            (3, (100, 1 << 30)),
            (4, (self.position(4)[0], 0)),
            (5, (self.position(5)[0], self.position(5)[1] + 1)),
        ):
            self.change(QUEUE, number * SIZE, struct.pack(">qi", *entry))
        self.repair()
        self.assertEqual(self.rows("changed"), ["T/0 offset 7"])
        self.assertEqual(self.faults(), [])


class BatchLossTests(SynchronousTestCase):
    """Three batches, of which the second does not say any more where it stands."""

    def repair(
        self,
        before: bytes,
        after: bytes,
        number: int = 1,
        count: int = 3,
        faults: tuple[str, ...] = ("entry",),
    ) -> list[Done]:
        """Change the properties of one, and repair the store.

        @param count: how many there are.
        @param faults: what is wrong then.
        @return: what was told, but of queues and index that are made again.
        """
        self.disk = MemoryDisk()
        store = with_batches(self.disk, Wall())
        queue = store.queue("B", 0)
        self.drafts = put_batches(store, queue, *[[b"a", b"b", b"c"]] * count)
        store.close()
        file = self.disk.open(LOG)
        position = self.drafts[number].position
        record = file.pread(int.from_bytes(file.pread(4, position), "big"), position)
        self.assertIn(before, record)
        file.pwrite(record.replace(before, after), position)
        file.close()
        found = verified(self.disk)[1]
        self.assertEqual(tuple(each.kind for each in found), faults)
        told: list[Done] = []
        repair = repair_of(self.disk, told.append)
        repair.run(False)
        self.assertEqual((repair.left, verified(self.disk)[1]), (0, []))
        return [each for each in told if each.kind not in ("moved", "start")]

    def bases(self) -> list[int]:
        """The batches that the queue has, by their first offsets."""
        reader = StoreReader(self.disk, ROOT)
        found = [unit.base for unit in BatchQueueReader(reader, "B", 0).units()]
        reader.close()
        return found

    def test_mended(self) -> None:
        """Where there is room for them its numbers are put back."""
        for before in (b"INNER_BASE", b"INNER_BASE\x013\x02", b"INNER_NUM\x013"):
            for byte in (b"\0", b"\xff"):
                (told,) = self.repair(before, byte * len(before))
                self.assertEqual(
                    (told.kind, told.where), ("mended", "B/0 offset 3 to 5")
                )
                self.assertEqual(self.bases(), [0, 3, 6])

    def test_noNumber(self) -> None:
        """Where one is no number any more RocketMQ's broker would end the log: that is
        told, and it is set right."""
        for before in (b"INNER_BASE\x013", b"INNER_NUM\x013"):
            wrong = ("body", "entry")
            (told,) = self.repair(before, before[:-1] + b"x", faults=wrong)
            self.assertEqual((told.kind, told.where), ("mended", "B/0 offset 3 to 5"))
            self.assertEqual(self.bases(), [0, 3, 6])

    def test_givenUp(self) -> None:
        """Else it is told as given up, also the last one and the only one left."""
        where = ["B/0 offset 0 to 2", "B/0 offset 3 to 5", "B/0 offsets 6 to 8"]
        for number in range(3):
            (told,) = self.repair(b"INNER_NUM", b"SOMETHING", number)
            self.assertEqual((told.kind, told.where), ("given-up", where[number]))
            self.assertEqual(self.bases(), [n for n in (0, 3, 6) if n != 3 * number])
        (told,) = self.repair(b"INNER_NUM", b"SOMETHING", 0, 1)
        self.assertEqual((told.kind, told.where), ("given-up", "B/0 offsets 0 to 2"))
        self.assertEqual(self.bases(), [])

    def test_destroyed(self) -> None:
        """A batch of which nothing can be read any more is told, and its unit goes with
        it."""
        disk = MemoryDisk()
        store = with_batches(disk, Wall())
        queue = store.queue("B", 0)
        drafts = put_batches(store, queue, *[[b"a", b"b", b"c"]] * 3)
        store.close()
        size = drafts[2].position - drafts[1].position
        file = disk.open(LOG)
        file.pwrite(b"\xaa" * size, drafts[1].position)
        file.close()
        told: list[Done] = []
        repair = repair_of(disk, told.append)
        repair.run(False)
        self.assertEqual((repair.left, verified(disk)[1]), (0, []))
        lost = [each.where for each in told if each.kind == "given-up"]
        self.assertIn("B/0 offset 3 to 5", lost)
        self.disk = disk
        self.assertEqual(self.bases(), [0, 6])

    def test_others(self) -> None:
        """If it says other numbers than its unit, nothing tells which of the two is
        right."""
        (told,) = self.repair(b"INNER_NUM\x013", b"INNER_NUM\x012")
        self.assertEqual((told.kind, told.where), ("changed", "B/0 offset 3 to 4"))
        self.assertIn("said offset 3 to 5", told.text)

    def test_ofAnother(self) -> None:
        """What a queue's file had that was copied from another queue is not told as
        lost, but once, as that of the other."""
        disk = MemoryDisk()
        store = with_batches(disk, Wall())
        queues = store.queue("B", 0), store.queue("B", 1)
        put_batches(store, queues[0], *[[b"a", b"b", b"c"]] * 3)
        put_batches(store, queues[1], *[[b"a", b"b"]] * 5)
        store.close()
        paths = [
            os.path.join(ROOT, "batchconsumequeue", "B", str(queue_id), segment_name(0))
            for queue_id in (0, 1)
        ]
        both = [disk.read(path) for path in paths]
        file = disk.open(paths[1])
        file.pwrite(both[0], 0)
        file.close()
        told: list[Done] = []
        repair = repair_of(disk, told.append)
        repair.run(False)
        self.assertEqual(repair.left, 0)
        self.assertEqual([disk.read(path) for path in paths], both)
        rows = [(each.kind, each.where) for each in told if each.kind != "start"]
        rows = [row for row in rows if row[0] != "moved"]
        self.assertEqual(rows, [("changed", "B/1 offsets 3 to 5")])


class RoomTests(DamagedStore):
    """A disk that is nearly full."""

    def test_nothing(self) -> None:
        """It is told before anything is changed, and nothing that was not done."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        file = self.disk.open(LAST_LOG)
        file.truncate(SEGMENT - 100)
        file.close()
        self.disk.capacity = self.disk.used() + (1 << 20)
        asked = []

        def others(keeping: Keeping | None) -> list[Done]:
            asked.append(keeping)
            return [Done("changed", "topics.json", 0, 10, "its copy takes its place")]

        repair = repair_of(self.disk, self.told.append, others)
        before = dict(self.disk.calls)
        error = self.assertRaises(StoreError, repair.run, False)
        self.assertIn("Nothing was changed.", str(error))
        self.assertEqual((self.told, asked, repair.copies), ([], [None], ""))
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

        repair = repair_of(self.disk, self.told.append, others)
        repair.run(False)
        self.assertEqual([each is None for each in asked], [True, False])
        self.assertEqual((repair.faults, repair.left), (2, 1))

    def test_inTheMiddle(self) -> None:
        """What a disk refuses in the middle is not told as done, and it is told where
        everything is as it was."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        self.disk.fail("datasync", 28)
        error = self.assertRaises(StoreError, self.repair)
        self.assertIn(f"{ROOT}/repair-", str(error))
        self.assertEqual(self.told, [])

    def test_startRefused(self) -> None:
        """So it is if the start of the store, in the end, is refused."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        self.disk.fail("map", 5, times=99)
        self.disk.fail("allocate", 5, times=99)
        error = self.assertRaises(StoreError, self.repair)
        self.assertIn(f"changed until then is in {ROOT}/repair-", str(error))

"""Queues without entries, whose topic was deleted, or that are lost: start, check and
repair hold the same of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.queueunits import BATCH_SIZE, decode_batch
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.recovery.fates import OPTION, Fate, fate_of
from rocketbroker.storetools.verify.batch_match import BatchMatching
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import forget_ends, list_topics, lose_folder
from tests.store.repairs import repair_of, verified
from tests.store.stores import ROOT, opened, put, put_batches

ORDINARY, BATCHES = "consumequeue", "batchconsumequeue"


class FateTests(SynchronousTestCase):
    """What the other queues of the topic tell."""

    def test_fate(self) -> None:
        """No other begins before the topic was made again."""
        self.assertEqual(fate_of([], 100, False), Fate.UNKNOWN)
        self.assertEqual(fate_of([], 100, True), Fate.UNKNOWN)
        self.assertEqual(fate_of([200, 300], 100, True), Fate.DELETED)
        self.assertEqual(fate_of([200, 300], 100, False), Fate.UNKNOWN)
        self.assertEqual(fate_of([200, 300], 250, True), Fate.LOST)
        self.assertEqual(fate_of([0, 300], 250, False), Fate.LOST)


class AlikeTests(SynchronousTestCase):
    """Stores that somebody else has stopped cleanly, of a topic with three queues; the
    second has no directory."""

    #: The directory of the topic's queues.
    kind = ORDINARY

    def put(self, store: Store, queue_id: int, count: int, body: bytes) -> None:
        """Append messages."""
        queue = store.queue("T", queue_id)
        if self.kind == BATCHES:
            put_batches(store, queue, *([body, body] for _ in range(count)))
        else:
            put(store, queue, *[body] * count)

    @contextlib.contextmanager
    def written(self, by_us: bool = False) -> Iterator[Store]:
        """A store that is stopped then.

        @param by_us: whether nobody else has stopped it.
        """
        self.disk = MemoryDisk()
        list_topics(self.disk, "T")
        self.disk.make_dirs(f"{ROOT}/{self.kind}/T")
        store = opened(self.disk)
        yield store
        put(store, store.queue("U", 0), b"last")
        store.close()
        if not by_us:
            forget_ends(self.disk)

    def delete(self, store: Store) -> None:
        """Delete the topic, and make it again."""
        store.delete_topic("T")
        self.disk.make_dirs(f"{ROOT}/{self.kind}/T")

    def lose(self, queue_id: int, first: bool = False) -> None:
        """Lose the directory of a queue, or only its first file."""
        folder = f"{ROOT}/{self.kind}/T/{queue_id}"
        if first:
            self.disk.remove(f"{folder}/{segment_name(0)}")
        else:
            lose_folder(self.disk, folder)

    def verify(self) -> tuple[list[Fault], list[str]]:
        """Faults and remarks."""
        walk, faults = verified(self.disk)
        return faults, [remark.text for remark in walk.remarks]

    def check(self, fate: Fate, count: int, *queues: int) -> None:
        """All hold the same.

        @param count: how many messages the second queue has if it is made again.
        @param queues: those that have a remark.
        """
        faults, remarks = self.verify()
        missing = [each for each in faults if each.queue == ("T", 1)]
        self.assertEqual(len(missing), fate is Fate.LOST)
        self.assertEqual(len(remarks), len(queues))
        for queue, remark in zip(queues, remarks, strict=True):
            self.assertIn(f"T/{queue}: the queue has no directory", remark)
            self.assertIn(OPTION, remark)
        if fate is not Fate.LOST:
            self.assertEqual(faults, [])
            self.assertEqual(self.started(self.disk.image(keep_all=True)), 0)
            repair = repair_of(self.disk)
            repair.run(False)
            self.assertEqual((repair.faults, repair.copies), (0, ""))
        else:
            self.assertEqual(self.started(self.disk.image(keep_all=True)), count)
            (said,) = self.report
            self.assertIn("T/1 has no entries from offset 0 on", said)
        self.assertEqual(any(OPTION in said for said in self.report), bool(queues))
        for crashed in (False, True):
            disk = self.disk.image(keep_all=True)
            if crashed:
                disk.open(f"{ROOT}/abort", create=True)
            repair = repair_of(disk, restores=True)
            repair.run(False)
            self.assertEqual(repair.left, 0)
            if fate is not Fate.DELETED:
                self.assertEqual(self.started(disk), count)
            elif not crashed:
                self.assertEqual(repair.faults, 0)

    def started(self, disk: MemoryDisk) -> int:
        """How many messages the second queue has after a start."""
        store = opened(disk)
        self.report = store.report
        return store.queue("T", 1).max_offset

    def test_unused(self) -> None:
        """Nothing tells it where the topic has no entry."""
        with self.written() as store:
            self.put(store, 0, 2, b"old")
            self.put(store, 1, 3, b"old")
            self.delete(store)
        self.check(Fate.UNKNOWN, self.messages(3), 0, 1)

    def test_topicsChanged(self) -> None:
        """Nor does our own stop tell it where topics have changed since; where they
        have not, all that has no directory is lost."""
        for changes in (0, 1):
            with self.written(by_us=True) as store:
                self.put(store, 0, 2, b"old")
                self.put(store, 1, 3, b"old")
            self.lose(0)
            self.lose(1)
            list_topics(self.disk, "T", changes=changes)
            if changes:
                self.check(Fate.UNKNOWN, self.messages(3), 0, 1)
                continue
            faults = [each.queue for each in self.verify()[0]]
            self.assertEqual(faults, [("T", 0), ("T", 1)])
            self.assertEqual(self.started(self.disk), self.messages(3))

    def test_ourStop(self) -> None:
        """What a queue had is asked of our own stop: one without entries then has
        lost none, whatever the others tell."""
        with self.written(by_us=True) as store:
            self.put(store, 1, 3, b"old")
            self.delete(store)
            self.put(store, 0, 1, b"new")
        disk = self.disk.image(keep_all=True)
        self.assertEqual(self.verify(), ([], []))
        repair = repair_of(self.disk)
        repair.run(False)
        self.assertEqual((repair.faults, repair.copies), (0, ""))
        self.assertEqual(self.started(disk), 0)
        self.assertEqual(self.report, [])

    def test_used(self) -> None:
        """It was deleted where another queue of it has older messages, too."""
        with self.written() as store:
            self.put(store, 0, 2, b"old")
            self.put(store, 1, 3, b"old")
            self.delete(store)
            self.put(store, 0, 1, b"new")
        self.check(Fate.DELETED, 0)

    def test_alone(self) -> None:
        """Nothing tells it where only this one has older messages, deleted or lost."""
        for deleted in (True, False):
            with self.written() as store:
                self.put(store, 1, 3, b"old")
                if deleted:
                    self.delete(store)
                self.put(store, 0, 2, b"new")
                self.put(store, 2, 2, b"new")
            if not deleted:
                self.lose(1)
            self.check(Fate.UNKNOWN, self.messages(3), 1)

    def test_lost(self) -> None:
        """It is lost where another one began before its last message."""
        with self.written() as store:
            self.put(store, 1, 3, b"old")
            self.put(store, 0, 2, b"new")
            self.put(store, 1, 1, b"new")
        self.lose(1)
        self.check(Fate.LOST, self.messages(4))

    def test_front(self) -> None:
        """It is lost where another one was there before its own first file."""
        with self.written() as store:
            self.put(store, 0, 60, b"old")
            self.put(store, 1, 3, b"old")
            self.put(store, 0, 60, b"new")
        self.lose(1)
        self.lose(0, first=True)
        (fault,) = [each for each in self.verify()[0] if each.queue == ("T", 1)]
        self.assertEqual(fault.kind, "missing")
        self.assertEqual(self.started(self.disk), self.messages(3))

    def messages(self, count: int) -> int:
        """So many, each of which may be a batch of two."""
        return 2 * count if self.kind == BATCHES else count


class BatchTests(AlikeTests):
    """The same of batch queues."""

    kind = BATCHES

    def test_older(self) -> None:
        """What the log has from before the first unit is the topic's before it was
        deleted, entered again in part after a crash; unless another queue tells that it
        was not."""
        for is_lost, by_us in ((False, False), (False, True), (True, False)):
            with self.written(by_us) as store:
                self.put(store, 0, int(is_lost), b"first")
                self.put(store, 1, 5, b"old")
                self.put(store, 0, 2, b"new")
            file = self.disk.open(f"{ROOT}/{BATCHES}/T/1/{segment_name(0)}")
            file.pwrite(file.pread(3 * BATCH_SIZE, 2 * BATCH_SIZE), 0)
            file.pwrite(bytes(2 * BATCH_SIZE), 3 * BATCH_SIZE)
            file.close()
            faults, remarks = self.verify()
            self.assertEqual([each.kind for each in faults], ["missing"] * 2 * is_lost)
            self.assertEqual(len(remarks), not is_lost)
            if not is_lost:
                said = "T/1: the log has 2 records of it from before it begins, from of"
                self.assertIn(said, remarks[0])
            repair = repair_of(self.disk, restores=True)
            repair.run(False)
            self.assertEqual(repair.left, 0)
            self.assertEqual(self.started(self.disk), 10)
            self.assertEqual(self.verify(), ([], []))

    def test_manyOlder(self) -> None:
        """However many these are, what else has no unit is told."""
        with self.written() as store:
            self.put(store, 1, 6, b"old")
        file = self.disk.open(f"{ROOT}/{BATCHES}/T/1/{segment_name(0)}")
        units = file.pread(6 * BATCH_SIZE, 0)
        file.pwrite(units[3 * BATCH_SIZE : 5 * BATCH_SIZE], 0)
        file.pwrite(bytes(4 * BATCH_SIZE), 2 * BATCH_SIZE)
        file.close()
        reader = StoreReader(self.disk, ROOT)
        for most in (1, 100):
            matching = BatchMatching(reader, "T", 1, most)
            all_units = [decode_batch(units, at * BATCH_SIZE) for at in range(6)]
            for unit in all_units:
                matching.meet(unit)
            first, last = all_units[0], all_units[5]
            self.assertEqual((matching.older, matching.unlisted), (3, 1))
            self.assertEqual(matching.first_older, (first.position, 0))
            self.assertEqual(matching.missing, [(last.position, last.base)])
            matching.count_older()
            self.assertEqual(matching.unlisted, 4)
            self.assertEqual(len(matching.missing), min(most, 3) + 1)
        reader.close()

    def test_beginsAgain(self) -> None:
        """What the log has of one from before its numbers begin again is not missing:
        nobody reads it."""
        with self.written() as store:
            self.put(store, 1, 6, b"old")
        file = self.disk.open(f"{ROOT}/{BATCHES}/T/1/{segment_name(0)}")
        units = [
            decode_batch(file.pread(6 * BATCH_SIZE, 0), at * BATCH_SIZE)
            for at in range(6)
        ]
        again = [unit._replace(base=unit.base - units[3].base) for unit in units[3:]]
        file.pwrite(b"".join(unit.encode() for unit in again), 0)
        file.pwrite(bytes(3 * BATCH_SIZE), 3 * BATCH_SIZE)
        file.close()
        reader = StoreReader(self.disk, ROOT)
        matching = BatchMatching(reader, "T", 1, 100)
        begins = [matching.meet(unit) for unit in units[:3] + again]
        self.assertEqual(begins, [False] * 3 + [True] + [False] * 2)
        self.assertEqual((matching.older, matching.unlisted), (0, 0))
        self.assertEqual((matching.missing, list(matching.rest())), ([], []))
        reader.close()

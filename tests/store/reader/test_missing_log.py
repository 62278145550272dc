"""Directories without a file of the log."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.store.commitlog.checkpoint import SIZE as CHECKPOINT_SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.backup import Done
from rocketbroker.storetools.repair.exclusive_lock import ExclusiveLock
from rocketbroker.storetools.verify.check import Check
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.users import GivenUsers
from tests.store.reader.disks import ArrivingDisk
from tests.store.repairs import repair_of
from tests.store.stores import (
    ROOT,
    SEGMENT,
    opened,
    options,
    put,
    put_batches,
    with_batches,
)

LOG = os.path.join(ROOT, "commitlog")
NOWHERE = "There is no store in /store: no file of a log in /store/commitlog."


class EmptinessTests(SynchronousTestCase):
    """What is no store, one without messages, and one that has lost its log."""

    def setUp(self) -> None:
        """A disk."""
        self.disk = MemoryDisk()
        self.steps: list[Done] = []

    def make(self, name: str, content: bytes = b"") -> None:
        """A file in the root."""
        path = os.path.join(ROOT, name)
        self.disk.make_dirs(os.path.dirname(path))
        file = self.disk.open(path, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.close()

    def unused(self, stored_ms: int = 0) -> None:
        """What RocketMQ's broker leaves to which no message has come.

        @param stored_ms: the time in the checkpoint.
        """
        self.make("lock", b"lock")
        self.make("checkpoint", stored_ms.to_bytes(8, "big").ljust(CHECKPOINT_SIZE))
        self.disk.make_dirs(LOG)
        self.disk.make_dirs(os.path.join(ROOT, "consumequeue"))

    def lost(self) -> None:
        """A store whose log is gone, of which two messages were."""
        store = opened(self.disk)
        put(store, store.queue("T", 0), b"a", b"b")
        store.close()
        self.remove(LOG)

    def remove(self, folder: str) -> None:
        """Remove the files of a directory."""
        for name in self.disk.list(folder):
            self.disk.remove(os.path.join(folder, name))

    def check(self) -> tuple[Check, list[Fault]]:
        """Verify all."""
        faults: list[Fault] = []
        reader = StoreReader(self.disk, ROOT, even_lost=True)
        check = Check(reader, (100, 1000), faults.append, lambda done: None)
        self.assertEqual(check.expected_bytes(), 0)
        check.run()
        self.assertEqual((check.faults, check.log.records), (len(faults), 0))
        reader.close()
        return check, faults

    def repair(self, setting: int = SEGMENT, dry: bool = False) -> tuple[int, int, str]:
        """Repair it: faults, those left, and the directory of copies.

        @param setting: the setting mappedFileSizeCommitLog; 0: not given.
        """
        given = options(mapped_file_size_commit_log=setting)
        repair = repair_of(self.disk, self.steps.append, given=given)
        repair.run(dry)
        return repair.faults, repair.left, repair.copies

    def refused(self) -> str:
        """Why a reader, and a repair, do not take it."""
        why = str(self.assertRaises(StoreError, StoreReader, self.disk, ROOT))
        claim = ExclusiveLock(self.disk, GivenUsers(), ROOT, None)
        self.assertEqual(str(self.assertRaises(StoreError, claim.take, False)), why)
        return why

    def test_noStore(self) -> None:
        """What is nowhere, empty, or lacks the checkpoint or the log's directory, is no
        store, and is left as it is."""
        self.assertEqual(self.refused(), NOWHERE)
        self.disk.make_dirs(ROOT)
        self.assertEqual(self.refused(), NOWHERE)
        self.assertEqual(self.disk.list(ROOT), [])
        self.make("checkpoint", bytes(CHECKPOINT_SIZE))
        self.assertEqual(self.refused(), NOWHERE)
        self.disk.remove(os.path.join(ROOT, "checkpoint"))
        self.disk.make_dirs(LOG)
        self.make("lock")
        self.assertEqual(self.refused(), NOWHERE)
        error = self.assertRaises(StoreError, StoreReader, self.disk, LOG)
        self.assertIn(f"There is no store in {LOG}", str(error))

    def test_unused(self) -> None:
        """A store to which no message has come is read, verified and repaired: there is
        nothing in it, nothing is wrong, and nothing is changed."""
        self.unused()
        for name in ("lock", "abort"):
            self.make(name, b"lock")
            before = {name: self.disk.list(ROOT) for name in self.disk.list(ROOT)}
            reader = StoreReader(self.disk, ROOT)
            self.assertEqual((reader.topics(), reader.log_end()), ([], 0))
            self.assertEqual((reader.max_offset("T", 0), reader.lowest), (0, 0))
            self.assertEqual((reader.loss, reader.segments), ("", []))
            reader.close()
            check, faults = self.check()
            self.assertEqual((faults, check.remarks), ([], []))
            for setting in (0, SEGMENT):
                for dry in (True, False):
                    self.assertEqual(self.repair(setting, dry), (0, 0, ""))
            self.assertEqual(self.steps, [])
            after = {name: self.disk.list(ROOT) for name in self.disk.list(ROOT)}
            self.assertEqual(after, before)

    def test_elsewhere(self) -> None:
        """The log's directory may be another one, if it is given, or one of several."""
        self.unused()
        self.disk.make_dirs("/log")
        for given, first in (("/log", "/log"), ("/none,/log", "/none")):
            reader = StoreReader(self.disk, ROOT, given)
            self.assertEqual((reader.segments, reader.log.folder), ([], first))
            reader.close()
        error = self.assertRaises(StoreError, StoreReader, self.disk, ROOT, "/none,/no")
        self.assertIn("no file of a log in /none or /no", str(error))

    def test_lost(self) -> None:
        """Where queues have files and the log has none, it is lost: nothing is read or
        repaired, and verify says it once, after a crash too."""
        self.lost()
        for _ in range(2):
            why = self.refused()
            self.assertIn(
                "The log is lost, or elsewhere (--commit-log): /store/commi", why
            )
            self.assertIn("as T/0 has;", why)
            (fault,) = self.check()[1]
            self.assertEqual((fault.kind, fault.where, fault.text), ("file", LOG, why))
            self.make("abort")
        self.disk.remove(os.path.join(ROOT, "checkpoint"))
        self.assertEqual(self.refused(), why)

    def test_lostBatches(self) -> None:
        """So it is where only batch queues have files."""
        store = with_batches(self.disk)
        put_batches(store, store.queue("B", 1), [b"a", b"b"])
        store.close()
        self.remove(LOG)
        self.assertIn("as B/1 has;", self.refused())

    def test_began(self) -> None:
        """If the first file came while a running broker's queues were looked at,
        nothing is lost."""
        self.lost()
        path = os.path.join(LOG, segment_name(0))
        folder = os.path.join(ROOT, "consumequeue")
        reader = StoreReader(ArrivingDisk(self.disk, folder, path, SEGMENT), ROOT)
        self.assertEqual((reader.loss, len(reader.segments)), ("", 1))
        self.disk.remove(path)
        disk = ArrivingDisk(self.disk, folder, path, SEGMENT)
        claim = ExclusiveLock(disk, GivenUsers(), ROOT, None)
        claim.take(True)
        claim.release()

    def test_ends(self) -> None:
        """Where the queues are gone as well, what our last stop has written down tells
        it, and a repair can do nothing about it."""
        self.lost()
        self.remove(os.path.join(ROOT, "consumequeue", "T", "0"))
        (fault,) = self.check()[1]
        self.assertIn("when the store was stopped it ended at", fault.text)
        self.assertEqual(self.repair(), (1, 1, ""))
        self.assertEqual([each.kind for each in self.steps], ["unrepaired"])

    def test_checkpoint(self) -> None:
        """Where only the checkpoint tells of messages they may have been removed on
        purpose, as RocketMQ's broker takes it: that is a remark. What an index has does
        not lead anywhere then."""
        self.unused(1_700_000_000_000)
        self.make("index/20260101000000000", bytes(100))
        check, faults = self.check()
        self.assertEqual(faults, [])
        (remark,) = check.remarks
        self.assertEqual(remark.where, LOG)
        self.assertIn("had messages until 1700000000000", remark.text)
        self.assertEqual(self.repair(), (0, 0, ""))

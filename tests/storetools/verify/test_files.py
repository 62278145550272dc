"""Files that are missing, or of another length."""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.log import Verification
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import forget_ends, lose_folder
from tests.store.repairs import verified
from tests.store.stores import QUEUE_ENTRIES, ROOT, SEGMENT, opened, put

FILE_BYTES = QUEUE_ENTRIES * SIZE
COUNT = 250


def log(number: int) -> str:
    """The path of one file of the log."""
    return os.path.join(ROOT, "commitlog", segment_name(number * SEGMENT))


def queue(number: int, queue_id: int = 0) -> str:
    """The path of one file of a queue."""
    name = segment_name(number * FILE_BYTES)
    return os.path.join(ROOT, "consumequeue", "T", str(queue_id), name)


class FileVerificationTests(SynchronousTestCase):
    """A store of two queues of three files each, over three files of the log, stopped
    cleanly."""

    def setUp(self) -> None:
        """Fill it."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        for number in range(COUNT):
            put(self.store, self.store.queue("T", 0), b"%03d" % number * 100)
            put(self.store, self.store.queue("T", 1), b"y")
        self.end = self.store.published_position
        self.store.close()
        self.assertEqual(len(self.disk.list(os.path.dirname(log(0)))), 3)

    def cut(self, path: str, length: int) -> None:
        """Give a file another length."""
        file = self.disk.open(path)
        file.truncate(length)
        file.close()

    def crash(self) -> None:
        """Let it look as if it had crashed."""
        self.disk.open(os.path.join(ROOT, "abort"), create=True).close()

    def walk(self, size: int = 0) -> tuple[Verification, list[Fault]]:
        """Verify it."""
        return verified(self.disk, size)

    def kinds(self, faults: list[Fault]) -> dict[str, int]:
        """How many faults there are of each kind."""
        kinds = [fault.kind for fault in faults]
        return {kind: kinds.count(kind) for kind in kinds}

    def test_good(self) -> None:
        """Nothing is reported of a good store, with its settings or without."""
        for size in (0, SEGMENT):
            self.assertEqual(self.walk(size)[1], [])

    def test_settings(self) -> None:
        """Settings that its files do not fit are reported, and all is read."""
        walk, (fault,) = self.walk(2 * SEGMENT)
        self.assertEqual(walk.records, 2 * COUNT)
        self.assertEqual((fault.kind, fault.where), ("file", os.path.dirname(log(0))))
        self.assertIn(f"{SEGMENT} bytes each", fault.text)
        self.assertIn("mappedFileSizeCommitLog, a broker takes only", fault.text)
        self.assertIn(f"of {2 * SEGMENT}", fault.text)

    def test_otherLength(self) -> None:
        """Whichever file of the log is a little too long or too short, it is
        reported, and everything is read."""
        for number in range(3):
            for more in (-2, 1, SEGMENT):
                self.cut(log(number), SEGMENT + more)
                walk, faults = self.walk()
                self.cut(log(number), SEGMENT)
                if number == 2 or more > 0:
                    self.assertEqual(walk.records, 2 * COUNT)
                fault = faults[0]
                self.assertEqual((fault.kind, fault.where), ("file", log(number)))
                position = number * SEGMENT + min(SEGMENT, SEGMENT + more)
                self.assertEqual(fault.position, position)

    def test_halfAFile(self) -> None:
        """Of a file that ends in the middle all before and behind is read, and each
        message is reported that is lost."""
        self.cut(log(1), SEGMENT // 2)
        walk, faults = self.walk()
        lost = 2 * COUNT - walk.records
        self.assertTrue(0 < lost < 200)
        kinds = self.kinds(faults)
        self.assertEqual((kinds["file"], kinds["entry"]), (1, lost))
        self.assertEqual(kinds["record"], 1)

    def test_lastShort(self) -> None:
        """A last file that is too short is no fault after a crash; what it had to hold
        is none either."""
        self.cut(log(2), 1000)
        kinds = self.kinds(self.walk()[1])
        self.assertEqual(kinds["file"], 1)
        self.assertGreater(kinds["entry"], 0)
        self.crash()
        self.assertEqual(self.walk()[1], [])

    def test_lastMissing(self) -> None:
        """A last file that is missing is reported: by the entries that lead into it,
        and by what was written down when the store was stopped."""
        last = log(2)
        self.disk.remove(last)
        walk, faults = self.walk()
        self.assertEqual((faults[0].kind, faults[0].where), ("file", last))
        self.assertEqual(faults[0].position, 2 * SEGMENT)
        kinds = self.kinds(faults)
        self.assertEqual(kinds, {"file": 1, "entry": 2 * COUNT - walk.records})
        self.disk.remove(os.path.join(ROOT, "rocketbroker.ends"))
        _, faults = self.walk()
        self.assertEqual((faults[0].kind, faults[0].where), ("file", last))
        self.assertEqual(self.kinds(faults), kinds)

    def test_middleMissing(self) -> None:
        """A file that is missing in the middle is reported, and what is before and
        behind it is read."""
        self.disk.remove(log(1))
        walk, faults = self.walk()
        self.assertEqual((faults[0].where, faults[0].position), (log(1), SEGMENT))
        kinds = self.kinds(faults)
        self.assertEqual(kinds, {"file": 1, "order": 2, "entry": 500 - walk.records})
        reader = StoreReader(self.disk, ROOT)
        self.assertEqual(reader.min_offset("T", 0), 0)
        reader.close()

    def test_firstMissing(self) -> None:
        """That the first file is missing is known from the clean stop, and from queues
        that lead into it. A log that was appended to since has been used by another
        broker, which may have cleaned it."""
        self.disk.remove(log(0))
        walk, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.where, fault.position), ("file", log(0), 0))
        self.assertEqual(walk.remarks, [])
        content = {"first": 0, "published": self.end - 1, "queues": []}
        file = self.disk.open(os.path.join(ROOT, "rocketbroker.ends"))
        file.truncate(0)
        file.pwrite(json.dumps(content).encode(), 0)
        file.close()
        self.assertEqual(self.walk()[1], [])

    def test_cleaned(self) -> None:
        """A broker of RocketMQ's that removes files by age removes those of the queues,
        too, and changes nothing of what the clean stop has written down: that is a
        remark. So it is where no queue has a whole file that leads there."""
        for path in (log(0), queue(0, 0), queue(0, 1)):
            self.disk.remove(path)
        walk, faults = self.walk()
        self.assertEqual(faults, [])
        (remark,) = walk.remarks
        self.assertEqual((remark.where, remark.position), (log(0), 0))
        self.assertIn(f"now its files begin at {SEGMENT}", remark.text)

    def test_onlyFile(self) -> None:
        """Of a single file the settings tell the size. An empty one is a log that has
        lost everything."""
        for number in (1, 2):
            self.disk.remove(log(number))
        self.cut(log(0), 60_000)
        found = [each.where for each in self.walk(SEGMENT)[1] if each.kind == "file"]
        self.assertEqual(found, [log(0), log(1)])
        self.cut(log(0), 0)
        walk, faults = self.walk()
        self.assertEqual(self.kinds(faults), {"file": 1, "entry": 2 * COUNT})
        self.assertEqual(walk.records, 0)

    def test_foreign(self) -> None:
        """A file whose name fits none is reported and not read."""
        path = os.path.join(ROOT, "commitlog", segment_name(SEGMENT + 10))
        self.disk.open(path, create=True).close()
        _, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.where), ("file", path))

    def test_queueLength(self) -> None:
        """A queue's file of another length is reported; after a crash it is not."""
        for length in (FILE_BYTES + 1, 2 * FILE_BYTES, FILE_BYTES - 30):
            self.cut(queue(0, 1), length)
            _, faults = self.walk()
            fault = faults[0]
            self.assertEqual((fault.kind, fault.where), ("file", queue(0, 1)))
            self.assertEqual(fault.queue, ("T", 1))
            self.assertEqual(fault.position, min(length, FILE_BYTES))
            self.assertEqual(len(faults) > 1, length < FILE_BYTES)
        self.crash()
        self.assertNotIn("file", self.kinds(self.walk()[1]))

    def test_queueFileMissing(self) -> None:
        """A queue's file that is missing between others is one fault; a missing first
        one is known by the records that have no entry."""
        self.disk.remove(queue(1))
        _, faults = self.walk()
        self.assertEqual((faults[0].kind, faults[0].where), ("file", queue(1)))
        self.assertEqual(faults[0].position, FILE_BYTES)
        self.assertEqual(self.kinds(faults), {"file": 1})
        self.disk.remove(queue(0))
        self.assertEqual(self.kinds(self.walk()[1]), {"missing": 200})

    def test_directoryMissing(self) -> None:
        """A queue that has lost its directory is reported if it had messages when
        the store was stopped; else its topic was deleted."""
        lose_folder(self.disk, os.path.dirname(queue(0, 1)))
        walk, (fault,) = self.walk()
        self.assertEqual(walk.queues.orphans, COUNT)
        self.assertEqual((fault.kind, fault.queue), ("missing", ("T", 1)))
        self.assertIn("250 records of it, from offset 0 on", fault.text)
        forget_ends(self.disk)
        walk, faults = self.walk()
        self.assertEqual((walk.queues.orphans, faults), (COUNT, []))

    def test_holeInDeleted(self) -> None:
        """Of a topic that was deleted nobody misses the records that are lost."""
        folder = os.path.join(ROOT, "consumequeue", "T", "1")
        path = os.path.join(folder, segment_name(0))
        entry = self.disk.read(path)[20 * SIZE : 21 * SIZE]
        log = self.disk.open(os.path.join(ROOT, "commitlog", segment_name(0)))
        log.pwrite(b"\x01" * 60, int.from_bytes(entry[:8], "big"))
        kinds = [fault.kind for fault in self.walk()[1]]
        self.assertEqual(kinds, ["record", "order", "entry"])
        forget_ends(self.disk)
        lose_folder(self.disk, folder)
        self.assertEqual([fault.kind for fault in self.walk()[1]], ["record"])

    def test_madeAgain(self) -> None:
        """A queue that was deleted with its topic is not missed."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        for number in range(2):
            put(store, store.queue("T", number), b"old")
        store.delete_topic("T")
        put(store, store.queue("T", 0), b"new")
        store.close()
        self.assertEqual(self.walk()[1], [])

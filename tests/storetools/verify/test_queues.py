"""The queues of a store against its log: delayed messages, batches, LMQs,
extensions."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.store.message_store import Store
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import forget_ends, lose_folder
from tests.store.lmq import spread
from tests.store.repairs import repair_of, verified
from tests.store.stores import (
    BATCH_UNITS,
    ROOT,
    START_MS,
    Wall,
    batch,
    bodies,
    draft,
    make,
    options,
    with_batches,
)

LOG = os.path.join(ROOT, "commitlog", segment_name(0))
BATCHES = os.path.join(ROOT, "batchconsumequeue", "B", "0")
EXTENSION = os.path.join(ROOT, "consumequeue_ext", "T", "0", segment_name(0))
QUEUE = os.path.join(ROOT, "consumequeue", "T", "0", segment_name(0))
DELAYED = os.path.join(ROOT, "consumequeue", "SCHEDULE_TOPIC_XXXX", "2")
LIGHT = os.path.join(ROOT, "consumequeue", "%LMQ%a", "0", segment_name(0))


class QueueCase(SynchronousTestCase):
    """A store of one kind of messages, stopped cleanly."""

    #: How many records there are.
    records = 0

    #: What is set.
    settings: dict[str, object] = {}

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Fill it, and see that it is good."""
        self.disk = MemoryDisk()
        self.store = self.open()
        self.put(*self.drafts())
        self.close()
        self.assertEqual(self.faults(), [])

    def open(self) -> Store:
        """The store that is on the disk."""
        return with_batches(self.disk, Wall(), **self.settings)

    def put(self, *drafts: Draft) -> None:
        """Append messages."""
        for each in drafts:
            self.store.append([each])
            self.assertEqual(each.status, PUT_OK)
        self.records += len(drafts)

    def close(self) -> None:
        """Stop cleanly."""
        while self.store.dispatch(100):
            pass
        self.store.close()

    def drafts(self) -> list[Draft]:
        """What is to be in the store."""
        return []

    def faults(self) -> list[Fault]:
        """What is wrong now."""
        walk, faults = verified(self.disk)
        self.assertEqual(walk.records, self.records)
        self.assertEqual(walk.faults, len(faults))
        return faults

    def flip(self, path: str, position: int, bit: int) -> None:
        """Change one bit of a file."""
        file = self.disk.open(path)
        file.pwrite(bytes([file.pread(1, position)[0] ^ (1 << bit)]), position)
        file.close()

    def expect(self, kind: str, path: str, position: int, at: int, bit: int) -> Fault:
        """One flipped bit is one fault, with its file and position."""
        self.flip(path, at, bit)
        faults = self.faults()
        self.flip(path, at, bit)
        messages = [(each.kind, each.where, each.position) for each in faults]
        self.assertEqual(messages, [(kind, path, position)], (at, bit))
        return faults[0]

    def repair(self) -> None:
        """All that is wrong is made good."""
        messages: list[str] = []
        given = options(**self.settings)
        report = messages.append
        repair = repair_of(self.disk, lambda done: report(done.text), given=given)
        repair.run(False)
        self.assertEqual(repair.left, 0, messages)
        self.assertGreater(repair.faults, 0)
        self.assertEqual(self.faults(), [])


class BatchTests(QueueCase):
    """Batches, over several files of their queue."""

    def drafts(self) -> list[Draft]:
        """Batches of one, two and three messages."""
        queue = self.store.queue("B", 0)
        self.count = 2 * BATCH_UNITS + 3
        return [
            batch(queue, *[b"%d" % number] * (number % 3 + 1))
            for number in range(self.count)
        ]

    def test_everyBit(self) -> None:
        """Each flipped bit of a unit is found, also in the last one."""
        size = BATCH_UNITS * BATCH_SIZE
        for unit in (4, BATCH_UNITS, self.count - 1):
            position = unit * BATCH_SIZE
            path = os.path.join(BATCHES, segment_name(position // size * size))
            for at in range(BATCH_SIZE):
                self.flip(path, position % size + at, at % 8)
                faults = self.faults()
                self.flip(path, position % size + at, at % 8)
                if at < 8 and len(faults) == 2:
                    # It says another batch; and this one has none.
                    self.assertEqual(faults.pop(0).kind, "missing")
                (fault,) = faults
                self.assertEqual(
                    (fault.kind, fault.where, fault.position), ("entry", path, position)
                )
                self.assertEqual(fault.queue, ("B", 0))
        self.assertEqual(self.faults(), [])

    def test_words(self) -> None:
        """What is wrong is reported: both numbers, or that there is no such batch."""
        path = os.path.join(BATCHES, segment_name(0))
        at = 4 * BATCH_SIZE
        fault = self.expect("entry", path, at, at + 37, 1)
        self.assertIn("it says messages 0, not 2", fault.text)
        fault = self.expect("entry", path, at, at + 45, 1)
        self.assertIn("it says something that is reserved", fault.text)
        file = self.disk.open(path)
        file.pwrite(bytes(BATCH_SIZE), at)
        file.close()
        missing, entry = self.faults()
        self.assertEqual((missing.kind, entry.kind), ("missing", "entry"))
        self.assertIn("no batch of the queue begins there", entry.text)
        self.repair()

    def test_missing(self) -> None:
        """Batches without units are a fault after a clean stop, else a number."""
        path = os.path.join(BATCHES, segment_name(2 * BATCH_UNITS * BATCH_SIZE))
        self.disk.remove(path)
        faults = self.faults()
        self.assertEqual([each.kind for each in faults], ["missing"] * 3)
        abort = os.path.join(ROOT, "abort")
        self.disk.open(abort, create=True).close()
        walk, _ = verified(self.disk)
        self.assertEqual((walk.faults, walk.queues.unlisted), (0, 3))
        self.disk.remove(abort)
        self.repair()

    def test_surplus(self) -> None:
        """A unit behind the last batch is a fault, but not after a crash."""
        path = os.path.join(BATCHES, segment_name(2 * BATCH_UNITS * BATCH_SIZE))
        file = self.disk.open(path)
        file.pwrite(b"\0\0\1" * 15, 3 * BATCH_SIZE)
        file.close()
        (fault,) = self.faults()
        self.assertEqual(fault.position, self.count * BATCH_SIZE)
        self.repair()

    def test_gone(self) -> None:
        """Batches of a topic that was deleted are counted."""
        forget_ends(self.disk)
        lose_folder(self.disk, BATCHES)
        self.assertEqual(self.faults(), [])

    def test_madeAgain(self) -> None:
        """Nor are they a fault when the topic was made again."""
        self.store = self.open()
        self.store.delete_topic("B")
        self.put(batch(self.store.queue("B", 0), b"new"))
        self.close()
        self.assertEqual(self.faults(), [])

    def test_live(self) -> None:
        """Beside a running broker all that is published is checked."""
        self.store = self.open()
        self.put(batch(self.store.queue("B", 0), b"new"))
        while self.store.dispatch(100):
            pass
        self.assertEqual(self.faults(), [])
        self.put(batch(self.store.queue("B", 0), b"not entered yet"))
        self.assertEqual(self.faults(), [])
        self.store.close()


class SinglesTests(QueueCase):
    """Messages of a topic of batches that are none, as RocketMQ stores them."""

    def drafts(self) -> list[Draft]:
        """Three, in the queue of an ordinary topic."""
        queue = self.store.queue("T", 0)
        return [draft(queue, b"%d" % number, "A") for number in range(3)]

    def open(self) -> Store:
        """From the second time on the topic is one of batches."""
        store = make(self.disk, Wall())
        if self.records:
            store.know_topics("T".__eq__)
        store.open()
        return store

    def test_units(self) -> None:
        """They get units of one message, are read, and are no fault."""
        lose_folder(self.disk, os.path.dirname(QUEUE))
        self.disk.open(os.path.join(ROOT, "abort"), create=True).close()
        self.store = self.open()
        queue = self.store.queue("T", 0)
        self.assertEqual((queue.min_offset, queue.max_offset), (0, 3))
        self.assertEqual(bodies(self.store, queue), [b"0", b"1", b"2"])
        self.store.close()
        self.assertEqual(self.faults(), [])
        path = os.path.join(ROOT, "batchconsumequeue", "T", "0", segment_name(0))
        self.expect("entry", path, BATCH_SIZE, BATCH_SIZE + 35, 3)


class ExtensionTests(QueueCase):
    """Messages whose tag codes stand in the extension."""

    settings = {"enable_consume_queue_ext": True}

    def drafts(self) -> list[Draft]:
        """Messages with and without tags."""
        queue = self.store.queue("T", 0)
        return [draft(queue, b"x", tags) for tags in ("A", "", "B") * 4]

    def test_unit(self) -> None:
        """Each flipped bit of a unit is found."""
        for at in range(20):
            fault = self.expect("extension", EXTENSION, 40, 40 + at, at % 8)
            self.assertEqual(fault.queue, ("T", 0))
            self.assertIn("entry 2: ", fault.text)

    def test_entry(self) -> None:
        """So is one of an address, whatever stands where it leads."""
        for bit in range(8):
            self.flip(QUEUE, 4 * SIZE + 19, bit)
            (fault,) = self.faults()
            self.flip(QUEUE, 4 * SIZE + 19, bit)
            self.assertIn("entry 4: ", fault.text)
        self.expect("entry", QUEUE, 4 * SIZE, 4 * SIZE + 13, 0)

    def test_lost(self) -> None:
        """Lost units are reported, and made again."""
        self.disk.remove(EXTENSION)
        faults = self.faults()
        self.assertEqual([each.kind for each in faults], ["entry"] * 12)
        self.assertIn("the extension has no file", faults[0].text)
        self.repair()

    def test_repair(self) -> None:
        """What is wrong is made again."""
        self.flip(EXTENSION, 45, 0)
        self.repair()

    def test_switchedOff(self) -> None:
        """Entries without units stand beside those with."""
        self.settings = {"enable_consume_queue_ext": False}
        self.store = self.open()
        self.put(draft(self.store.queue("T", 0), b"x", "C"))
        self.close()
        self.assertEqual(self.faults(), [])


class ExtensionFileTests(QueueCase):
    """The same, in three files of the extension."""

    settings = {
        "enable_consume_queue_ext": True,
        "mapped_file_size_consume_queue_ext": 104,
    }

    def drafts(self) -> list[Draft]:
        """Five messages for each file, and two more."""
        queue = self.store.queue("T", 0)
        return [draft(queue, b"x", "A") for _ in range(12)]

    def path(self, number: int) -> str:
        """One file of the extension."""
        return EXTENSION.replace("0" * 20, segment_name(104 * number))

    def file_faults(self) -> list[tuple[str, int, tuple[str, int] | None]]:
        """Of what is reported of files: which, from where on, and of which queue."""
        return [
            (each.where, each.position, each.queue)
            for each in self.faults()
            if each.kind == "file"
        ]

    def test_length(self) -> None:
        """A file of another length than the others is reported, and made again."""
        for length in (40, 103, 105, 208):
            self.records = 0
            self.start_over()
            file = self.disk.open(self.path(1))
            file.truncate(length)
            file.close()
            expected = self.path(1), 104 + min(length, 104), ("T", 0)
            self.assertEqual(self.file_faults(), [expected])
            self.repair()

    def test_missing(self) -> None:
        """So is one that is missing between others."""
        self.disk.remove(self.path(1))
        self.assertEqual(self.file_faults(), [(self.path(1), 104, ("T", 0))])
        self.repair()


class DelayedTests(QueueCase):
    """Messages that wait for their time."""

    def drafts(self) -> list[Draft]:
        """Some of level 3."""
        queue = self.store.queue("SCHEDULE_TOPIC_XXXX", 2)
        return [draft(queue, properties=b"DELAY\x013\x02") for _ in range(5)]

    def test_noLevel(self) -> None:
        """A record whose level is no number ends the log for RocketMQ: it is
        reported, and a message without a body takes its place."""
        at = self.disk.read(LOG).index(b"DELAY\x013") + 6
        fault = self.expect("body", LOG, 88, at, 6)
        self.assertIn("has to be a number", fault.text)
        self.flip(LOG, at, 6)
        self.repair()
        self.assertEqual(self.disk.read(LOG).find(b"DELAY\x01", at - 6, at), -1)

    def test_time(self) -> None:
        """A time of delivery before the store time is wrong."""
        path = os.path.join(DELAYED, segment_name(0))
        fault = self.expect("entry", path, SIZE, SIZE + 14, 0)
        self.assertIn(f"and was stored at {START_MS}", fault.text)
        self.expect("entry", path, SIZE, SIZE + 7, 0)


class LmqTests(QueueCase):
    """Messages that stand in an LMQ, too."""

    settings = {"enable_lmq": True, "enable_multi_dispatch": True}

    def drafts(self) -> list[Draft]:
        """Some in both, some only in their own."""
        queue, light = self.store.queue("T", 0), self.store.queue("%LMQ%a", 0)
        made = []
        for number in range(6):
            made += [spread(queue, b"%d" % number, light), draft(queue, b"xyz")]
        return made

    def test_entry(self) -> None:
        """An entry has to lead to a record that says that it stands there."""
        for at in (7, 11, 19):
            self.expect("entry", LIGHT, 2 * SIZE, 2 * SIZE + at, 1)
        data = self.disk.read(LIGHT)
        file = self.disk.open(LIGHT)
        file.pwrite(data[3 * SIZE : 4 * SIZE], 2 * SIZE)
        file.close()
        (fault,) = self.faults()
        self.assertIn("does not say that it stands here", fault.text)
        self.repair()

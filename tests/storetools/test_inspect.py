"""What a store's directory holds."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.verify.log import Verification
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.cleanings import NOW, CleaningCase
from tests.store.stores import (
    BATCH_UNITS,
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
    opened,
    put,
    put_batches,
    with_batches,
)


class InspectionTests(SynchronousTestCase):
    """Two queues of one topic, in use and then stopped."""

    def setUp(self) -> None:
        """Fill it."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = opened(self.disk, self.wall)
        put(self.store, self.store.queue("T", 0), b"a", b"bb")
        self.wall.now_ms += 5
        put(self.store, self.store.queue("T", 1), b"ccc")

    def reader(self) -> StoreReader:
        """Open it for reading."""
        reader = StoreReader(self.disk, ROOT)
        self.addCleanup(reader.close)
        return reader

    def test_state(self) -> None:
        """Whether it is in use, by whom, and how far it is written."""
        row = inspect.state(self.reader())
        self.assertTrue(row["abort"])
        self.assertTrue(str(row["owner"]).isdigit())
        self.assertEqual(row["log_end"], self.store.published_position)
        self.store.close()
        row = inspect.state(self.reader())
        self.assertEqual((row["stopped"], row["abort"]), ("cleanly", False))
        self.assertEqual(row["log_flushed_ms"], START_MS + 5)

    def test_segments(self) -> None:
        """The files of the log with their sizes."""
        (row,) = inspect.segments(self.reader())
        self.assertEqual((row["segment"], row["bytes"]), ("0" * 20, SEGMENT))

    def test_queues(self) -> None:
        """Each queue with offsets and the bytes of its records."""
        self.store.close()
        passed: list[int] = []
        rows = list(inspect.queues(self.reader(), passed.append))
        self.assertEqual(passed, [2, 1])
        self.assertEqual(inspect.count(self.reader(), ["T"]), 3)
        self.assertEqual([row["messages"] for row in rows], [2, 1])
        overhead = 91 + 1 + 42
        self.assertEqual(
            [row["bytes"] for row in rows], [2 * overhead + 3, overhead + 3]
        )

    def test_topic(self) -> None:
        """Sizes and times of a topic."""
        self.store.close()
        row = inspect.topic_figures(self.reader(), "T", lambda more: None)
        self.assertEqual((row["messages"], row["queues"]), (3, 2))
        self.assertEqual(row["first_stored_ms"], START_MS)
        self.assertEqual(row["last_stored_ms"], START_MS + 5)

    def test_messages(self) -> None:
        """A range of messages; one that is damaged is an error in its place."""
        self.store.close()
        found = list(inspect.messages(self.reader(), "T", 0, 0, None))
        self.assertEqual([getattr(each, "body", None) for each in found], [b"a", b"bb"])
        (one,) = inspect.messages(self.reader(), "T", 0, 1, 9)
        self.assertEqual(getattr(one, "queue_offset", None), 1)
        path = f"{ROOT}/commitlog/{0:020d}"
        file = self.disk.open(path)
        file.pwrite(b"z", 88)
        file.close()
        damaged, good = inspect.messages(self.reader(), "T", 0, 0, None)
        self.assertIsInstance(damaged, StoreError)
        self.assertEqual(getattr(good, "body", None), b"bb")


class BatchTests(SynchronousTestCase):
    """Batches of two and three messages, and an ordinary topic beside them."""

    def setUp(self) -> None:
        """Fill it."""
        self.disk = MemoryDisk()
        self.store = with_batches(self.disk)
        put(self.store, self.store.queue("T", 0), b"alone")
        queue = self.store.queue("B", 1)
        self.drafts = put_batches(self.store, queue, [b"a", b"b"], [b"c", b"d", b"e"])

    def reader(self) -> StoreReader:
        """Open it for reading."""
        reader = StoreReader(self.disk, ROOT)
        self.addCleanup(reader.close)
        return reader

    def seen(self, first: int = 0, until: int | None = None) -> list[object]:
        """Offsets and bodies; what cannot be read as it is reported."""
        return [
            (each.queue_offset, each.body)
            if isinstance(each, StoredMessage)
            else str(each)
            for each in inspect.messages(self.reader(), "B", 1, first, until)
        ]

    def test_figures(self) -> None:
        """They are counted message by message; sizes are those of batches."""
        for _ in range(2):
            reader = self.reader()
            self.assertEqual(inspect.topics(reader), ["B", "T"])
            self.assertEqual(inspect.count(reader, ["B"]), 5)
            passed: list[int] = []
            first, _ = inspect.queues(reader, passed.append)
            self.assertEqual(passed, [2, 3, 1])
            figures = inspect.topic_figures(reader, "B", lambda more: None)
            self.assertEqual((figures["messages"], figures["queues"]), (5, 1))
            self.assertEqual(figures["bytes"], first["bytes"])
            self.assertEqual(figures["first_stored_ms"], START_MS)
            self.assertEqual((first["queue"], first["first"], first["end"]), (1, 0, 5))
            self.store.close()

    def test_messages(self) -> None:
        """Batches are taken apart."""
        bodies = list(enumerate((b"a", b"b", b"c", b"d", b"e")))
        self.assertEqual(self.seen(), bodies)
        self.assertEqual(self.seen(1, 4), bodies[1:4])
        self.store.close()
        self.assertEqual(self.seen(3), bodies[3:])

    def test_damaged(self) -> None:
        """One that cannot be read is reported with all its messages."""
        self.store.close()
        file = self.disk.open(f"{ROOT}/commitlog/{0:020d}")
        file.pwrite(b"z", self.drafts[1].position + 90)
        file.close()
        *good, bad = self.seen()
        self.assertEqual(good, [(0, b"a"), (1, b"b")])
        self.assertIn("Messages 2 to 4 of B/1, at position", str(bad))

    def test_names(self) -> None:
        """What is no name of a topic has no queues."""
        for name in ("", "..", "../x", "unknown"):
            self.assertEqual(inspect.queue_ids(self.reader(), name), [])


class CleanedTests(CleaningCase):
    """A broker removes what it holds while somebody looks at it."""

    def setUp(self) -> None:
        """Twenty segments, four files of the queue; all may go but the last."""
        super().setUp()
        self.begin(
            40,
            delete_when=NOW,
            file_reserved_time=0,
            mapped_file_size_consume_queue=200,
            delete_file_batch_max=100,
        )
        self.reader = StoreReader(self.disk, ROOT)
        self.addCleanup(self.reader.close)

    def clean(self) -> None:
        """Let it be removed."""
        self.round()
        self.assertLess(len(self.segments()), 4)
        self.assertLess(len(self.disk.list(f"{ROOT}/consumequeue/T/0")), 4)

    def test_messages(self) -> None:
        """What is gone is no error; what is still there is shown."""
        self.assertEqual(inspect.count(self.reader, ["T"]), 40)
        self.clean()
        rest = list(inspect.messages(self.reader, "T", 0, 0, None))
        offsets = [each.queue_offset for each in rest if type(each) is StoredMessage]
        self.assertEqual(len(rest), len(offsets))
        self.assertGreater(offsets[0], 9)
        self.assertEqual(offsets, list(range(offsets[0], 40)))

    def test_figures(self) -> None:
        """Nor is it for figures."""
        self.assertEqual(inspect.count(self.reader, ["T"]), 40)
        self.clean()
        row = inspect.topic_figures(self.reader, "T", lambda more: None)
        (queue,) = inspect.queues(self.reader, lambda more: None)
        self.assertEqual(queue["end"], 40)
        self.assertEqual(row["messages"], queue["messages"])

    def test_verified(self) -> None:
        """Nor is it a fault."""
        for when in (0, 1, 7):
            faults: list[Fault] = []
            walked: list[int] = []

            def progress(done: int, walked: list[int] = walked, w: int = when) -> None:
                walked.append(done)
                if len(walked) == w:
                    self.clean()

            reader = StoreReader(self.disk, ROOT)
            walk = Verification(reader, faults.append, progress)
            walk.expected_bytes()
            if not when:
                self.clean()
            walk.run()
            reader.close()
            self.assertEqual([each.text for each in faults], [])
            self.put(30)

    def test_deleted(self) -> None:
        """Nor when the whole topic goes."""
        self.assertEqual(inspect.count(self.reader, ["T"]), 40)
        faults: list[Fault] = []
        walk = Verification(self.reader, faults.append, lambda done: None)
        walk.expected_bytes()
        self.store.delete_topic("T")
        self.assertEqual(list(inspect.messages(self.reader, "T", 0, 0, None)), [])
        walk.run()
        self.assertEqual(faults, [])


class GapTests(SynchronousTestCase):
    """Files that are missing between others: of the log, and of queues."""

    def setUp(self) -> None:
        """Fill five files of a queue, four of the log, and three of a batch queue."""
        self.disk = MemoryDisk()
        self.store = with_batches(self.disk)
        for number in range(5 * QUEUE_ENTRIES):
            put(self.store, self.store.queue("T", 0), b"%03d" % number * 90)
        several = [[b"%02d" % number] * 2 for number in range(3 * BATCH_UNITS)]
        put_batches(self.store, self.store.queue("B", 0), *several)
        self.store.close()

    def remove(self, kind: str, number: int, size: int) -> None:
        """Lose one file."""
        self.disk.remove(os.path.join(ROOT, kind, segment_name(number * size)))

    def read(
        self, topic: str = "T", first: int = 0, until: int | None = None
    ) -> tuple[list[int], list[str]]:
        """The offsets of a queue that can be read, and what is reported of others."""
        reader = StoreReader(self.disk, ROOT)
        self.addCleanup(reader.close)
        offsets = []
        messages = []
        for each in inspect.messages(reader, topic, 0, first, until):
            if isinstance(each, StoreError):
                messages.append(str(each))
            else:
                offsets.append(each.queue_offset)
        return offsets, messages

    def rows(self) -> tuple[list[tuple[object, ...]], list[str]]:
        """What is reported of the queues, and the gaps."""
        reader = StoreReader(self.disk, ROOT)
        self.addCleanup(reader.close)
        names = ("topic", "first", "end", "messages")
        rows = [
            tuple(row[name] for name in names)
            for row in inspect.queues(reader, lambda more: None)
        ]
        return rows, list(inspect.gaps(reader, inspect.topics(reader)))

    def test_good(self) -> None:
        """Nothing is reported where nothing is missing."""
        self.assertEqual(self.read(), (list(range(500)), []))
        self.assertEqual(self.read("B"), (list(range(60)), []))
        self.assertEqual(self.rows(), ([("B", 0, 60, 60), ("T", 0, 500, 500)], []))

    def test_unreadable(self) -> None:
        """A file of a queue with a bad block is bad as a whole: one sentence for its
        messages; those of the other files are shown."""
        size = QUEUE_ENTRIES * SIZE
        for number in (0, 2, 4):
            path = os.path.join(ROOT, "consumequeue/T/0", segment_name(number * size))
            self.disk.spoil(path, 7, 8)
        readable = [*range(100, 200), *range(300, 400)]
        offsets, messages = self.read()
        self.assertEqual(offsets, readable)
        self.assertEqual(len(messages), 3)
        self.assertIn("Messages 200 to 299 of T/0 are not found: /store", messages[1])
        self.assertIn("cannot be read: Input/output error.", messages[1])
        reader = StoreReader(self.disk, ROOT)
        self.addCleanup(reader.close)
        sizes = inspect.sizes(reader, "T", 0, lambda more: None)
        self.assertEqual(len(list(sizes)), len(readable))

    def test_queue(self) -> None:
        """What is before and behind missing files of a queue is shown, and what is not
        is reported once."""
        for number in (1, 3):
            self.remove("consumequeue/T/0", number, QUEUE_ENTRIES * SIZE)
        offsets, messages = self.read()
        there = [*range(100), *range(200, 300), *range(400, 500)]
        self.assertEqual(offsets, there)
        self.assertEqual(len(messages), 2)
        self.assertIn("Messages 100 to 199 of T/0 are not found: ", messages[0])
        self.assertIn("Messages 300 to 399 of T/0 are not found: ", messages[1])
        rows, gaps = self.rows()
        self.assertEqual(rows[1], ("T", 0, 500, 500))
        self.assertEqual(len(gaps), 2)
        self.assertIn(f"{segment_name(QUEUE_ENTRIES * SIZE)} is missing", gaps[0])
        offsets, messages = self.read(first=150, until=310)
        self.assertEqual(offsets, list(range(200, 300)))
        self.assertIn("150 to 199", messages[0])
        self.assertIn("300 to 309", messages[1])
        self.assertEqual(self.read(until=100), (list(range(100)), []))
        self.assertEqual(self.read(first=420, until=430)[1], [])

    def test_crashed(self) -> None:
        """So it is where it was not stopped cleanly."""
        self.disk.open(os.path.join(ROOT, "abort"), create=True).close()
        self.remove("consumequeue/T/0", 1, QUEUE_ENTRIES * SIZE)
        offsets, messages = self.read()
        self.assertEqual((len(offsets), len(messages)), (400, 1))

    def test_corruptBefore(self) -> None:
        """A record that is corrupt before the gap leaves those behind it what they
        are."""
        self.remove("consumequeue/T/0", 1, QUEUE_ENTRIES * SIZE)
        file = self.disk.open(os.path.join(ROOT, "commitlog", segment_name(0)))
        size = int.from_bytes(file.pread(4, 0), "big")
        file.pwrite(b"!", 5 * size + 95)
        file.close()
        offsets, messages = self.read()
        self.assertEqual((len(offsets), len(messages)), (399, 2))
        self.assertIn("Message 5 of T/0, at position", messages[0])

    def test_batches(self) -> None:
        """The same of a batch queue."""
        self.remove("batchconsumequeue/B/0", 1, BATCH_UNITS * BATCH_SIZE)
        offsets, messages = self.read("B")
        self.assertEqual(offsets, [*range(20), *range(40, 60)])
        self.assertEqual(len(messages), 1)
        self.assertIn(f"{segment_name(BATCH_UNITS * BATCH_SIZE)} is", messages[0])
        rows, gaps = self.rows()
        self.assertEqual((rows[0], gaps), (("B", 0, 60, 60), messages))

    def test_log(self) -> None:
        """Of a missing file of the log all that stood in it is reported at once, and
        by the figures which it is."""
        self.remove("commitlog", 1, SEGMENT)
        offsets, messages = self.read()
        lost = sorted({*range(500)} - {*offsets})
        self.assertEqual(lost, list(range(lost[0], lost[-1] + 1)))
        self.assertEqual(len(messages), 1)
        self.assertIn(
            f"Messages {lost[0]} to {lost[-1]} of T/0 cannot be r", messages[0]
        )
        self.assertIn(f"from position {SEGMENT} to {2 * SEGMENT}", messages[0])
        (gap,) = self.rows()[1]
        self.assertIn(f"{segment_name(SEGMENT)} is missing", gap)
        until = lost[0] + 2
        self.assertIn(f"to {until - 1} of T/0", self.read(until=until)[1][0])

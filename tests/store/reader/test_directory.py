"""A directory opened for reading only."""

from __future__ import annotations

import os
from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
    draft,
    opened,
    put,
)


def body_of(record: bytes) -> bytes:
    """The body of a record with IPv4 hosts."""
    return record[88 : 88 + int.from_bytes(record[84:88], "big")]


def reader_count(reader: StoreReader) -> int:
    """How many messages a queue of the test has."""
    return reader.max_offset("T", 0) - reader.min_offset("T", 0)


@implementer(IFiles)
class VanishingDisk:
    """A disk from which a file vanishes between being listed and being looked at."""

    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def list(self, path: str) -> list[str]:
        """See L{IFiles.list}; then the file is gone."""
        found = self._disk.list(path)
        if path == os.path.dirname(self._path) and self._disk.exists(self._path):
            self._disk.remove(self._path)
        return found

    def __getattr__(self, name: str) -> Any:
        """All else is as it is."""
        return getattr(self._disk, name)


def read_all(reader: StoreReader, topic: str, queue_id: int) -> list[bytes]:
    """All bodies of a queue."""
    at = reader.min_offset(topic, queue_id)
    end = reader.max_offset(topic, queue_id)
    found: list[bytes] = []
    while at < end:
        piece = reader.read(topic, queue_id, at, end, max_bytes=1000)
        found += map(body_of, piece.records)
        assert piece.next_offset > at
        at = piece.next_offset
    return found


class StoppedTests(SynchronousTestCase):
    """A directory that no broker uses."""

    def setUp(self) -> None:
        """Two queues, over several segments and queue files, stopped cleanly."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        store = opened(self.disk, self.wall)
        self.bodies: list[bytes] = []
        for number in range(250):
            self.wall.now_ms += 1
            self.bodies.append(b"%d" % number * 150)
            put(store, store.queue("T", 0), self.bodies[-1])
            put(store, store.queue("T", 3), b"x")
        store.close()

    def test_all(self) -> None:
        """Everything is read, over files and segments; nothing is written."""
        before = dict(self.disk.calls)
        reader = StoreReader(self.disk, ROOT)
        self.assertEqual(reader.topics(), ["T"])
        self.assertEqual(reader.queues("T"), [0, 3])
        self.assertEqual(read_all(reader, "T", 0), self.bodies)
        self.assertEqual(len(read_all(reader, "T", 3)), 250)
        self.assertEqual(
            (reader.min_offset("T", 0), reader.max_offset("T", 0)), (0, 250)
        )
        self.assertTrue(reader.is_clean)
        self.assertFalse(reader.is_live)
        reader.close()
        for call in ("open", "pwrite", "truncate", "remove", "make_dirs", "lock"):
            self.assertEqual(self.disk.calls[call], before[call])

    def test_range(self) -> None:
        """A range ends before its end; one that is not there is refused."""
        reader = StoreReader(self.disk, ROOT)
        piece = reader.read("T", 0, 98, 103)
        self.assertEqual(list(map(body_of, piece.records)), self.bodies[98:103])
        self.assertEqual(piece.next_offset, 103)
        self.assertEqual(reader.read("T", 0, 250, 250).records, [])
        for offset, until in ((0, 251), (-1, 3), (5, 4)):
            error = self.assertRaises(StoreError, reader.read, "T", 0, offset, until)
            self.assertIn("can be read from 0 to 250", str(error))

    def test_nothing(self) -> None:
        """A directory without a log, and a name that is none, are reported."""
        error = self.assertRaises(StoreError, StoreReader, self.disk, "/nowhere")
        self.assertIn("There is no store in /nowhere: no file of", str(error))
        reader = StoreReader(self.disk, ROOT)
        self.assertRaises(StoreError, reader.min_offset, "../T", 0)
        self.assertEqual(reader.max_offset("T", 7), 0)
        self.assertEqual(reader.queues("U"), [])

    def test_time(self) -> None:
        """The first message of a time is found; of a later time the end."""
        reader = StoreReader(self.disk, ROOT)
        self.assertEqual(reader.offset_by_time("T", 0, START_MS + 1), 0)
        self.assertEqual(reader.offset_by_time("T", 0, START_MS + 101), 100)
        self.assertEqual(reader.offset_by_time("T", 0, START_MS + 251), 250)

    def test_oldSegmentsGone(self) -> None:
        """What was deleted with old segments is before the first offset."""
        self.disk.remove(f"{ROOT}/commitlog/{segment_name(0)}")
        reader = StoreReader(self.disk, ROOT)
        first = reader.min_offset("T", 0)
        self.assertTrue(0 < first < 250)
        self.assertEqual(read_all(reader, "T", 0), self.bodies[first:])

    def test_removedBefore(self) -> None:
        """Files that a broker removes while a directory is opened are left out."""
        first = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        reader = StoreReader(VanishingDisk(self.disk, first), ROOT)
        self.assertEqual(reader.min_offset("T", 0), QUEUE_ENTRIES)
        disk = VanishingDisk(self.disk, f"{ROOT}/commitlog/{segment_name(0)}")
        reader = StoreReader(disk, ROOT)
        self.assertEqual(reader.segments[0].start, SEGMENT)
        self.assertEqual(read_all(reader, "T", 0), self.bodies[-reader_count(reader) :])

    def test_removedMeanwhile(self) -> None:
        """What a reader has opened it reads to the end; a file of a queue that is gone
        when it is needed is an error in one sentence."""
        reader = StoreReader(self.disk, ROOT)
        end = reader.max_offset("T", 0)
        for name in self.disk.list(f"{ROOT}/commitlog")[:-1]:
            self.disk.remove(f"{ROOT}/commitlog/{name}")
        self.assertEqual(read_all(reader, "T", 0), self.bodies)
        self.disk.remove(f"{ROOT}/consumequeue/T/0/{segment_name(QUEUE_ENTRIES * 20)}")
        piece = reader.read("T", 0, QUEUE_ENTRIES - 2, end)
        self.assertEqual(piece.next_offset, QUEUE_ENTRIES)
        error = self.assertRaises(StoreError, reader.read, "T", 0, QUEUE_ENTRIES, end)
        self.assertIn("was removed while it was read", str(error))

    def test_brokenRecord(self) -> None:
        """A record that does not fit its CRC is reported, after those before it."""
        reader = StoreReader(self.disk, ROOT)
        record = reader.read("T", 0, 10, 11).records[0]
        position = int.from_bytes(record[28:36], "big")
        file = self.disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        file.pwrite(b"?", position + 90)
        reader = StoreReader(self.disk, ROOT)
        self.assertEqual(reader.read("T", 0, 0, 20).next_offset, 10)
        error = self.assertRaises(StoreError, reader.read, "T", 0, 10, 20)
        self.assertEqual(
            str(error),
            f"Message 10 of T/0, at position {position}, cannot be read: "
            "the CRC of its body is another.",
        )

    def test_tornTail(self) -> None:
        """Entries at the end whose records are not whole are not there after a crash.
        After a clean stop each of them says that it cannot be read."""
        reader = StoreReader(self.disk, ROOT)
        record = reader.read("T", 0, 247, 248).records[0]
        position = int.from_bytes(record[28:36], "big")
        start = position - position % SEGMENT
        file = self.disk.open(f"{ROOT}/commitlog/{segment_name(start)}")
        file.truncate(position - start + 50)
        file.truncate(SEGMENT)
        self.disk.open(f"{ROOT}/abort", create=True).close()
        reader = StoreReader(self.disk, ROOT)
        self.assertEqual(reader.max_offset("T", 0), 247)
        self.assertEqual(read_all(reader, "T", 0), self.bodies[:247])
        self.disk.remove(f"{ROOT}/abort")
        reader = StoreReader(self.disk, ROOT)
        self.assertEqual(reader.max_offset("T", 0), 250)
        for offset in range(247, 250):
            self.assertRaises(StoreError, reader.read, "T", 0, offset, 250)


class LiveTests(SynchronousTestCase):
    """Beside a broker of ours."""

    def test_published(self) -> None:
        """Only what is dispatched is seen, and a new segment is found."""
        disk = MemoryDisk()
        store = opened(disk)
        queue = store.queue("T", 0)
        put(store, queue, b"one", b"two")
        store.append([draft(queue, b"three")])
        reader = StoreReader(disk, ROOT)
        self.assertTrue(reader.is_live)
        self.assertFalse(reader.is_clean)
        self.assertEqual(read_all(reader, "T", 0), [b"one", b"two"])
        reader = StoreReader(disk, ROOT)
        for _ in range(QUEUE_ENTRIES):
            put(store, queue, b"x" * 2000)
        self.assertEqual(len(read_all(reader, "T", 0)), QUEUE_ENTRIES + 3)
        reader.close()
        store.close()

    def test_lineBreak(self) -> None:
        """A topic with a line break in its name, which nobody can store, does not
        hide the queues behind it."""
        disk = MemoryDisk()
        store = opened(disk)
        for topic in ("a\nb", "\ud800"):
            self.assertFalse(store.queue(topic, 0).usable)
        put(store, store.queue("T", 0), b"one")
        reader = StoreReader(disk, ROOT)
        self.assertTrue(reader.is_live)
        self.assertEqual(read_all(reader, "T", 0), [b"one"])
        reader.close()
        store.close()

    def test_deadBroker(self) -> None:
        """The words of a broker that is gone are not believed once another marks the
        store as its own."""
        disk = MemoryDisk()
        store = opened(disk)
        put(store, store.queue("T", 0), b"one", b"two")
        file = disk.open(f"{ROOT}/abort")
        file.pwrite(b"1234567", 0)
        reader = StoreReader(disk, ROOT)
        self.assertFalse(reader.is_live)
        self.assertEqual(read_all(reader, "T", 0), [b"one", b"two"])
        store.close()

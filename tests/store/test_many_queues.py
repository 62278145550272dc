"""A store with more queues or segments than a process may have files open."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, STORE_HOST, Wall, bodies, draft, options, put

TOPICS = [f"T{number}" for number in range(20)]
BOUND = 8
#: What else is open: the log, the checkpoint, locks, shared positions, and one more.
OTHERS = 12


class ManyQueuesTests(SynchronousTestCase):
    """20 topics of two queues each, and 20 descriptors."""

    def setUp(self) -> None:
        """An empty store."""
        self.disk = MemoryDisk()
        self.disk.max_open = BOUND + OTHERS
        self.store = self.start()

    def start(self) -> Store:
        """Open it."""
        store = Store(
            self.disk,
            options(),
            Wall(),
            STORE_HOST,
            memory_bytes=1 << 40,
            open_files=OpenFiles(self.disk, BOUND),
        )
        store.open()
        return store

    def send(self, body: bytes) -> None:
        """A message for each queue."""
        for topic in TOPICS:
            for queue_id in (0, 1):
                put(self.store, self.store.queue(topic, queue_id), body)

    def found(self) -> set[tuple[bytes, ...]]:
        """The messages of the queues, of all that have the same once."""
        return {
            tuple(bodies(self.store, self.store.queue(topic, queue_id)))
            for topic in TOPICS
            for queue_id in (0, 1)
        }

    def test_sends(self) -> None:
        """Messages are stored in all queues, and read from all."""
        for body in (b"1", b"2"):
            self.send(body)
        self.assertEqual(self.found(), {(b"1", b"2")})
        self.assertEqual(len(self.store.open_files), BOUND)

    def test_starts(self) -> None:
        """It starts after a clean stop and after a kill, and goes on."""
        self.send(b"1")
        self.store.close()
        self.assertEqual(self.disk.open_files, 0)
        self.store = self.start()
        self.send(b"2")
        self.disk.crash(keep_all=True)
        self.store = self.start()
        self.send(b"3")
        self.assertEqual(self.found(), {(b"1", b"2", b"3")})

    def test_reads(self) -> None:
        """A start after a clean stop reads the last record, and in no other queue; one
        after a kill enters all records, opens each file once, and changes none of a
        right queue."""
        self.send(b"1")
        self.send(b"2")
        self.store.close()
        self.disk.calls.clear()
        self.store = self.start()
        self.assertLess(self.disk.calls["pread"], 10)
        self.disk.crash(keep_all=True)
        self.disk.calls.clear()
        self.store = self.start()
        self.assertEqual(self.store.recovered.records, 4 * len(TOPICS))
        self.assertLess(self.disk.calls["datasync"], 10)
        self.assertLess(self.disk.calls["pwrite"], 10)
        self.assertLess(self.disk.calls["open"], 2 * len(TOPICS) + OTHERS)
        self.assertEqual(self.found(), {(b"1", b"2")})

    def test_killedThenPower(self) -> None:
        """What a start shows after a kill outlasts a power failure: the next start
        makes again what was not put on the disk."""
        self.send(b"1")
        self.disk.crash(keep_all=True)
        self.store = self.start()
        self.disk.crash()
        self.store = self.start()
        self.assertEqual(self.found(), {(b"1",)})

    def test_lastSegment(self) -> None:
        """The segment that messages are appended to stays open after a start, however
        many files of queues are used."""
        self.send(b"1")
        self.store.close()
        self.store = self.start()
        for topic in TOPICS:
            self.store.entries(self.store.queue(topic, 0), 0, 1)
        opens = self.disk.calls["open"]
        self.store.append([draft(self.store.queue("T0", 0), b"2")])
        self.assertEqual(self.disk.calls["open"], opens)

    def test_flush(self) -> None:
        """A flush puts on the disk what was written before the files were let go, and
        an error of the disk is made up for by the next."""
        self.send(b"1")
        self.disk.fail("datasync", errno.EIO, after=5)
        self.assertRaises(OSError, self.store.flush_queues)
        self.store.flush()
        self.store.flush_queues()
        paths = [path for path in self.disk.paths() if "/consumequeue/" in path]
        self.assertEqual(len(paths), 2 * len(TOPICS))
        left = self.disk.image()
        for path in paths:
            self.assertEqual(left.read(path), self.disk.read(path))

    def test_deleted(self) -> None:
        """A topic that is made again has none of the files of the one before."""
        self.send(b"1")
        for topic in TOPICS:
            self.store.delete_topic(topic)
        self.assertLessEqual(self.disk.open_files, OTHERS)
        self.send(b"2")
        self.store.remove_deleted()
        self.assertEqual(self.found(), {(b"2",)})


class ManySegmentsTests(SynchronousTestCase):
    """A log of more segments than descriptors, which is read from the disk."""

    def start(self, disk: MemoryDisk) -> Store:
        """Open it, on a machine with little memory."""
        store = Store(
            disk,
            options(),
            Wall(),
            STORE_HOST,
            memory_bytes=0,
            open_files=OpenFiles(disk, BOUND),
        )
        store.open()
        return store

    def test_segments(self) -> None:
        """Messages are stored and read, and it starts after a clean stop and after a
        kill."""
        disk = MemoryDisk()
        disk.max_open = BOUND + OTHERS
        store = self.start(disk)
        sent = [b"%05d" % number * 8000 for number in range(30)]
        for body in sent:
            put(store, store.queue("T", 0), body)
            store.flush()
        self.assertGreater(len(disk.list(f"{ROOT}/commitlog")), disk.max_open)
        self.assertEqual(bodies(store, store.queue("T", 0)), sent)
        store.close()
        self.assertEqual(disk.open_files, 0)
        store = self.start(disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), sent)
        disk.crash(keep_all=True)
        store = self.start(disk)
        self.assertEqual(bodies(store, store.queue("T", 0)), sent)
        put(store, store.queue("T", 0), b"next")
        self.assertEqual(bodies(store, store.queue("T", 0)), [*sent, b"next"])

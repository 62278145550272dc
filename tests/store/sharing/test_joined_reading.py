"""A store that another process reads."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.reads import Matches, ReadResult
from rocketbroker.store.sharing.joined_reading import CALLS, JoinedReading
from tests.store.sharing.joined import Shared
from tests.store.stores import draft, options

#: The version of what readers were told.
TOLD = 3

#: The size of a segment, and the entries of a queue's file.
SEGMENT, PER_FILE = 4096, 10


class JoinedReadingTests(SynchronousTestCase):
    """What is read, and what is left to the owner."""

    def setUp(self) -> None:
        """A store with small files, joined."""
        changes: dict[str, Any] = {
            "mapped_file_size_commit_log": SEGMENT,
            "mapped_file_size_consume_queue": PER_FILE * 20,
        }
        self.shared = Shared(**changes)
        self.addCleanup(self.shared.owner.close)
        self.own = self.shared.queue()
        self.shared.owner.sharing.let_read(TOLD)
        self.joined = JoinedReading(
            OpenFiles(self.shared.disk), options(**changes), 1 << 40
        )
        self.addCleanup(self.joined.close)

    def append(self, count: int) -> None:
        """Messages in the queue."""
        for _ in range(count):
            self.shared.owner.append([draft(self.own, b"m%d" % self.own.next_offset)])
        self.shared.dispatch()

    @property
    def queue(self) -> Queue:
        """The reader's handle."""
        return self.joined.queue("T", 0, self.own.slot, self.own.trusted_from)

    def read(self, offset: int, matches: Matches = None) -> ReadResult | None:
        """What the reader gets."""
        return self.joined.read(self.queue, offset, 32, 1 << 20, matches, TOLD)

    def bodies(self, offset: int) -> list[bytes]:
        """The bodies of what the reader gets."""
        result = self.read(offset)
        assert result is not None
        return [each.body for each in decode_all(b"".join(result.records))]

    def test_all(self) -> None:
        """All that the owner reads, over many files of log and queue, as they come."""
        for _ in range(5):
            self.append(25)
            offset, found = 0, list[StoredMessage]()
            while offset < self.own.max_offset:
                result = self.read(offset)
                assert result is not None, offset
                found += decode_all(b"".join(result.records))
                offset = result.next_offset
            wanted = [b"m%d" % n for n in range(self.own.max_offset)]
            self.assertEqual([each.body for each in found], wanted)

    def test_outside(self) -> None:
        """What is not in the queue is the owner's to explain."""
        self.append(3)
        for offset in (-1, 3, 4):
            self.assertIs(self.read(offset), None)

    def test_version(self) -> None:
        """Nothing is read by another version."""
        self.append(3)
        self.assertEqual(self.bodies(1), [b"m1", b"m2"])
        self.shared.owner.sharing.let_read(TOLD + 1)
        self.assertIs(self.read(1), None)

    def test_filtered(self) -> None:
        """Filters by tags; one that passes all over says where to go on."""
        self.append(3)
        result = self.read(0, lambda code: False)
        assert result is not None
        self.assertEqual((result.count, result.next_offset), (0, 3))

    def test_notWritten(self) -> None:
        """Entries that the owner has in its memory alone are the owner's."""
        self.append(3)
        path = "/store/consumequeue/T/0/" + "0" * 20
        file = self.shared.disk.open(path)
        file.pwrite(bytes(20), 40)
        self.assertIs(self.read(0), None)
        self.assertIs(self.read(0, lambda code: True), None)
        self.assertIs(self.read(0, lambda code: False), None)

    def test_damaged(self) -> None:
        """A record from before that is damaged is the owner's to report, each time."""
        self.append(3)
        self.own.trusted_from = 3
        self.assertEqual(self.bodies(0), [b"m0", b"m1", b"m2"])
        path = "/store/commitlog/" + "0" * 20
        at = self.shared.disk.read(path).index(b"m1")
        self.shared.disk.open(path).pwrite(b"x", at)
        for _ in range(8):
            self.assertIs(self.read(0), None)
        self.assertEqual(self.bodies(2), [b"m2"])

    def test_removed(self) -> None:
        """Files that the owner removes are closed here, too."""
        self.append(100)
        self.assertEqual(len(self.bodies(0)), 10)
        self.joined._reach_log()
        count = len(self.joined._segments.all)
        self.assertGreater(count, 2)
        owner = self.shared.owner
        owner.flush()
        for _ in range(2):
            self.assertTrue(owner.cleaner._remove_oldest(True))
        self.joined.let_go()
        self.assertEqual(len(self.joined._segments.all), count - 2)
        self.assertIs(self.read(0), None)
        self.assertEqual(self.bodies(99), [b"m99"])

    def test_againMade(self) -> None:
        """A queue that was removed and made again is read from its new files."""
        self.append(3)
        self.assertEqual(len(self.bodies(0)), 3)
        self.joined.forget()
        self.append(20)
        self.assertEqual(self.bodies(10)[0], b"m10")

    def test_deletedTopicsMessagesAreNotRead(self) -> None:
        """A topic that is deleted and made again, many times, is read from the files
        of its last generation."""
        for _ in range(4):
            self.append(8)
            result = self.read(0)
            assert result is not None
            (record, *_) = decode_all(b"".join(result.records))
            self.assertGreaterEqual(record.position, self.own.from_position)
            self.delete()

    def test_deletedTopicsFilesAreClosed(self) -> None:
        """No file of a topic that is deleted, or was before, stays open."""
        for _ in range(3):
            self.append(12)
            self.assertEqual(len(self.bodies(0)), PER_FILE)
            self.assertEqual(len(self.bodies(11)), 1)
            self.delete()
            self.assertEqual(len(self.joined._open_files), 0)

    def delete(self) -> None:
        """The owner deletes the topic, and the reader hears of it."""
        self.shared.owner.delete_topic("T")
        self.shared.owner.remove_deleted()
        self.joined.forget()

    def test_segmentsAreForgotten(self) -> None:
        """None is known after a change: they may have been removed and made again, as
        another broker was the master."""
        self.append(3)
        self.assertEqual(len(self.bodies(0)), 3)
        self.joined.forget()
        self.assertEqual(self.joined._segments.all, [])
        self.assertEqual(len(self.bodies(0)), 3)

    def test_queueFilesRemoved(self) -> None:
        """Files of a queue that the owner removes are closed here within a minute."""
        self.append(100)
        self.assertEqual(self.bodies(0)[0], b"m0")
        opened = self.joined._open_files
        files, count = self.queue.files.all, len(opened)
        for _ in range(CALLS):
            self.joined.let_go()
        self.assertIs(self.queue.files.all, files)
        owner = self.shared.owner
        owner.flush()
        while owner.cleaner._remove_oldest(True):
            pass
        for _ in owner.cleaner.clean_queues():
            pass
        self.assertGreater(self.queue.min_offset, PER_FILE)
        for _ in range(CALLS):
            self.joined.let_go()
        self.assertLess(len(opened), count)
        self.assertEqual(self.queue.files.all, [])
        self.assertEqual(self.bodies(99), [b"m99"])

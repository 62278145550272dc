"""The log in memory of these tests keeps what a store's log promises."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.errors import StoreError
from rocketbroker.replication.interfaces import ReplicatedStore
from rocketbroker.store.raw_log import IRawLog
from tests.replication.logs import SEGMENT, MemoryLog, records
from tests.store.stores import opened, put


class LogCase(SynchronousTestCase):
    """What L{IRawLog} says, as far as replication relies on it."""

    def empty(self) -> ReplicatedStore:
        """A log without records."""
        raise NotImplementedError

    def record(self, position: int, body: bytes) -> bytes:
        """A record as it stands at a position of the first segment."""
        raise NotImplementedError

    def filled(self) -> tuple[ReplicatedStore, bytes]:
        """A log with two records, and these."""
        store = self.empty()
        first = self.record(0, b"first")
        data = first + self.record(len(first), b"second")
        self.assertEqual(store.raw_log.append(0, data), len(data))
        return store, data

    def test_interface(self) -> None:
        """It has what the interface names."""
        verifyObject(IRawLog, self.empty().raw_log)

    def test_append(self) -> None:
        """What was appended is published, and read as it is."""
        store, data = self.filled()
        self.assertEqual(store.min_position, 0)
        self.assertEqual(store.published_position, len(data))
        self.assertEqual(store.raw_log.read(0, 1 << 20), data)
        self.assertEqual(store.raw_log.read(3, 5), data[3:8])

    def test_nothing(self) -> None:
        """Before and behind the log there is nothing."""
        store, data = self.filled()
        for position in (-1, len(data), len(data) + SEGMENT):
            self.assertEqual(store.raw_log.read(position, 9), b"")

    def test_part(self) -> None:
        """Of bytes that end with a part of a record the whole records are taken."""
        store = self.empty()
        data = self.record(0, b"first")
        for size in (1, 8, 12, len(data) - 1):
            self.assertEqual(store.raw_log.append(0, data[:size]), 0)
        end = len(data)
        self.assertEqual(store.raw_log.append(0, data + data[:7]), end)
        self.assertEqual(store.published_position, end)

    def test_elsewhere(self) -> None:
        """Bytes that do not belong to the end are refused, and records of another
        position."""
        store, data = self.filled()
        record = self.record(len(data), b"third")
        for position, wrong in ((len(data) - 1, record), (len(data), data)):
            with self.assertRaises(StoreError):
                store.raw_log.append(position, wrong)
        self.assertEqual(store.published_position, len(data))

    def test_first(self) -> None:
        """An empty log begins with any segment, and at no other place."""
        store = self.empty()
        with self.assertRaises(StoreError):
            store.raw_log.append(3, self.record(3, b"first"))
        data = self.record(2 * SEGMENT, b"first")
        self.assertEqual(store.raw_log.append(2 * SEGMENT, data), len(data))
        self.assertEqual(store.min_position, 2 * SEGMENT)
        self.assertEqual(store.raw_log.read(0, 9), b"")


class MemoryLogTests(LogCase):
    """The double."""

    def empty(self) -> MemoryLog:
        return MemoryLog()

    def record(self, position: int, body: bytes) -> bytes:
        return records(position, body)


class StoreTests(LogCase):
    """The log of a store."""

    def empty(self) -> ReplicatedStore:
        store = opened()
        self.addCleanup(store.close)
        return store

    def record(self, position: int, body: bytes) -> bytes:
        store = opened()
        self.addCleanup(store.close)
        (draft,) = put(store, store.queue("T", 0), body)
        record = store.raw_log.read(draft.position, 1 << 20)
        return record[:28] + position.to_bytes(8) + record[36:]


del LogCase

# -*- test-case-name: tests.replication.test_logs -*-
"""The contract of replicated logs: how bytes of a log are appended and read."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from rocketbroker.errors import StoreError
from rocketbroker.replication.interfaces import ReplicatedStore
from rocketbroker.store.raw_log import IRawLog
from rocketbroker.testing.contracts.case import Contract


class RawLogContract(Contract):
    """The suite of L{IRawLog}, as far as replication relies on it.

    @cvar SEGMENT: the size of the log's segments, in bytes.
    """

    SEGMENT: int

    def empty(self) -> ReplicatedStore:
        """
        @return: a store whose log has no records.
        """
        raise AssertionError("a test class makes its own store")

    def record(self, position: int, body: bytes) -> bytes:
        """
        @return: a record as it stands at a position of the log.
        """
        raise AssertionError("a test class makes its own records")

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
        for position in (-1, len(data), len(data) + self.SEGMENT):
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
        data = self.record(2 * self.SEGMENT, b"first")
        self.assertEqual(store.raw_log.append(2 * self.SEGMENT, data), len(data))
        self.assertEqual(store.min_position, 2 * self.SEGMENT)
        self.assertEqual(store.raw_log.read(0, 9), b"")

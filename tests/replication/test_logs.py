"""The log in memory of these tests keeps what a store's log promises."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.replication.interfaces import ReplicatedStore
from rocketbroker.testing.contracts.raw_log import RawLogContract
from tests.replication.logs import SEGMENT, MemoryLog, records
from tests.store.stores import opened, put


class MemoryLogTests(RawLogContract, SynchronousTestCase):
    """The double."""

    SEGMENT = SEGMENT

    def empty(self) -> MemoryLog:
        return MemoryLog()

    def record(self, position: int, body: bytes) -> bytes:
        return records(position, body)


class StoreTests(RawLogContract, SynchronousTestCase):
    """The log of a store."""

    SEGMENT = SEGMENT

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

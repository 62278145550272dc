"""The buffers of the transient store pool."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.interfaces import CREATE_MAPPED_FILE_FAILED, PUT_OK
from rocketbroker.store.message_store import Store
from tests.store.stores import draft, opened


class BufferPoolTests(SynchronousTestCase):
    """How many are taken, and what happens when all are."""

    def opened(self, size: int, fails_fast: bool = False) -> Store:
        """A store with so many buffers."""
        return opened(
            transient_store_pool_enable=True,
            transient_store_pool_size=size,
            fast_fail_if_no_buffer_in_store_pool=fails_fast,
        )

    def fill(self, store: Store) -> int:
        """Append so much that each takes a segment; its status."""
        one = draft(store.queue("T", 0), b"x" * 60_000)
        store.append([one])
        return one.status

    def test_taken(self) -> None:
        """The last segment takes one, the one made ahead too, and each that waits; a
        commit gives those back that are full."""
        store = self.opened(5)
        self.assertEqual(store.buffers_left(), 3)
        self.fill(store)
        self.assertEqual(store.buffers_left(), 3)
        self.fill(store)
        self.assertEqual(store.buffers_left(), 3)
        store.allocate_ahead()
        self.assertEqual(store.buffers_left(), 2)
        store.commit()
        self.assertEqual(store.buffers_left(), 3)

    def test_exhausted(self) -> None:
        """When none is left sends have to wait for the commit; what is appended all the
        same is stored."""
        store = self.opened(3)
        for _ in range(3):
            self.assertFalse(store.lacks_buffers())
            self.assertEqual(self.fill(store), PUT_OK)
        self.assertEqual(store.buffers_left(), 0)
        self.assertTrue(store.lacks_buffers())
        self.assertEqual(self.fill(store), PUT_OK)
        store.commit()
        self.assertFalse(store.lacks_buffers())

    def test_smallPool(self) -> None:
        """A pool that the last segment and the next one take up does not keep everybody
        waiting for what no commit gives."""
        store = self.opened(1)
        self.assertEqual(store.buffers_left(), 0)
        self.fill(store)
        self.assertFalse(store.lacks_buffers())
        self.fill(store)
        self.assertTrue(store.lacks_buffers())
        store.commit()
        self.assertFalse(store.lacks_buffers())

    def test_failsFast(self) -> None:
        """With fastFailIfNoBufferInStorePool a segment without a buffer is not made;
        after the commit it is."""
        store = self.opened(2, fails_fast=True)
        self.assertEqual(self.fill(store), PUT_OK)
        self.assertEqual(self.fill(store), PUT_OK)
        self.assertEqual(self.fill(store), CREATE_MAPPED_FILE_FAILED)
        self.assertIsNone(store.refusal())
        store.commit()
        self.assertEqual(self.fill(store), PUT_OK)

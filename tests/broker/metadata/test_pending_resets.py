"""Offsets that an operator has set, until the group goes on from them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.pending_resets import (
    PendingReset,
    Resets,
    for_held_pull,
    for_new_pull,
    pending,
)
from rocketbroker.testing.connections import RecordedConnection


class ResetsTests(SynchronousTestCase):
    """Who is told, and until when."""

    def setUp(self) -> None:
        """Two queues were reset; two connections."""
        self.resets: Resets = {"T@G": {0: PendingReset(5), 1: PendingReset(6)}}
        self.one, self.other = RecordedConnection(), RecordedConnection()

    def test_unknown(self) -> None:
        """Other groups and queues are left alone."""
        for key, queue_id in (("T@H", 0), ("T@G", 2)):
            self.assertIsNone(pending(self.resets, key, queue_id))
            self.assertIsNone(for_held_pull(self.resets, key, queue_id, self.one))
            self.assertIsNone(for_new_pull(self.resets, key, queue_id, self.one, 9))

    def test_confirmed(self) -> None:
        """A pull from there ends it, even if it was never told; the last one all."""
        self.assertIsNone(for_new_pull(self.resets, "T@G", 0, self.one, 5))
        self.assertIsNone(pending(self.resets, "T@G", 0))
        self.assertEqual(pending(self.resets, "T@G", 1), 6)
        self.assertIsNone(for_new_pull(self.resets, "T@G", 1, self.one, 6))
        self.assertEqual(self.resets, {})

    def test_oncePerConnection(self) -> None:
        """Each connection is told once, the same one not again after it was."""
        self.assertEqual(for_new_pull(self.resets, "T@G", 0, self.one, 9), 5)
        self.assertEqual(for_new_pull(self.resets, "T@G", 0, self.other, 9), 5)
        self.assertIsNone(for_new_pull(self.resets, "T@G", 0, self.other, 9))
        self.assertIsNone(pending(self.resets, "T@G", 0))

    def test_heldPull(self) -> None:
        """A pull that was held counts as told, and never ends a reset."""
        for _ in range(2):
            self.assertEqual(for_held_pull(self.resets, "T@G", 0, self.one), 5)
        self.assertIsNone(for_new_pull(self.resets, "T@G", 0, self.one, 9))

"""What tells a message from another one at its offset."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.message_identity import fingerprint_at
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import DataLoss
from tests.sources.messages import START_MS
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "broker-a", 0)


class FingerprintTests(SynchronousTestCase):
    """L{fingerprint_at}."""

    def test_message(self) -> None:
        """It is the store time and the id of exactly this message."""
        origin = MemoryOrigin({QUEUE: 5})
        found = fingerprint_at(origin, QUEUE, 3)
        self.assertEqual(found.store_ms, START_MS + 4)
        self.assertNotEqual(
            found.message_id, fingerprint_at(origin, QUEUE, 4).message_id
        )

    def test_gone(self) -> None:
        """A message that is gone has none."""
        origin = MemoryOrigin({QUEUE: 5})
        origin.first[QUEUE] = 4
        error = self.assertRaises(DataLoss, fingerprint_at, origin, QUEUE, 3)
        self.assertIn("message 3 of queue 0 of T", str(error))

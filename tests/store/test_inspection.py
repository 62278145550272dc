"""What a store's directory holds."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.store import inspection
from rocketbroker.store.reader import StoreReader
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, SEGMENT, START_MS, Wall, opened, put


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
        row = inspection.state(self.disk, self.reader(), ROOT)
        self.assertTrue(row["abort"])
        self.assertTrue(str(row["owner"]).isdigit())
        self.assertEqual(row["log_end"], self.store.published_position)
        self.store.close()
        row = inspection.state(self.disk, self.reader(), ROOT)
        self.assertEqual((row["stopped"], row["abort"]), ("cleanly", False))
        self.assertEqual(row["log_flushed_ms"], START_MS + 5)

    def test_segments(self) -> None:
        """The files of the log with their sizes."""
        (row,) = inspection.segments(self.reader())
        self.assertEqual((row["segment"], row["bytes"]), ("0" * 20, SEGMENT))

    def test_queues(self) -> None:
        """Each queue with offsets and the bytes of its records."""
        self.store.close()
        rows = list(inspection.queues(self.reader()))
        self.assertEqual([row["messages"] for row in rows], [2, 1])
        overhead = 91 + 1 + 42
        self.assertEqual(
            [row["bytes"] for row in rows], [2 * overhead + 3, overhead + 3]
        )

    def test_topic(self) -> None:
        """Sizes and times of a topic."""
        self.store.close()
        row = inspection.topic_figures(self.reader(), "T")
        self.assertEqual((row["messages"], row["queues"]), (3, 2))
        self.assertEqual(row["first_stored_ms"], START_MS)
        self.assertEqual(row["last_stored_ms"], START_MS + 5)

    def test_messages(self) -> None:
        """A range of messages; one that is damaged is an error in its place."""
        self.store.close()
        found = list(inspection.messages(self.reader(), "T", 0, 0, None))
        self.assertEqual([getattr(each, "body", None) for each in found], [b"a", b"bb"])
        (one,) = inspection.messages(self.reader(), "T", 0, 1, 9)
        self.assertEqual(getattr(one, "queue_offset", None), 1)
        path = f"{ROOT}/commitlog/{0:020d}"
        file = self.disk.open(path)
        file.pwrite(b"z", 88)
        file.close()
        damaged, good = inspection.messages(self.reader(), "T", 0, 0, None)
        self.assertIsInstance(damaged, StoreError)
        self.assertEqual(getattr(good, "body", None), b"bb")

"""Tests of how far groups are behind."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics import lag
from rocketbroker.store.message_store import Store
from tests.broker.rig import Rig


class LagTests(SynchronousTestCase):
    """Single queues, at their edges."""

    def setUp(self) -> None:
        """Three messages in queue 0 of T."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic()
        for _ in range(3):
            self.rig.append()
        self.rig.scheduler.dispatch()
        self.queue = self.rig.store.queue("T", 0)
        self.found = lag.Lag("G", "T")

    def test_ahead(self) -> None:
        """Offsets beyond the end are no negative lag."""
        self.found.add(self.queue, 9, 9)
        self.assertEqual(
            (self.found.behind, self.found.in_flight, self.found.ready), (0, 0, 0)
        )
        self.assertEqual(list(lag.overdue(self.found)), [])

    def test_empty(self) -> None:
        """A queue without messages adds nothing."""
        self.found.add(self.rig.store.queue("T", 1), -1, -1)
        self.assertEqual((self.found.behind, self.found.ready), (0, 0))

    def test_pulledNotCommitted(self) -> None:
        """Pulled and never committed is in flight as a whole."""
        self.found.add(self.queue, -1, 2)
        self.assertEqual(
            (self.found.behind, self.found.in_flight, self.found.ready), (3, 2, 1)
        )

    def test_age(self) -> None:
        """The oldest message counts; one that cannot be read does not."""
        self.found.add(self.queue, 0, 2)
        times = {("T", 0, 0): 1000, ("T", 0, 2): -1}
        self.assertEqual(self.found.age(times, 5000, pulled=False), 4000)
        self.assertEqual(self.found.age(times, 5000, pulled=True), 0)

    def test_limit(self) -> None:
        """One scrape reads a bounded number of store times."""
        wanted = [(self.queue, offset) for offset in range(lag.MAX_TIMES + 10)]
        times = lag.read_times(self.rig.store, wanted)
        self.assertEqual(len(times), lag.MAX_TIMES)
        self.assertGreater(times["T", 0, 0], 0)

    def test_firstStoreTime(self) -> None:
        """The oldest record's time; none in an empty log."""
        self.assertEqual(lag.first_store_time(self.rig.store), self.rig.wall_ms())
        empty = Rig({})
        self.addCleanup(empty.close)
        self.assertIsInstance(empty.store, Store)
        self.assertEqual(lag.first_store_time(empty.store), -1)

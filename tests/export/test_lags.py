"""How far an export is behind."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import read_history
from rocketbroker.export.lags import Lag, lags
from rocketbroker.sources.ranges import Queue
from tests.export.worlds import ONE, ZERO, World
from tests.sources.messages import START_MS

NOW_MS = START_MS + 60_000


class LagTests(SynchronousTestCase):
    """L{lags}."""

    def setUp(self) -> None:
        """Two queues, exported."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 7})
        self.assertEqual(self.world.run(), 0)

    def found(self) -> list[Lag]:
        """How far the queues are behind."""
        ends = read_history(self.world.storage).ends
        return lags(self.world.origin, ["T"], ends, NOW_MS)

    def test_none(self) -> None:
        """What is exported wholly is not behind."""
        self.assertEqual(self.found(), [Lag(ZERO, 0, 20, 20), Lag(ONE, 0, 7, 7)])
        self.assertEqual([lag.behind for lag in self.found()], [0, 0])

    def test_behind(self) -> None:
        """Messages that came since count, and so does the age of the first of them."""
        self.world.origin.ends[ZERO] = 30
        lag, _ = self.found()
        self.assertEqual((lag.behind, lag.removed), (10, 0))
        self.assertEqual((lag.oldest_ms, lag.behind_ms), (START_MS + 21, 59_979))

    def test_removed(self) -> None:
        """What was deleted before it was exported is told apart."""
        self.world.origin.ends[ZERO] = 30
        self.world.origin.first[ZERO] = 24
        lag, _ = self.found()
        self.assertEqual((lag.start, lag.behind, lag.removed), (24, 6, 4))
        self.assertEqual(lag.oldest_ms, START_MS + 25)

    def test_otherQueues(self) -> None:
        """New queues are behind from their start; those that are gone are named."""
        del self.world.origin.ends[ONE]
        new = Queue("T", "broker-a", 2)
        self.world.origin.ends[new] = 3
        self.world.origin.first[new] = 0
        _, gone, fresh = self.found()
        self.assertEqual(gone, Lag(ONE, None, 7, None))
        self.assertEqual((gone.behind, gone.removed), (0, 0))
        self.assertEqual((fresh.exported, fresh.behind, fresh.removed), (None, 3, 0))

    def test_unreadable(self) -> None:
        """Where the first message cannot be read its age is not known."""
        self.world.origin.ends[ZERO] = 30
        self.world.origin.records[20] = b""
        self.world.origin.step = 1
        self.world.origin.ends[ZERO] = 21
        lag, _ = self.found()
        self.assertEqual((lag.behind, lag.behind_ms), (1, None))

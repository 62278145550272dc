"""From options to ranges."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.spark.options import ReadOptions, Time
from rocketbroker.spark.origins import DataLoss
from rocketbroker.spark.planning import resolve
from rocketbroker.spark.ranges import Queue
from tests.spark.messages import START_MS
from tests.spark.origins import MemoryOrigin

ZERO, ONE = Queue("T", "b", 0), Queue("T", "b", 1)


class PlanningTests(SynchronousTestCase):
    """L{resolve}."""

    def setUp(self) -> None:
        """Two queues, of the first the oldest messages are gone."""
        self.origin = MemoryOrigin({ONE: 5, ZERO: 20})
        self.origin.first[ZERO] = 10

    def pairs(self, **words: object) -> list[tuple[int, int]]:
        """Start and end of the two queues."""
        options = ReadOptions(topics=("T",), **words)  # type: ignore[arg-type]
        found = resolve(self.origin, options, START_MS + 1000)
        self.assertEqual([each.queue for each in found], [ZERO, ONE])
        return [(each.start, each.until) for each in found]

    def test_all(self) -> None:
        """All there is, unless said otherwise."""
        self.assertEqual(self.pairs(), [(10, 20), (0, 5)])

    def test_latest(self) -> None:
        """From the end on there is nothing in a batch."""
        self.assertEqual(self.pairs(starting="latest"), [(20, 20), (5, 5)])

    def test_named(self) -> None:
        """Offsets given by name; a queue that is not named is read whole."""
        self.assertEqual(
            self.pairs(starting=(("T", "b", 0, 12),), ending=(("T", "b", 1, 3),)),
            [(12, 20), (0, 3)],
        )

    def test_times(self) -> None:
        """Times beat offsets, and are half-open."""
        first = self.pairs(ending_time=Time(START_MS + 15), starting="latest")
        self.assertEqual(first, [(20, 20), (5, 5)])
        early = self.pairs(ending_time=Time(START_MS + 14))
        late = self.pairs(starting_time=Time(START_MS + 14))
        self.assertEqual(early, [(10, 13), (0, 5)])
        self.assertEqual(late, [(13, 20), (5, 5)])

    def test_relativeTime(self) -> None:
        """A time span counts back from now."""
        found = self.pairs(starting_time=Time(-986, relative=True))
        self.assertEqual(found, [(13, 20), (5, 5)])

    def test_gone(self) -> None:
        """Offsets before the first one are data loss."""
        named = (("T", "b", 0, 4),)
        error = self.assertRaises(DataLoss, self.pairs, starting=named)
        self.assertEqual(
            str(error),
            "queue 0 of T on b begins at 10: the messages from 4 on are gone",
        )
        found = self.pairs(starting=named, fail_on_data_loss=False)
        self.assertEqual(found, [(10, 20), (0, 5)])

    def test_beyond(self) -> None:
        """Offsets beyond the end mean that the topic is another one."""
        for words in (
            {"starting": (("T", "b", 1, 9),)},
            {"ending": (("T", "b", 1, 9),)},
        ):
            error = self.assertRaises(DataLoss, self.pairs, **words)
            self.assertIn("queue 1 of T on b ends at 5, before 9", str(error))
            self.pairs(**words, fail_on_data_loss=False)

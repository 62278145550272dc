"""Counters over the last minute, hour and day."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.figures import LOOK_SECONDS
from rocketbroker.broker.stats.stats_items import (
    DAY,
    HOUR,
    KEYS_A_STEP,
    MINUTE,
    MOST_ROWS,
    NOTHING,
    VIEWS,
    Looks,
    StatsItems,
    View,
    Window,
)

#: How many looks there are in an hour.
AN_HOUR = int(3600 // LOOK_SECONDS)


class StatsItemsTests(SynchronousTestCase):
    """Samples of counters of messages, bytes and times."""

    def setUp(self) -> None:
        """No counters."""
        self.clock = Clock()
        self.looks = Looks(self.clock.seconds)
        self.items = StatsItems(self.looks, 3)
        self.totals: dict[str, tuple[int, ...]] = {}

    def look(self, times: int = 1, **messages: int) -> None:
        """Let time pass, with so many messages before each look; each has ten bytes,
        and all that come together came at once."""
        for _ in range(times):
            for key, count in messages.items():
                old = self.totals.get(key, (0, 0, 0))
                self.totals[key] = (old[0] + count, old[1] + 10 * count, old[2] + 1)
            self.clock.advance(LOOK_SECONDS)
            self.assertEqual(list(self.items.take(self.totals)), [])
            self.looks.end()

    def sums(self, view: View) -> tuple[int, int]:
        """Messages and bytes of key C{a} in a window."""
        window = self.items.window
        return window("a", view).sum, window("a", view, 1).sum

    def test_first(self) -> None:
        """What was counted before the first look came in its ten seconds."""
        self.look(3)
        self.look(a=60)
        self.assertEqual(self.items.window("a", MINUTE), Window(60, 6.0, 60.0))
        self.assertEqual(self.items.window("a", MINUTE, 1), Window(600, 60.0, 600.0))
        self.assertEqual(self.items.window("a", HOUR), NOTHING)
        self.assertIn("a", self.items)

    def test_unknown(self) -> None:
        """A key that nothing was counted for is not there."""
        self.look(a=1)
        self.assertNotIn("b", self.items)
        self.assertEqual(self.items.window("b", MINUTE), NOTHING)
        self.assertEqual(self.items.keys(), ["a"])

    def test_minute(self) -> None:
        """The minute is that of the last seven looks; the rate is over their time."""
        self.look(a=600)
        self.look(5, a=6)
        self.assertEqual(self.items.window("a", MINUTE), Window(630, 10.5, 105.0))
        self.look(a=6)
        self.assertEqual(self.items.window("a", MINUTE), Window(36, 0.6, 6.0))
        self.look(5)
        self.assertEqual(self.items.window("a", MINUTE), Window(6, 0.1, 6.0))
        self.look()
        self.assertEqual(self.items.window("a", MINUTE), NOTHING)

    def test_hour(self) -> None:
        """Each sixtieth look is one of the hour; six of them are the hour."""
        self.look(HOUR.looks - 1, a=1)
        self.assertEqual(self.items.window("a", HOUR), NOTHING)
        self.look(a=1)
        self.assertEqual(self.items.window("a", HOUR), Window(60, 0.1, 1.0))
        self.look(5 * HOUR.looks, a=2)
        self.assertEqual(self.sums(HOUR), (660, 6600))
        self.look(HOUR.looks)
        self.assertEqual(self.sums(HOUR), (600, 6000))

    def test_day(self) -> None:
        """Each hour is a sample of the day; what is older than a day is gone."""
        self.look(AN_HOUR, a=1)
        self.assertEqual(self.sums(DAY), (360, 3600))
        self.look(23 * AN_HOUR)
        self.assertEqual(self.sums(DAY), (360, 3600))
        self.assertEqual(self.items.window("a", DAY).tps, 360 / 86_400)
        self.look(AN_HOUR)
        self.assertEqual(self.items.window("a", DAY), NOTHING._replace())

    def test_rests(self) -> None:
        """A key that rested, and one that came later, have the windows of all."""
        self.look(AN_HOUR, a=1)
        self.look(30 * AN_HOUR)
        self.look(a=5, b=7)
        self.assertEqual(self.sums(MINUTE), (5, 50))
        self.look(AN_HOUR - 1)
        self.assertEqual(self.sums(DAY), (5, 50))
        self.assertEqual(self.items.window("b", DAY).tps, 7 / 3600)

    def test_forgotten(self) -> None:
        """A key whose counters are gone is gone; one whose counters begin again is
        counted from then on."""
        self.look(7, a=5, b=5)
        del self.totals["b"]
        self.totals["a"] = 2, 20, 1
        self.look()
        self.assertNotIn("b", self.items)
        self.assertEqual(self.items.window("a", MINUTE), Window(2, 0.2, 2.0))

    def test_steps(self) -> None:
        """Many keys are looked at in steps; what is shown is the look before."""
        self.totals = {str(at): (1, 10, 1) for at in range(KEYS_A_STEP)}
        self.look_steps(1)
        self.totals = {str(at): (4, 10, 2) for at in range(2 * KEYS_A_STEP + 1)}
        self.clock.advance(LOOK_SECONDS)
        for _ in self.items.take(self.totals):
            self.assertEqual(self.items.window("0", MINUTE).sum, 1)
            self.assertEqual(self.items.window(str(KEYS_A_STEP), MINUTE), NOTHING)
        self.looks.end()
        self.assertEqual(self.items.window("0", MINUTE).sum, 4)
        self.assertEqual(self.items.window(str(KEYS_A_STEP), MINUTE).sum, 4)
        self.totals = {}
        self.look_steps(2)
        self.assertEqual(self.items.keys(), [])

    def look_steps(self, steps: int) -> None:
        """Take a look that has so many steps."""
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual(len(list(self.items.take(self.totals))), steps)
        self.looks.end()

    def test_bounded(self) -> None:
        """A key that never rests has a bounded number of rows."""
        self.look(30 * AN_HOUR, a=1)
        (item,) = self.items._items.values()
        rows = sum(len(rows) // 4 for rows in item.rows)
        self.assertEqual(rows, MOST_ROWS - len(VIEWS))

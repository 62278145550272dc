"""Totals as they were when days began."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.stats.day_totals import DayTotals

DAY_MS = 86_400_000


class DayTotalsTests(SynchronousTestCase):
    """This day and the day before."""

    def test_days(self) -> None:
        """At midnight this morning's total becomes yesterday's."""
        total = 0
        now = 1_700_000_000_000
        days = DayTotals(lambda: now, {"put": lambda: total})
        total = 5
        days.look()
        self.assertEqual((days.yesterday["put"], days.today["put"]), (0, 0))
        now += DAY_MS
        days.look()
        self.assertEqual((days.yesterday["put"], days.today["put"]), (0, 5))
        total = 9
        days.look()
        self.assertEqual((days.yesterday["put"], days.today["put"]), (0, 5))
        now += DAY_MS
        days.look()
        self.assertEqual((days.yesterday["put"], days.today["put"]), (5, 9))

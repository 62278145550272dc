# -*- test-case-name: tests.broker.stats.test_day_totals -*-
"""Totals as they were when this day and the day before began.

Days are those of the local clock: at midnight the total of this morning becomes that of
yesterday, and the present total becomes that of this morning.
docs/facts/broker.md 5 and 22.4."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import final


@final
class DayTotals:
    """Some totals at the beginning of days.

    @ivar yesterday: each total when the day before this one began.
    @ivar today: each total when this day began; all start at 0 with the broker.
    """

    def __init__(
        self, wall_ms: Callable[[], int], totals: Mapping[str, Callable[[], int]]
    ) -> None:
        """
        @param totals: the totals, by name.
        """
        self._wall_ms = wall_ms
        self._totals = totals
        self._day = self._local_day()
        self.today = dict.fromkeys(totals, 0)
        self.yesterday = dict(self.today)

    def look(self) -> bool:
        """See whether another day has begun, every second or so; whether it has."""
        day = self._local_day()
        if day == self._day:
            return False
        self._day = day
        self.yesterday = self.today
        self.today = {name: total() for name, total in self._totals.items()}
        return True

    def of_yesterday(self, name: str) -> int:
        """What the day before this one has brought to a total."""
        return self.today[name] - self.yesterday[name]

    def _local_day(self) -> tuple[int, int]:
        now = time.localtime(self._wall_ms() / 1000)
        return now.tm_year, now.tm_yday

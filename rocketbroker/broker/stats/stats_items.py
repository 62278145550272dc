# -*- test-case-name: tests.broker.stats.test_stats_items -*-
"""Sums of statistics counters over the last minute, hour and day, by key.

The counters are looked at every ten seconds, so a message costs nothing. A look is a
sample of the minute; every sixtieth is one of the hour too, and every 360th one of the
day, as in RocketMQ. A key keeps the samples in which its counters had moved: a kilobyte
if it rests, and at most L{MOST_ROWS} rows, three kilobytes. So 10,000 topics and 10,000
groups in one topic each take 60 MB when all of them are busy all day. The number of
keys is bounded by those who count: by queues, and by L{pull_checks.MAX_COUNTED}.

docs/facts/broker.md 22.2 and 22.3.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, final

#: So many keys are looked at in one step.
KEYS_A_STEP: Final = 256


class View(NamedTuple):
    """A window of time that counts are summed over.

    @ivar name: as request 315 names it.
    @ivar looks: how many looks there are from one sample to the next; one is each
        L{rocketbroker.broker.figures.LOOK_SECONDS}.
    @ivar samples: how many samples the window has, both ends included.
    """

    name: str
    looks: int
    samples: int


MINUTE: Final = View("statsMinute", 1, 7)
HOUR: Final = View("statsHour", 60, 7)
DAY: Final = View("statsDay", 360, 25)
VIEWS: Final = (MINUTE, HOUR, DAY)

#: How many samples a key has at most: those of all windows, one before each, and one
#: that is being taken.
MOST_ROWS: Final = sum(view.samples + 2 for view in VIEWS)


class Window(NamedTuple):
    """What was counted in one window.

    @ivar sum: how much.
    @ivar tps: how much a second.
    @ivar avgpt: how much at a time; 0.0 of what is not counted by times.
    """

    sum: int
    tps: float
    avgpt: float


NOTHING: Final = Window(0, 0.0, 0.0)


@final
class Looks:
    """When the samples of each view were taken.

    @ivar taken: how many looks there were.
    @ivar numbers: by view, how many samples there were.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        """
        @param seconds: monotonic time.
        """
        self._seconds = seconds
        self.taken = 0
        self.numbers = dict.fromkeys(VIEWS, 0)
        self._times = {view: deque([seconds()], view.samples) for view in VIEWS}

    def due(self) -> list[View]:
        """The views of which the next look is a sample."""
        return [view for view in VIEWS if (self.taken + 1) % view.looks == 0]

    def end(self) -> None:
        """A look is over: what it saw is shown from now on."""
        for view in self.due():
            self.numbers[view] += 1
            self._times[view].append(self._seconds())
        self.taken += 1

    def seconds(self, view: View, first: int) -> float:
        """The time from one sample, by its number, to the last."""
        times = self._times[view]
        return times[-1] - times[-1 - (self.numbers[view] - first)]


@final
class _Item:
    """The counters of one key.

    @ivar values: the counters at the last look.
    @ivar rows: of each view, rows of a sample's number and the counters.
    """

    __slots__ = ("rows", "values")

    def __init__(self, columns: int) -> None:
        self.values = (0,) * columns
        self.rows = tuple(array("q") for _ in VIEWS)

    def add(self, view: View, number: int) -> None:
        """Keep the counters as a sample, if they have moved since the one before."""
        values, rows = self.values, self.rows[VIEWS.index(view)]
        if not rows:
            # It was 0 at the sample before its first.
            rows.extend((number - 1, *(0 for _ in values)))
        elif tuple(rows[-len(values) :]) == values:
            return
        rows.extend((number, *values))
        width = len(values) + 1
        # The first row is what the counters were when the window began.
        while rows[width] <= number - view.samples:
            del rows[:width]

    def at(self, view: View, number: int) -> tuple[int, ...]:
        """The counters at a sample, or at the first that is kept."""
        rows, width = self.rows[VIEWS.index(view)], len(self.values) + 1
        begin = len(rows) - width
        while begin > 0 and rows[begin] > number:
            begin -= width
        return tuple(rows[begin + 1 : begin + width])


@final
class StatsItems:
    """Counters of one kind, by key.

    Several may share their L{Looks}; each takes the counters of every look, and then
    the look ends.
    """

    def __init__(self, looks: Looks, columns: int) -> None:
        """
        @param columns: how many counters a key has. The last is how often the others
            were added to.
        """
        self._looks = looks
        self._columns = columns
        self._items: dict[str, _Item] = {}

    def take(self, totals: Mapping[str, tuple[int, ...]]) -> Iterator[None]:
        """Look at the counters, some at a time.

        @param totals: all of them by key, from 0 on. What is not in it is forgotten;
            what has fallen has begun again.
        """
        looks = self._looks
        due = [(view, looks.numbers[view] + 1) for view in looks.due()]
        items = self._items
        for at, key in enumerate([key for key in items if key not in totals], 1):
            del items[key]
            if at % KEYS_A_STEP == 0:
                yield
        for at, (key, values) in enumerate(totals.items(), 1):
            item = items.get(key)
            if item is None or any(map(int.__lt__, values, item.values)):
                item = items[key] = _Item(self._columns)
            item.values = values
            for view, number in due:
                item.add(view, number)
            if at % KEYS_A_STEP == 0:
                yield

    def __contains__(self, key: object) -> bool:
        """Whether anything was counted for a key."""
        return key in self._items

    def keys(self) -> list[str]:
        """All of them."""
        return list(self._items)

    def window(self, key: str, view: View, column: int = 0) -> Window:
        """What one counter of a key has counted."""
        item = self._items.get(key)
        if item is None or not item.rows[VIEWS.index(view)]:
            return NOTHING
        last = self._looks.numbers[view]
        first = max(last - view.samples + 1, item.rows[VIEWS.index(view)][0])
        seconds = self._looks.seconds(view, first) if first < last else 0.0
        if seconds <= 0:
            return NOTHING
        begin, end = item.at(view, first), item.at(view, last)
        count, times = end[column] - begin[column], end[-1] - begin[-1]
        return Window(count, count / seconds, count / times if times else 0.0)

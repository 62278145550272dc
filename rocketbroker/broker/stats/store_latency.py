# -*- test-case-name: tests.broker.stats.test_store_latency -*-
"""The times that messages took to be stored: by classes, 99th percentile, maximum.

The time is that of a turn's append, with SYNC_FLUSH also the wait for the disk: from
the moment when the broker has all messages of a turn until it may answer them. It
counts for each message of the turn. The figures are those of the last whole minute, as
in RocketMQ.

Classes and widths: docs/facts/store.md 20; docs/facts/broker.md 22.4."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Final, final

#: Widths in ms of the classes that are counted, and how many of each there are.
WIDTHS: Final = ((1, 20), (2, 15), (5, 10), (10, 10), (50, 6), (100, 5), (1000, 9))

#: The upper bound of each class, exclusive; longer times fall into one more.
BOUNDS: Final = tuple(
    accumulate(width for width, count in WIDTHS for _ in range(count))
)

#: The classes that tools show: a name and the upper bound, in ms. All are bounds of
#: ours.
SHOWN: Final = (
    ("<=0ms", 1),
    ("0~10ms", 10),
    ("10~50ms", 50),
    ("50~100ms", 100),
    ("100~200ms", 200),
    ("200~500ms", 500),
    ("500ms~1s", 1000),
    ("1~2s", 2000),
    ("2~3s", 3000),
    ("3~4s", 4000),
    ("4~5s", 5000),
    ("5~10s", 10_000),
    ("10s~", None),
)


@final
class StoreLatency:
    """The times of one broker.

    @ivar longest_ms: the longest since the start; 0.0 if all were shorter than 1 ms.
    """

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._now = [0] * (len(BOUNDS) + 1)
        self._last: list[int] | None = None

    def add(self, ms: float, messages: int) -> None:
        """Count C{messages} messages that took C{ms} each."""
        if ms < 1.0:
            # So it is for nearly every turn.
            self._now[0] += messages
            return
        self._now[bisect_right(BOUNDS, ms)] += messages
        if ms > self.longest_ms:
            self.longest_ms = ms

    def end_minute(self) -> None:
        """A minute is over: show it, and begin the next one."""
        self._last = self._now
        self._now = [0] * (len(BOUNDS) + 1)

    def distribution(self) -> str:
        """The last minute as tools read it; C{"null"} before there is one."""
        last = self._last
        if last is None:
            return "null"
        shown = []
        begin = 0
        for name, bound in SHOWN:
            end = len(last) if bound is None else BOUNDS.index(bound) + 1
            shown.append(f"[{name}]:{sum(last[begin:end])} ")
            begin = end
        return "".join(shown)

    def quantile_ms(self, share: float) -> float:
        """How long that share of the last minute's messages took at most.

        Within a class it is taken that they are spread evenly; 0.0 without messages.

        @param share: 0 to 1.
        """
        last = self._last or ()
        wanted = share * sum(last)
        if not wanted:
            return 0.0
        seen = low = 0
        for count, high in zip(last, BOUNDS, strict=False):
            if count and seen + count >= wanted:
                return low + (high - low) * (wanted - seen) / count
            seen += count
            low = high
        return float(low)

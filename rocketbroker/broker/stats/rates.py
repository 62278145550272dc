# -*- test-case-name: tests.broker.stats.test_rates -*-
"""Rates per second, over the windows that tools ask for.

Totals are sampled once a second and kept for ten minutes, so a message costs nothing.
Rates are shown over 10, 60 and 600 seconds, as text with blanks between them; a window
that is longer than the broker has run is empty. docs/facts/broker.md 22.4."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, final

#: How often the totals are looked at.
SAMPLE_SECONDS: Final = 1

#: The windows, in samples.
WINDOWS: Final = (10, 60, 600)


@final
class Rates:
    """The rates of some totals."""

    def __init__(
        self, seconds: Callable[[], float], totals: Mapping[str, Callable[[], int]]
    ) -> None:
        """
        @param seconds: monotonic time.
        @param totals: the totals that are sampled, by name. All begin at 0; one may
            fall, when what it counted for is forgotten.
        """
        self._seconds = seconds
        self._totals = tuple(totals.values())
        self._at = {name: at for at, name in enumerate(totals, 1)}
        first = seconds(), *(0 for _ in totals)
        self._samples: deque[tuple[float, ...]] = deque([first], WINDOWS[-1] + 1)

    def sample(self) -> None:
        """Look at the totals; every L{SAMPLE_SECONDS}."""
        self._samples.append((self._seconds(), *(total() for total in self._totals)))

    def rate(self, name: str, window: int) -> float | None:
        """A total's rate over so many samples; None if it has not run so long."""
        samples = self._samples
        if len(samples) <= window:
            return None
        first, last = samples[-1 - window], samples[-1]
        if last[0] <= first[0]:
            return None
        at = self._at[name]
        return max(last[at] - first[at], 0) / (last[0] - first[0])

    def text(self, name: str) -> str:
        """The rates of a total as tools read them: C{"12.5 3.0 "}."""
        rates = [self.rate(name, window) for window in WINDOWS]
        return " ".join("" if rate is None else f"{rate:.2f}" for rate in rates)

    def sum_text(self, *names: str) -> str:
        """The rates of several totals together; 0.0 where they are not known."""
        return " ".join(
            f"{sum(self.rate(name, window) or 0.0 for name in names):.2f}"
            for window in WINDOWS
        )

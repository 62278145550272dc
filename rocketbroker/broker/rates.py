# -*- test-case-name: tests.broker.test_rates -*-
"""How many messages a second, over windows that tools ask for.

The broker sheet, section 22.4: over 10, 60 and 600 seconds, as text with blanks
between; a window that was not lived through yet is empty. The reference counts every
second; here the counters, of which there is one for each queue, are added up every ten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, final

#: How often the counter is looked at.
SAMPLE_SECONDS: Final = 10

#: The windows, in samples.
WINDOWS: Final = (1, 6, 60)


@final
class Rates:
    """The rates of one counter."""

    def __init__(self, seconds: Callable[[], float], count: Callable[[], int]) -> None:
        """
        @param seconds: monotonic time.
        @param count: the counter; it may fall, when what it counted for is forgotten.
        """
        self._seconds = seconds
        self._count = count
        self._samples: deque[tuple[float, int]] = deque(maxlen=WINDOWS[-1] + 1)
        self.sample()

    def sample(self) -> None:
        """Look at the counter; every L{SAMPLE_SECONDS}."""
        self._samples.append((self._seconds(), self._count()))

    def text(self) -> str:
        """The rates as tools read them: C{"12.5 3.0 "}."""
        return " ".join(self._rate(window) for window in WINDOWS)

    def _rate(self, window: int) -> str:
        if len(self._samples) <= window:
            return ""
        (begin, first), (end, last) = self._samples[-1 - window], self._samples[-1]
        if end <= begin:
            return ""
        return f"{max(last - first, 0) / (end - begin):.2f}"

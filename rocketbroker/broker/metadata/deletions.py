# -*- test-case-name: tests.broker.metadata.test_deletions -*-
"""The names that were deleted not long ago: what was counted of them is still shown.

A topic or a group that has just gone keeps its metrics for an hour, so that the last
scrapes before its end and what follows from them can be seen; then they go, as names
that come and go would fill a time series database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

#: For so long a name that was deleted is remembered, in ms.
KEPT_MS: Final = 3_600_000


@final
class Deletions:
    """Names and when they were deleted, the oldest first."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        """
        @param wall_ms: the time of day.
        """
        self._wall_ms = wall_ms
        self._times: dict[str, int] = {}

    def __len__(self) -> int:
        """How many names are remembered."""
        return len(self._times)

    def note(self, names: Iterable[str]) -> None:
        """These names are deleted now; those of an hour ago are forgotten."""
        now, times = self._wall_ms(), self._times
        for name in names:
            times.pop(name, None)
            times[name] = now
        while times:
            name = next(iter(times))
            if self.is_recent(name):
                break
            del times[name]

    def is_recent(self, name: str) -> bool:
        """Whether a name was deleted within the last hour."""
        at = self._times.get(name)
        return at is not None and self._wall_ms() - at < KEPT_MS

# -*- test-case-name: tests.replication.test_transfer_rate -*-
"""The transfer rate of a connection, second by second."""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class TransferRate:
    """Counts bytes by the second in which they went."""

    __slots__ = ("_before", "_count", "_second", "_seconds")

    def __init__(self, seconds: Callable[[], float]) -> None:
        """
        @param seconds: tells monotonic time.
        """
        self._seconds = seconds
        self._second = int(seconds())
        self._count = 0
        self._before = 0

    def add(self, size: int) -> None:
        """So many bytes went."""
        if int(self._seconds()) != self._second:
            self._turn()
        self._count += size

    def now(self) -> int:
        """How many went in this second."""
        self._turn()
        return self._count

    def last(self) -> int:
        """How many went in the last whole second."""
        self._turn()
        return self._before

    def rest(self) -> float:
        """For how many seconds this second lasts."""
        return int(self._seconds()) + 1 - self._seconds()

    def _turn(self) -> None:
        """Begin another second, if another has begun."""
        second = int(self._seconds())
        if second != self._second:
            self._before = self._count if second == self._second + 1 else 0
            self._second = second
            self._count = 0

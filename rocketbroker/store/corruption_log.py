# -*- test-case-name: tests.store.test_corruption_log -*-
"""Corrupt records that were found: counted, and named once in the log."""

from __future__ import annotations

from collections import deque
from typing import Final, final

from rocketbroker.files.blocks import BLOCK

#: So many corrupt positions are remembered, so that each is counted and told of once;
#: with more of them than this, the disk is what has to be looked at.
MAX_NOTED: Final = 10_000

#: So many sentences wait for somebody to log them.
MAX_SAID: Final = 100

#: So often the disk is asked for what it refuses to read before a reader is led past
#: it: those who ask meanwhile are told to come again, as it may only be away.
MAX_TRIES: Final = 5


@final
class CorruptionLog:
    """What was found to be corrupt since the start.

    @ivar records: how many places of the log, or blocks of what is made from it.
    """

    def __init__(self) -> None:
        self.records = 0
        self._positions: set[int] = set()
        self._sentences: deque[str] = deque(maxlen=MAX_SAID)
        self._tries: dict[int, int] = {}
        self._lost: list[tuple[int, int]] = []

    def note(self, position: int, what: str) -> None:
        """Count a place, and say it, if it is not known.

        @param what: a sentence with the position.
        """
        if position in self._positions:
            return
        if len(self._positions) >= MAX_NOTED:
            self._positions.clear()
        self._positions.add(position)
        self.records += 1
        self._sentences.append(what)

    def count(self, what: str) -> None:
        """Count a place that is not in the log, and say it."""
        self.records += 1
        self._sentences.append(what)

    def lose(self, position: int, end: int) -> None:
        """A start has taken for lost what the disk refuses to read there."""
        self._lost.append((position, end))

    def gives_up(self, position: int, bad: int) -> bool:
        """Whether a reader is to be led past what the disk refuses to read; each time
        it was asked for counts.

        @param position: that of the record.
        @param bad: that of its first byte that cannot be read.
        """
        if any(start <= position < end for start, end in self._lost):
            return True
        if len(self._tries) >= MAX_NOTED:
            self._tries.clear()
        block = bad // BLOCK
        self._tries[block] = self._tries.get(block, 0) + 1
        return self._tries[block] >= MAX_TRIES

    def said(self) -> list[str]:
        """The sentences since the last time."""
        sentences = []
        while self._sentences:
            sentences.append(self._sentences.popleft())
        return sentences

# -*- test-case-name: tests.store.test_corruption_log -*-
"""The log of corrupt records that were found: each is counted, and reported once."""

from __future__ import annotations

from collections import deque
from typing import Final, final

from rocketbroker.files.blocks import BLOCK

#: So many corrupt positions are remembered, so that each is counted and reported once;
#: with more of them than this, the disk is bad.
MAX_NOTED: Final = 10_000

#: At most so many messages wait to be logged.
MAX_MESSAGES: Final = 100

#: So often a record that the disk refuses is tried before readers pass over it: until
#: then they are answered to try again, as the disk may only be away.
MAX_TRIES: Final = 5


@final
class CorruptionLog:
    """The corrupt places that were found since the start.

    @ivar records: how many places of the log, or blocks of queues and index.
    """

    def __init__(self) -> None:
        self.records = 0
        self._positions: set[int] = set()
        self._messages: deque[str] = deque(maxlen=MAX_MESSAGES)
        self._tries: dict[int, int] = {}
        self._lost: list[tuple[int, int]] = []

    def note(self, position: int, message: str) -> None:
        """Count and report a place of the log, if it is not known yet.

        @param message: a sentence with the position.
        """
        if position in self._positions:
            return
        if len(self._positions) >= MAX_NOTED:
            self._positions.clear()
        self._positions.add(position)
        self.records += 1
        self._messages.append(message)

    def count(self, message: str) -> None:
        """Count and report a place that is not in the log."""
        self.records += 1
        self._messages.append(message)

    def note_lost(self, position: int, end: int) -> None:
        """Note that a start takes this part of the log, which the disk refuses to read,
        for lost."""
        self._lost.append((position, end))

    def should_skip(self, position: int, bad: int) -> bool:
        """Whether readers are to pass over a record that the disk refuses to read. Each
        call counts as a try.

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

    def take_messages(self) -> list[str]:
        """The messages since the last call, which are forgotten now."""
        messages = []
        while self._messages:
            messages.append(self._messages.popleft())
        return messages

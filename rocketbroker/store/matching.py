# -*- test-case-name: tests.store.test_verification -*-
"""The entries of one queue against the records that say they belong to it.

The log is walked once, and each record meets its entry in passing: both come in the
order of their offsets. What does not fit at once is kept aside and looked at when the
walk is over, because a record may be missing, an entry wrong, or the topic deleted and
made again, and only the whole tells which.

The store sheet, section 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, final

from rocketbroker.store.reader import StoreReader

#: Position, size, tag code.
Entry: TypeAlias = tuple[int, int, int]

#: So many entries of one queue are kept aside; more only come of a queue or a log that
#: is lost as a whole, where the first ones say enough.
MOST_ASIDE: Final = 20_000


@final
class Matching:
    """One queue.

    @ivar last: the offset of the last record of it in the log, -1 before the first.
    @ivar exists: whether the queue has files.
    @ivar dropped: how many entries were not kept aside because there were too many.
    """

    __slots__ = (
        "_aside",
        "_at",
        "_entries",
        "_queue_id",
        "_reader",
        "_topic",
        "dropped",
        "end",
        "exists",
        "first",
        "last",
        "next",
    )

    def __init__(self, reader: StoreReader, topic: str, queue_id: int) -> None:
        self._reader = reader
        self._topic = topic
        self._queue_id = queue_id
        self.exists = queue_id in reader.queues(topic)
        self.first = self.end = 0
        if self.exists:
            self.first = reader.min_offset(topic, queue_id)
            self.end = reader.max_offset(topic, queue_id)
        self.last = -1
        self.next = self.first
        self.dropped = 0
        self._entries: list[Entry] = []
        self._at = 0
        self._aside: dict[int, Entry] = {}

    def meet(self, offset: int, entry: Entry) -> bool:
        """A record comes by.

        @param entry: what its entry has to be.
        @return: whether there is an entry for its offset, right or wrong.
        """
        if offset == self.next:
            at = self._at
            if at < len(self._entries) and self._entries[at] == entry:
                self._at = at + 1
                self.next = offset + 1
                return True
        elif offset < self.next:
            if self._aside.get(offset) == entry:
                del self._aside[offset]
            return True
        if offset >= self.end:
            return False
        for passed, found in self._until(offset + 1):
            if passed != offset or found != entry:
                self._keep(passed, found)
        return True

    def rest(self) -> Iterator[tuple[int, Entry]]:
        """The entries that no record fits, with their offsets."""
        yield from sorted(self._aside.items())
        yield from self._until(self.end)

    def _until(self, offset: int) -> Iterator[tuple[int, Entry]]:
        """The next entries, up to an offset."""
        while self.next < offset:
            if self._at >= len(self._entries):
                self._entries = self._reader.entries(
                    self._topic, self._queue_id, self.next
                )
                self._at = 0
                if not self._entries:
                    self.next = self.end = offset
                    return
            found = self._entries[self._at]
            self._at += 1
            self.next += 1
            yield self.next - 1, found

    def _keep(self, offset: int, entry: Entry) -> None:
        if len(self._aside) < MOST_ASIDE:
            self._aside[offset] = entry
        else:
            self.dropped += 1

# -*- test-case-name: tests.broker.pop.test_revive -*-
"""One queue of the revive topic: the check points that are open, as far as it was read.

A check point is I{open} from when it is read until its messages are over: acknowledged,
or given out again. It is I{ripe} when no acknowledgement in time can be behind what was
read: the queue has been read to a message that was due L{GRACE_MS} after its messages
were, or to its end, and the timer has brought all that was due until then.

The group's committed offset is that of the last message with nothing open up to it, as
in RocketMQ (where all others' is that of the next): a restart reads from behind it.

C{docs/facts/transaction-timer-pop.md} C12, trap 22.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from rocketbroker.records.check_points import Ack, CheckPoint
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.open_check_points import (
    OpenCheckPoint,
    OpenCheckPoints,
    read,
)
from rocketbroker.records.properties import TIMER_DELIVER_MS, TIMER_OUT_MS, find
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.interfaces import IQueue

#: How long acknowledgements are waited for that were sent in the last moment.
GRACE_MS: Final = 2000

#: The most check points that are open; nothing is read beyond it. Without a timer these
#: are all that are in flight.
MAX_OPEN: Final = 100_000

#: The names of the properties that say when a message was due, and that the timer
#: brought it.
_DELIVER_MS: Final = TIMER_DELIVER_MS.encode()
_OUT_MS: Final = TIMER_OUT_MS.encode()


@final
class ReviveQueue:
    """A queue of the revive topic and its open check points.

    @ivar queue: the store's handle.
    @ivar next_offset: what is read next.
    @ivar end: all that was read, and given out again, is on the disk once the log is
        flushed up to here.
    @ivar is_busy: whether a step of it is under way.
    @ivar retry_at: no step before, in seconds of the clock.
    @ivar strays: how many acknowledgements had no check point: they came too late.
    @ivar malformed: how many messages made no sense.
    """

    def __init__(self, queue: IQueue, next_offset: int) -> None:
        self.queue = queue
        self.next_offset = next_offset
        self.end = 0
        self.is_busy = False
        self.retry_at = 0.0
        self.strays = 0
        self.malformed = 0
        self._points = OpenCheckPoints()
        self._read_ms = 0
        self._marks: deque[tuple[int, int]] = deque()

    @property
    def open(self) -> int:
        """How many check points are open."""
        return len(self._points)

    @property
    def is_full(self) -> bool:
        """Whether no more may be read."""
        return len(self._points) >= MAX_OPEN

    def oldest(self) -> OpenCheckPoint | None:
        """The open one that was read first."""
        return next(iter(self._points), None)

    def take(self, message: StoredMessage, own_name: str) -> Ack | CheckPoint | None:
        """Read a message of the queue.

        @param own_name: of this broker.
        @return: what it is; None if it makes no sense.
        """
        self.next_offset = message.queue_offset + 1
        self.end = max(self.end, message.position + message.size)
        own = message.property_bytes
        due = find(own, _DELIVER_MS)
        # The timer brings messages in the order of its slots. One that was stored at
        # once overtakes what it still has to bring, after a start, say.
        if due is not None and due.isdigit() and find(own, _OUT_MS) is not None:
            self._read_ms = max(self._read_ms, int(due))
        try:
            found = read(message)
        except Malformed:
            self.malformed += 1
            return None
        if isinstance(found, CheckPoint):
            self._points.add(found, message.queue_offset)
        elif found is not None and not self._points.end(found, own_name):
            self.strays += 1
        return found

    def ripe(self, now_ms: int, brought_ms: int) -> list[OpenCheckPoint]:
        """Those that have messages left, and have got all acknowledgements that they
        can get. Those that have got all and have none left are closed.

        @param brought_ms: all that was to be delivered before then was read.
        """
        by_queue_ms = min(self._read_ms, now_ms) - GRACE_MS
        ripe_ms = max(by_queue_ms, min(brought_ms, now_ms - GRACE_MS))
        ripe = [each for each in self._points if each.point.revive_ms < ripe_ms]
        for each in ripe:
            if each.is_over:
                self.close(each)
        return [each for each in ripe if not each.is_over]

    def close(self, found: OpenCheckPoint) -> None:
        """All its messages are over."""
        self._points.close(found)

    def mark(self) -> None:
        """Remember how far all is over."""
        oldest = self.oldest()
        offset = (self.next_offset if oldest is None else oldest.offset) - 1
        if not self._marks or self._marks[-1][1] != offset:
            self._marks.append((self.end, offset))

    def kept_offset(self, flushed: int) -> int | None:
        """The offset to commit, if it has moved.

        @param flushed: the log is on the disk up to here.
        """
        offset = None
        while self._marks and self._marks[0][0] <= flushed:
            offset = self._marks.popleft()[1]
        return offset

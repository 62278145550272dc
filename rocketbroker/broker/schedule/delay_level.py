# -*- test-case-name: tests.broker.schedule.test_delay_level -*-
"""One delay level: its due messages and its progress.

A level is a queue of SCHEDULE_TOPIC_XXXX; the tag codes of its entries are the times of
delivery. It has two offsets: all messages before C{offset} have been delivered; the
copies of all before C{kept_offset} are on the disk, too. Only the second is saved:
after a power failure the messages between them may have to be delivered again.

C{docs/facts/store.md} 18.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from rocketbroker.broker.messages.delay_messages import destination
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.interfaces import IQueue, IStore

#: Tag codes up to this one are places in a queue's extension, not times
#: (C{docs/facts/store.md} 8).
LAST_EXTENSION_ADDRESS: Final = -(1 << 31) - 1

#: How many bytes of messages one step delivers: what two or three connections send in
#: a turn, and the largest message whatever it is.
MAX_BYTES: Final = 256 << 10


@final
class DelayLevel:
    """A delay level with its due messages and its progress.

    @ivar number: 1 for the first.
    @ivar delay_ms: how long its messages wait.
    @ivar queue: where they do.
    @ivar offset: the next one to be delivered.
    @ivar kept_offset: the next one to be delivered after a power failure.
    @ivar ahead: offsets behind C{offset} that are delivered all the same.
    @ivar end: all that was delivered is on the disk once the log is flushed up to here.
    @ivar next_ms: the time of day at which the next message is due; 0 if that is not
        known.
    @ivar retry_at: not tried again before, in seconds of the clock.
    @ivar is_busy: whether a thread reads it.
    """

    __slots__ = (
        "_marks",
        "ahead",
        "delay_ms",
        "end",
        "is_busy",
        "kept_offset",
        "next_ms",
        "number",
        "offset",
        "queue",
        "retry_at",
    )

    def __init__(self, number: int, delay_ms: int, queue: IQueue, offset: int) -> None:
        self.number = number
        self.delay_ms = delay_ms
        self.queue = queue
        self.offset = offset
        self.kept_offset = offset
        self.ahead: set[int] = set()
        self.end = 0
        self.next_ms = 0
        self.retry_at = 0.0
        self.is_busy = False
        self._marks: deque[tuple[int, int]] = deque()

    def is_due(self, time_ms: int, now_ms: int) -> bool:
        """Whether a message is due that an entry says is due at C{time_ms}.

        A time that is further ahead than a message stored now would be due means that
        the clock was set back; RocketMQ delivers such a message at once
        (DeliverDelayedMessageTimerTask.correctDeliverTimestamp).
        """
        return not now_ms < time_ms <= now_ms + self.delay_ms

    def advance(self, offset: int) -> None:
        """Everything before C{offset} is delivered or discarded."""
        self.offset = offset
        self.next_ms = 0
        self._marks.append((self.end, offset))
        if self.ahead:
            self.ahead = {each for each in self.ahead if each >= offset}

    def resume(self, offset: int) -> None:
        """Everything before C{offset} turns out to be delivered, and on the disk."""
        self._marks.clear()
        self.offset = self.kept_offset = offset

    def keep(self, flushed: int) -> bool:
        """The log is on the disk up to C{flushed}; whether C{kept_offset} moved."""
        marks = self._marks
        before = self.kept_offset
        while marks and marks[0][0] <= flushed:
            self.kept_offset = marks.popleft()[1]
        return self.kept_offset != before

    def correct(self) -> int:
        """Move an offset that is outside of the queue to its nearest end.

        @return: how many messages are gone, because their part of the log is.
        """
        first, end = self.queue.min_offset, self.queue.next_offset
        if self.offset < first:
            lost = first - self.offset
            self.advance(first)
            return lost
        if self.offset > end:
            self.resume(end)
        return 0


@final
class Step:
    """What one look at a level has found.

    @ivar messages: those that are due, in order, each with its offset.
    @ivar unreadable: offset and physical offset of entries without such a message.
    @ivar next_offset: behind all of them.
    @ivar next_ms: the time of day at which the next one is due; 0 if that was not
        looked at.
    """

    __slots__ = ("messages", "next_ms", "next_offset", "unreadable")

    def __init__(self, offset: int) -> None:
        self.messages: list[tuple[int, StoredMessage]] = []
        self.unreadable: list[tuple[int, int]] = []
        self.next_offset = offset
        self.next_ms = 0


def find_due(store: IStore, level: DelayLevel, most: int, now_ms: int) -> Step:
    """I{Blocking if cold.} What is due in a level, from its offset on.

    @param most: how many entries are looked at.
    @param now_ms: the time of day.
    @raise OSError: the disk cannot be read.
    """
    step = Step(level.offset)
    size = 0
    for position, length, code in store.entries(level.queue, level.offset, most):
        offset = step.next_offset
        message = None
        if code <= LAST_EXTENSION_ADDRESS:
            message = waiting_at(store, level.queue, position, length)
            code = 0 if message is None else message.store_ms + level.delay_ms
        if not level.is_due(code, now_ms):
            step.next_ms = code
            break
        if offset not in level.ahead:
            message = message or waiting_at(store, level.queue, position, length)
            if message is None:
                step.unreadable.append((offset, position))
            elif size and size + length > MAX_BYTES:
                break
            else:
                size += length
                step.messages.append((offset, message))
        step.next_offset = offset + 1
    return step


def waiting_at(
    store: IStore, queue: IQueue, position: int, size: int
) -> StoredMessage | None:
    """The message that waits there; None if there is none that can be delivered."""
    data = store.record_at(position)
    if data is None or len(data) != size:
        return None
    try:
        message = decode(data)
    except Malformed:
        return None
    if (
        message.topic != SCHEDULE_TOPIC
        or message.queue_id != queue.queue_id
        or destination(message) is None
    ):
        return None
    return message

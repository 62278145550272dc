# -*- test-case-name: tests.client.test_process_queue -*-
"""The messages of one queue that are here. Pure: time is an argument.

A message waits, is given out, and is settled: acknowledged, sent back, or taken over by
the dead letters. What may be committed is the offset of the first message that is not
settled; so whoever goes on from there, we or another member, misses nothing.

Java's name for it is ProcessQueue, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import final

from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import MessageQueue


@final
class ProcessQueue:
    """One queue that is ours.

    @ivar queue: which.
    @ivar pull_offset: where the next pull begins.
    @ivar dropped: it is not ours any more; what is settled now counts for nothing.
    @ivar locked_until: of an ordered consumer: how long our lock is good, by the
        monotonic clock.
    @ivar broker_id: which broker of the queue's name the last pull was told to ask.
    @ivar committed: the last offset that was committed, None for none.
    @ivar pulled_at: when the last pull began, by the monotonic clock; 0: never.
    @ivar taken_at: when the last message was given out, by the same.
    @ivar in_turn: it stands in the inbox.
    @ivar resting: an ordered one waits until a message is tried again.
    @ivar leaving: it is about to be given up.
    @ivar paused: its user wants nothing of it for now.
    """

    def __init__(
        self, queue: MessageQueue, start: int, settings: ConsumerSettings
    ) -> None:
        """
        @param start: where it begins.
        """
        self._settings = settings
        self._waiting: deque[StoredMessage] = deque()
        self._waiting_bytes = 0
        self._unsettled: dict[int, StoredMessage] = {}
        self._given_at: dict[int, float] = {}
        self._room: Callable[[], None] | None = None
        self.queue = queue
        self.pull_offset = start
        self.dropped = False
        self.locked_until = 0.0
        self.broker_id = 0
        self.committed: int | None = None
        self.pulled_at = 0.0
        self.taken_at = 0.0
        self.in_turn = False
        self.resting = False
        self.leaving = False
        self.paused = False

    def __len__(self) -> int:
        return len(self._unsettled)

    def __repr__(self) -> str:
        return f"<{self.queue}: {len(self)} messages, next {self.pull_offset}>"

    @property
    def can_give(self) -> bool:
        """Whether a message can be given out now."""
        gives = not (self.dropped or self.resting or self.leaving or self.paused)
        return gives and bool(self._waiting)

    @property
    def given(self) -> int:
        """How many messages are given out and not settled."""
        return len(self._given_at)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be pulled for now."""
        settings = self._settings
        if (
            self.paused
            or len(self._waiting) >= settings.prefetch
            or self._waiting_bytes >= settings.prefetch_bytes
            or len(self._unsettled) >= settings.max_unacknowledged
        ):
            return True
        if settings.ordered or not self._unsettled:
            return False
        first = next(iter(self._unsettled))
        return self.pull_offset - first > settings.max_span

    def watch_room(self, callback: Callable[[], None]) -> None:
        """Call when there may be room again."""
        self._room = callback

    def add(self, messages: Sequence[StoredMessage], next_offset: int) -> None:
        """Messages have been pulled.

        @param messages: those that are wanted, by offset.
        @param next_offset: behind all that the pull has passed.
        """
        for message in messages:
            self._unsettled[message.queue_offset] = message
            self._waiting_bytes += len(message.body)
        self._waiting.extend(messages)
        self.pull_offset = next_offset

    def take(self, now: float) -> StoredMessage | None:
        """Give out the next message, None if none waits."""
        if not self._waiting:
            return None
        message = self._waiting.popleft()
        self._waiting_bytes -= len(message.body)
        self._given_at[message.queue_offset] = self.taken_at = now
        self._tell_room()
        return message

    def give_back(self, message: StoredMessage) -> None:
        """A message that was given out is to be given out again, before all others."""
        if self._is_out(message):
            del self._given_at[message.queue_offset]
            self._waiting.appendleft(message)
            self._waiting_bytes += len(message.body)

    def is_given(self, message: StoredMessage) -> bool:
        """Whether a message is given out, not settled, and the queue still ours."""
        return not self.dropped and self._is_out(message)

    def _is_out(self, message: StoredMessage) -> bool:
        """Whether it is this one that is given out.

        After a reset, or when the topic was made again, another message may have its
        offset.
        """
        offset = message.queue_offset
        return offset in self._given_at and self._unsettled.get(offset) is message

    def settle(self, message: StoredMessage) -> bool:
        """A message that was given out is done with; False if it was not there."""
        if not self._is_out(message):
            return False
        del self._given_at[message.queue_offset]
        del self._unsettled[message.queue_offset]
        self._tell_room()
        return True

    def reset(self, offset: int) -> None:
        """Go on somewhere else: all messages here are forgotten."""
        self._waiting.clear()
        self._waiting_bytes = 0
        self._unsettled.clear()
        self._given_at.clear()
        self.pull_offset = offset
        self._tell_room()

    def pause(self, is_paused: bool) -> None:
        """Want nothing of it, or want it again."""
        self.paused = is_paused
        self._tell_room()

    def drop(self) -> None:
        """It is not ours any more."""
        self.dropped = True
        self._tell_room()

    @property
    def commit_offset(self) -> int:
        """The offset that may be committed."""
        return next(iter(self._unsettled), self.pull_offset)

    def held(self) -> list[StoredMessage]:
        """The messages that are not settled."""
        return [*self._unsettled.values()]

    def overdue(self, now: float, most: int = 16) -> list[StoredMessage]:
        """Messages at the head of the queue that were given out too long ago."""
        found: list[StoredMessage] = []
        for offset, message in self._unsettled.items():
            given_at = self._given_at.get(offset)
            if (
                given_at is None
                or now - given_at <= self._settings.consume_timeout
                or len(found) >= most
            ):
                break
            found.append(message)
        return found

    def _tell_room(self) -> None:
        if self._room is not None:
            self._room()

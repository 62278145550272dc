# -*- test-case-name: tests.client.test_inbox -*-
"""The inbox of a consumer: queues in turn; in order, one message of a queue at a time.

All readers of a consumer, be it one C{async for} or twenty tasks of a listener, take
from here. Nothing is copied: what waits stays in the process queues, whose limits
bound it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, final

from rocketbroker.client.connections import FOREIGN
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.waits import Signal
from rocketbroker.errors import ClientClosed, ConfigurationError
from rocketbroker.records.record import StoredMessage


class Taken(NamedTuple):
    """A message that was given out, and the queue it belongs to."""

    queue: ProcessQueue
    message: StoredMessage


@final
class Inbox:
    """The messages of one consumer that wait for a reader.

    @ivar closed: nothing is given out any more.
    @ivar foreign: this is a child of the process that made it.
    """

    def __init__(self, runtime: Runtime, ordered: bool = False) -> None:
        """
        @param ordered: give out a message of a queue only when no other one of it is.
        """
        self._runtime = runtime
        self._ordered = ordered
        self._turn: deque[ProcessQueue] = deque()
        self._arrival = Signal(runtime)
        self.closed = False
        self.foreign = False
        runtime.watch_fork(self)

    def forked(self) -> None:
        """See L{rocketbroker.config.forks.Forked}: the parent gives them out."""
        self.foreign = True
        self.close()

    def offer(self, queue: ProcessQueue) -> None:
        """A queue may have a message to give out."""
        if queue.in_turn or not queue.can_give:
            return
        if self._ordered and queue.given:
            return
        queue.in_turn = True
        self._turn.append(queue)
        self._arrival.fire_one()

    async def next(self, seconds: float | None = None) -> Taken | None:
        """The next message.

        @param seconds: how long to wait for one; None: until there is one.
        @return: None if none came in time.
        @raise ClientClosed: it is closed.
        """
        deadline = None if seconds is None else self._runtime.monotonic() + seconds
        try:
            while True:
                taken = self.take()
                if taken is not None:
                    return taken
                left = None
                if deadline is not None:
                    left = deadline - self._runtime.monotonic()
                    if left <= 0:
                        return None
                await self._arrival.wait(left)
        finally:
            # Whoever was woken for more than was taken, or was cancelled, hands on.
            if self._turn:
                self._arrival.fire_one()

    def take(self) -> Taken | None:
        """The next message if one is here.

        @raise ClientClosed: it is closed.
        @raise ConfigurationError: this is a child of the process that made it.
        """
        if self.foreign:
            raise ConfigurationError(FOREIGN)
        if self.closed:
            raise ClientClosed("the consumer is closed")
        now = self._runtime.monotonic()
        while self._turn:
            queue = self._turn.popleft()
            queue.in_turn = False
            if not queue.can_give:
                continue
            if self._ordered and now >= queue.locked_until:
                continue
            message = queue.take(now)
            if message is not None:
                self.offer(queue)
                return Taken(queue, message)
        return None

    def close(self) -> None:
        """Give out nothing more; whoever waits is told."""
        self.closed = True
        self._turn.clear()
        self._arrival.fire()

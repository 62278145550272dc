# -*- test-case-name: tests.client.test_back_pressure -*-
"""Room for sends: so many may be under way, with so many bytes. The others wait.

A program that sends faster than brokers store would otherwise hold all of it in memory,
each message twice: as the program has it, and as the request. Whoever waits comes in
turn, and waits within the time of its send. RocketMQ: enableBackpressureForAsyncMode;
C{docs/facts/client.md} 4.1.
"""

from __future__ import annotations

from collections import deque
from typing import final

from rocketbroker.client.runtime import Future, Runtime
from rocketbroker.client.waits import resolve
from rocketbroker.errors import RequestTimeout


@final
class _Waiter:
    """A send that waits for room.

    @ivar admitted: it has it.
    """

    __slots__ = ("admitted", "future", "size")

    def __init__(self, future: Future[None], size: int) -> None:
        self.future = future
        self.size = size
        self.admitted = False


@final
class SendRoom:
    """The room of one producer.

    @ivar sends: how many are under way.
    @ivar size: how many bytes they have.
    """

    def __init__(self, runtime: Runtime, max_sends: int, max_bytes: int) -> None:
        self._runtime = runtime
        self._max_sends = max_sends
        self._max_bytes = max_bytes
        self._waiting: deque[_Waiter] = deque()
        self.sends = 0
        self.size = 0

    def take(self, size: int) -> bool:
        """Take room for a send of so many bytes, if nobody waits and there is some."""
        if self._waiting or not self._fits(size):
            return False
        self.sends += 1
        self.size += size
        return True

    def _fits(self, size: int) -> bool:
        """Whether there is room; for one that is larger than all when it is alone."""
        if self.sends >= self._max_sends:
            return False
        return not self.sends or self.size + size <= self._max_bytes

    async def wait(self, size: int, deadline: float) -> None:
        """Wait for room, and take it.

        @raise RequestTimeout: there was none in time; nothing is taken.
        """
        runtime = self._runtime
        waiter = _Waiter(runtime.future(), size)
        self._waiting.append(waiter)
        left = max(deadline - runtime.monotonic(), 0.001)
        timer = runtime.call_later(left, resolve, waiter.future)
        is_cancelled = True
        try:
            await waiter.future
            is_cancelled = False
        finally:
            timer.cancel()
            if not waiter.admitted:
                self._waiting.remove(waiter)
                self._admit()
            elif is_cancelled:
                self.leave(size)
        if not waiter.admitted:
            raise RequestTimeout(
                f"{self.sends} sends of {self.size} bytes are under way, and no room "
                "came for another one in time: send more slowly, or raise max_sends "
                "and max_send_bytes"
            )

    def leave(self, size: int) -> None:
        """Give the room of a send back."""
        self.sends -= 1
        self.size -= size
        if self._waiting:
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0].size):
            waiter = self._waiting.popleft()
            waiter.admitted = True
            self.sends += 1
            self.size += waiter.size
            resolve(waiter.future)

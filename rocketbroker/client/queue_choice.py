# -*- test-case-name: tests.client.test_queue_choice -*-
"""The choice of the queue for the next message. Pure: time is an argument.

Queues come in turn, but not those of the broker that has just failed, if others have
any. With latency fault tolerance a broker that was slow, or failed, is avoided for a
while: C{docs/facts/client.md} 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from rocketbroker.errors import MessageIllegal
from rocketbroker.records.hashing import java_hash
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.topic_view import MessageQueue

#: Seconds that a send took, and for how long its broker is avoided then.
AVOIDANCE: Final = (
    (15.0, 30.0),
    (5.0, 10.0),
    (3.0, 6.0),
    (1.8, 5.0),
    (0.55, 2.0),
)

#: A send that failed counts as one that took so many seconds.
FAILED_SECONDS: Final = 10.0


def avoided_seconds(took: float) -> float:
    """For how long a broker is avoided whose answer took so long."""
    return next((rest for least, rest in AVOIDANCE if took >= least), 0.0)


def queue_for_key(queues: Sequence[MessageQueue], key: str) -> MessageQueue:
    """The queue of all messages with the same key, as Java's hash selector has it.

    @param queues: at least one, in the order of the route.
    """
    return queues[abs(java_hash(key)) % len(queues)]


#: Chooses a queue: of the queues of a topic, as users know them, for a message.
Selector: TypeAlias = Callable[[Sequence[MessageQueue], Message], MessageQueue]


@final
class Selection:
    """The queue of one message, which its user's function chooses.

    As one given by hand, it is chosen for each try, and there is no other.
    """

    __slots__ = ("_message", "_selector")

    def __init__(self, selector: Selector, message: Message) -> None:
        self._selector = selector
        self._message = message

    def of(self, queues: Sequence[MessageQueue]) -> MessageQueue:
        """The queue.

        @param queues: at least one, in the order of the route.
        @raise MessageIllegal: the function gives something else.
        """
        chosen = self._selector(queues, self._message)
        if chosen not in queues:
            raise MessageIllegal(
                f"the selector has to give one of the {len(queues)} queues, "
                f"not {chosen!r}"
            )
        return chosen


#: Where a message goes: a queue, the choice of its user's function, None for any.
Where: TypeAlias = MessageQueue | Selection | None


@final
class QueueChoice:
    """The choice of one producer."""

    def __init__(self, avoid_slow: bool = False, first: int = 0) -> None:
        """
        @param avoid_slow: latency fault tolerance.
        @param first: where to begin; producers that start together do not all begin
            with the same queue.
        """
        self._avoid_slow = avoid_slow
        self._turn = first
        self._avoided_until: dict[str, float] = {}
        self._unreachable: set[str] = set()

    def next(
        self, queues: Sequence[MessageQueue], failed_broker: str | None, now: float
    ) -> MessageQueue:
        """The next queue in turn.

        @param queues: at least one.
        @param failed_broker: where the last try failed.
        """
        if self._avoid_slow:
            for is_good in (self._is_available(now), self._is_reachable):
                found = self._scan(queues, failed_broker, is_good)
                if found is not None:
                    return found
        elif failed_broker is not None:
            found = self._scan(queues, failed_broker, lambda broker: True)
            if found is not None:
                return found
        self._turn += 1
        return queues[self._turn % len(queues)]

    @property
    def unreachable(self) -> list[str]:
        """The brokers that are out of reach."""
        return [*self._unreachable]

    def reached(self, broker: str) -> None:
        """It is not out of reach any more."""
        self._unreachable.discard(broker)

    def forget(self, broker: str) -> None:
        """There is no such broker any more."""
        self._unreachable.discard(broker)
        self._avoided_until.pop(broker, None)

    def report(
        self,
        broker: str,
        seconds: float,
        failed: bool,
        now: float,
        may_be_reached: bool = False,
    ) -> None:
        """Tell how a send went.

        @param seconds: how long the answer took.
        @param failed: there was none, or the broker refused.
        @param may_be_reached: it is not taken for out of reach all the same.
        """
        if not self._avoid_slow:
            return
        until = now + avoided_seconds(FAILED_SECONDS if failed else seconds)
        if until > max(now, self._avoided_until.get(broker, 0.0)):
            self._avoided_until[broker] = until
        if failed and not may_be_reached:
            self._unreachable.add(broker)
        else:
            self._unreachable.discard(broker)

    def _scan(
        self,
        queues: Sequence[MessageQueue],
        failed_broker: str | None,
        is_good: Callable[[str], bool],
    ) -> MessageQueue | None:
        for _ in queues:
            self._turn += 1
            queue = queues[self._turn % len(queues)]
            if queue.broker != failed_broker and is_good(queue.broker):
                return queue
        return None

    def _is_available(self, now: float) -> Callable[[str], bool]:
        return lambda broker: self._avoided_until.get(broker, 0.0) <= now

    def _is_reachable(self, broker: str) -> bool:
        return broker not in self._unreachable

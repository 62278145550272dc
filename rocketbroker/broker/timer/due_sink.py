# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""The sink of due messages: this broker's store, or another group.

An outlet takes some messages, in order, and says of each whether it is over: stored, or
of a kind that will never be. What is not over is brought again. (RocketMQ drops a
message after three attempts, unless timerEnableRetryUntilSuccess is set.)

C{docs/facts/transaction-timer-pop.md} B7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, final

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.messages.forwarded_message import (
    ForwardedMessage,
    timer_message,
)
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.messages.timer_messages import delivered, rolled
from rocketbroker.errors import BrokerError, ServiceNotAvailable
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.properties import INNER_MULTI_DISPATCH
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.interfaces import (
    MESSAGE_ILLEGAL,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    Draft,
    IQueue,
    IStore,
)

_LMQ_NAME: Final = INNER_MULTI_DISPATCH.encode()


class Due(NamedTuple):
    """A message that is due.

    @ivar message: as it waits.
    @ivar enqueue_ms: when it was entered into the wheel.
    @ivar rolls: whether it is only to be entered anew.
    @ivar place: topic and queue where it belongs; None if it does not say so.
    """

    message: StoredMessage
    enqueue_ms: int
    rolls: bool
    place: tuple[str, int] | None


class DueSink(Protocol):
    """The sink of due messages.

    @ivar end: the copies of all that was stored are before it in the commit log.
    """

    end: int

    async def put(self, due: Sequence[Due], now_ms: int) -> list[bool]:
        """Take messages; whether each is over."""


@final
class StoreOutlet:
    """Stores due messages where they belong.

    @ivar end: the copies of all that was stored are before it in the commit log.
    @ivar unreadable: how many did not say where they belong.
    @ivar refused: how many the store will never take.
    """

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        appends: OwnAppends,
        lmqs: Lmq,
    ) -> None:
        self.end = 0
        self.unreadable = 0
        self.refused = 0
        self._store = store
        self._lmqs = lmqs
        self._appends = appends
        #: Those that the messages of one append go to.
        self._queues: dict[tuple[str, int], IQueue] = {}

    async def put(self, due: Sequence[Due], now_ms: int) -> list[bool]:
        """See L{DueSink.put}."""
        return self.put_now(due, now_ms)

    def put_now(self, due: Sequence[Due], now_ms: int) -> list[bool]:
        """Store messages; whether each is over."""
        over = [False] * len(due)
        if self._store.refusal() is not None:
            # Someone has to ask again whether there is room; one message is enough.
            due = due[:1]
        drafts = []
        queues = self._queues
        queues.clear()
        draft: Draft | None
        for number, each in enumerate(due):
            message, enqueue_ms, rolls, place = each
            queue = None if rolls or place is None else queues.get(place)
            if queue is None or _LMQ_NAME in message.property_bytes:
                draft = self._draft(each, now_ms, number)
            else:
                # All but a few.
                draft = delivered(message, queue, enqueue_ms, now_ms, number)
            if draft is not None:
                drafts.append(draft)
            else:
                over[number] = self._is_over
        if drafts:
            self._appends.put(drafts)
        end = self.end
        for draft in drafts:
            at = draft.context
            assert type(at) is int
            if draft.status == PUT_OK:
                over[at] = True
                if draft.end > end:
                    end = draft.end
            elif draft.status in (MESSAGE_ILLEGAL, PROPERTIES_SIZE_EXCEEDED):
                over[at] = True
                words = f"it is too large or malformed: status {draft.status}"
                self._refuse(due[at].message, words)
        self.end = end
        return over

    def _draft(self, due: Due, now_ms: int, context: int) -> Draft | None:
        """The draft of a message; None if there can be none, now or ever."""
        message = due.message
        self._is_over = True
        place = due.place
        if place is None:
            self.unreadable += 1
            self._log.error(
                "The timer message at position {position} does not say where it "
                "belongs; it is not delivered",
                position=message.position,
            )
            return None
        if due.rolls:
            place = TIMER_TOPIC, 0
        queue = self._queues.get(place)
        if queue is None:
            try:
                queue = self._queues[place] = self._store.queue(*place)
            except ServiceNotAvailable:
                self._is_over = False
                return None
            except BrokerError as error:
                self._refuse(message, str(error))
                return None
        if due.rolls:
            return rolled(message, queue, due.enqueue_ms, now_ms, context)
        draft = delivered(message, queue, due.enqueue_ms, now_ms, context)
        if _LMQ_NAME in draft.properties:
            # Without room in its LMQs it is delivered to its topic all the same.
            with suppress(BrokerError):
                self._lmqs.spread(draft)
        return draft

    def _refuse(self, message: StoredMessage, reason: str) -> None:
        """Count and say what will never be stored."""
        self.refused += 1
        self._log.error(
            "The timer message at position {position} is not delivered: {reason}",
            position=message.position,
            reason=reason,
        )


@final
class EscapeOutlet:
    """Puts due messages to another group, in an absent master's place.

    What is only to be entered anew goes there to wait for its time.
    """

    def __init__(
        self, put: Callable[[ForwardedMessage], Awaitable[bool]], precision_ms: int
    ) -> None:
        """
        @param put: puts a message to another group; whether one has it.
        """
        self.end = 0
        self._put = put
        self._precision_ms = precision_ms

    async def put(self, due: Sequence[Due], now_ms: int) -> list[bool]:
        """See L{DueSink.put}."""
        taken: list[bool] = await gatherResults(
            [Deferred.fromCoroutine(self._put_one(each)) for each in due],
            consumeErrors=True,
        )
        return taken

    async def _put_one(self, due: Due) -> bool:
        escaped = timer_message(due.message, due.rolls, self._precision_ms)
        return escaped is None or await self._put(escaped)

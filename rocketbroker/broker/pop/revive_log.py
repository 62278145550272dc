# -*- test-case-name: tests.broker.pop.test_pop -*-
"""Check points and acknowledgements on their way into the log.

They are messages of the revive topic that become visible when they are due, by the
timer: a check point a second before its messages are, an acknowledgement when they are.
An acting master, which stores nothing, has another group keep them.
So a reader of the revive topic always meets a check point before what acknowledges it,
and never one that is not due. What is due already is stored there at once.

The properties stand in the order in which RocketMQ's map has them.

C{docs/facts/transaction-timer-pop.md} B2, C5, C8; C{docs/facts/broker.md} 20.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.forwarded_message import ForwardedMessage, new_message
from rocketbroker.broker.roles import Role
from rocketbroker.broker.services import Services
from rocketbroker.broker.timer.timer_service import TimerService
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.store import StoreOptions
from rocketbroker.records.check_points import (
    ACK_INTERVAL_MS,
    CHECK_POINT_TAG,
    Ack,
    CheckPoint,
)
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.names import TIMER_TOPIC, revive_topic
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.wire.codes import ResponseCode

#: By how many groups and topics is counted, a hundred bytes each; the rest is one.
MAX_COUNTED: Final = 65_536

#: Called with a draft when its outcome is known, and the response code.
Stored = Callable[[Draft, int], None]

#: What is counted: group, topic, whether it is a check point, status of the append.
Written = tuple[str, str, bool, int]


class Timer(Protocol):
    """What keeps messages until they are due."""

    def due_ms(self, deliver_ms: int) -> int | None:
        """When a message that is to be delivered at C{deliver_ms} becomes visible, as
        its property TIMER_OUT_MS says it; None if that is at once."""

    def brought_ms(self) -> int:
        """All messages that are to be delivered before then are in their topics."""


@final
class WheelTimer:
    """The timer wheel keeps them.

    One whose time is further ahead than the wheel takes is stored at once, and open
    until then.
    """

    def __init__(
        self, timers: TimerService, options: StoreOptions, wall_ms: Callable[[], int]
    ) -> None:
        self._timers = timers
        self._wall_ms = wall_ms
        self._precision_ms = timers.timers.precision_ms
        self.configure(options)

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self._most_ms = options.timer_max_delay_sec * 1000

    def due_ms(self, deliver_ms: int) -> int | None:
        """As L{TimerMessages<rocketbroker.broker.messages.timer_messages>} has it."""
        if not 0 < deliver_ms - self._wall_ms() <= self._most_ms:
            return None
        return (deliver_ms - 1) // self._precision_ms * self._precision_ms

    def brought_ms(self) -> int:
        """See L{Timer.brought_ms}.

        A message that is not entered yet is due after it was stored, and was stored no
        sooner than the last one that is.
        """
        timers = self._timers
        if not timers.is_on:
            return self._wall_ms()
        read_ms = timers.clock.read_ms
        entering = timers.entering
        return min(read_ms, entering.last_store_ms) if entering.behind() else read_ms


@final
class ReviveLog:
    """Writes them, with all else of a turn.

    @ivar topic: the revive topic.
    @ivar written: how many, by what they are and what became of them.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        batcher: AppendBatcher,
        timer: Timer,
        put_elsewhere: Callable[[ForwardedMessage], Coroutine[Any, Any, bool]],
    ) -> None:
        """
        @param timer: keeps check points until they are due.
        @param put_elsewhere: puts a message to another group; whether one has it.
        """
        options = context.settings.broker
        self.topic = revive_topic(options.broker_cluster_name)
        self.written: Counter[Written] = Counter()
        self._store = context.store
        self._batcher = batcher
        self._timer = timer
        self._queues = max(1, options.revive_queue_num)
        self._host = context.host
        self._wall_ms = context.wall_ms
        self._services: Services = context.services
        self._put_elsewhere = put_elsewhere
        self._next = -1
        self._codes: Final = {tag: tag_code(tag) for tag in ("ck", "ack", "bAck", "")}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._queues = max(1, settings.broker.revive_queue_num)

    @property
    def is_acting(self) -> bool:
        """Whether this broker acts for a master, so that it may store nothing."""
        return self._services.role is Role.ACTING_MASTER

    def check_role(self) -> None:
        """Refuse what is for masters.

        @raise ServiceNotAvailable: this is a slave that acts for none.
        """
        if not self.is_acting:
            self._batcher.check_role()

    def next_queue(self) -> int:
        """The revive queue whose turn it is."""
        self._next = (self._next + 1) % self._queues
        return self._next

    def put_check_point(self, point: CheckPoint, queue: int, stored: Stored) -> None:
        """Append a check point with this turn.

        @param stored: called with the outcome.
        """

        def settled(draft: Draft, code: int) -> None:
            self._count(point.group, point.topic, True, draft.status)
            stored(draft, code)

        self._put(
            CHECK_POINT_TAG,
            point.unique_key(),
            point.encode(),
            queue,
            point.revive_ms - ACK_INTERVAL_MS,
            settled,
        )

    def put_ack(self, ack: Ack, queue: int, due_ms: int, stored: Stored) -> None:
        """Append an acknowledgement with this turn.

        @param due_ms: when its messages would be given out again.
        @param stored: called with the outcome.
        """

        def settled(draft: Draft, code: int) -> None:
            self._count(ack.group, ack.topic, False, draft.status)
            stored(draft, code)

        self._put(ack.tag, ack.unique_key(), ack.encode(), queue, due_ms, settled)

    def _count(self, group: str, topic: str, is_point: bool, status: int) -> None:
        if len(self.written) >= MAX_COUNTED:
            # Groups are what clients call themselves.
            group = topic = ""
        self.written[group, topic, is_point, status] += 1

    def _put(
        self,
        tag: str,
        key: str,
        body: bytes,
        queue: int,
        deliver_ms: int,
        context: Stored,
    ) -> None:
        own = f"TIMER_DELIVER_MS\x01{deliver_ms}\x02UNIQ_KEY\x01{key}\x02TAGS\x01{tag}"
        is_acting = self.is_acting
        due_ms = None if is_acting else self._timer.due_ms(deliver_ms)
        if due_ms is None:
            properties = f"{own}\x02"
            place, code = self._store.queue(self.topic, queue), self._codes[tag]
        else:
            properties = (
                f"REAL_TOPIC\x01{self.topic}\x02{own}\x02TIMER_OUT_MS\x01{due_ms}\x02"
                f"REAL_QID\x01{queue}\x02"
            )
            place, code = self._store.queue(TIMER_TOPIC, 0), self._codes[tag]
        draft = Draft(
            place,
            body,
            properties.encode("utf-8", "replace"),
            0,
            0,
            self._wall_ms(),
            self._host,
            0,
            code,
            context,
            wait=False,
        )
        if is_acting:
            self._escape(draft, context)
        elif self._batcher.is_slave:
            context(draft, ResponseCode.SERVICE_NOT_AVAILABLE)
        else:
            self._batcher.drafts.append(draft)

    def _escape(self, draft: Draft, settled: Stored) -> None:
        """Put a message to another group."""
        escaped = new_message(self.topic, draft.queue.queue_id, draft)

        def put(is_put: bool) -> None:
            if is_put:
                draft.status = PUT_OK
            settled(draft, 0 if is_put else ResponseCode.SERVICE_NOT_AVAILABLE)

        done = Deferred.fromCoroutine(self._put_elsewhere(escaped))
        done.addCallback(put).addErrback(self._unexpected)

    def _unexpected(self, failure: Failure) -> None:
        self._log.failure("A check point could not be kept.", failure=failure)

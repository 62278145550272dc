# -*- test-case-name: tests.broker.acting.test_escape_delays -*-
"""Delivery of an absent master's delayed messages, to another group.

The slave that acts for a master has the messages in its log, and the offsets of the
levels as the master's were when it last asked for them. What the master has delivered
since then is recognised by its copies in the log (L{delay_recovery}), so that it is not
delivered again. What is due is put to another group, the messages of a step all at
once; what that does not take is tried again after L{REST_SECONDS}, in order.

The table of offsets is up to date whenever nothing is under way: the master asks for it
when it comes back, after it has said so and the slave has ended its work
(L{rocketbroker.broker.acting.acting_master}). Only messages behind one that nobody
took are delivered by both.

C{docs/facts/ha.md} 13, 14; C{docs/facts/store.md} 18.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredList, gatherResults
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.forwarded_message import ForwardedMessage, due_message
from rocketbroker.broker.roles import ACTING
from rocketbroker.broker.schedule.delay_level import DelayLevel, Step, find_due
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.broker.services import DELIVERY_SECONDS, Service, Services, always

ESCAPE_DELAYS: Final = Service(
    "delivery in a master's place",
    "messages whose delay is over go to another group",
    always(DELIVERY_SECONDS),
    roles=ACTING,
)

#: How many messages of a level are under way at once: what another broker stores in
#: some ms.
MAX_AT_ONCE: Final = 128

#: How long a level rests of which a message was not taken, or that cannot be read.
REST_SECONDS: Final = 1.0

#: Puts a message to another group; whether one has it.
Put = Callable[[ForwardedMessage], Awaitable[bool]]


@final
class EscapeDelays:
    """The service that passes due messages of delay levels to another group.

    @ivar delivered: how many messages other groups have taken.
    @ivar unreadable: how many could not be read.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        offsets: DelayOffsets,
        levels: Callable[[], Iterable[DelayLevel]],
        put: Put,
    ) -> None:
        """
        @param levels: I{Blocking.} The levels, as far as they are by offsets and log.
        """
        self.delivered = 0
        self.unreadable = 0
        self._clock = context.clock
        self._store = context.store
        self._offsets = offsets
        self._find_levels = levels
        self._put = put
        self._wall_ms = context.wall_ms
        self._in_thread: InThread = context.in_thread
        self._services: Services = context.services
        self._levels: list[DelayLevel] = []
        self._under_way: set[Deferred[None]] = set()

    def start(self) -> None:
        """Deliver whenever this broker acts for a master."""
        self._services.begin(ESCAPE_DELAYS, self._look, self._resume)

    def _resume(self) -> Deferred[None]:
        """Begin where the master was."""
        self._levels = []
        return self._in_thread(self._find_levels).addCallback(self._resumed)

    def _resumed(self, levels: Iterable[DelayLevel]) -> None:
        self._levels = list(levels)
        self._offsets.lead()

    def ended(self) -> Deferred[None]:
        """Fires when nothing is under way."""
        ends: list[Deferred[None]] = []
        for each in self._under_way:
            end: Deferred[None] = Deferred()
            each.addBoth(self._end, end)
            ends.append(end)
        return DeferredList(ends).addCallback(lambda _: None)

    @staticmethod
    def _end(result: None, end: Deferred[None]) -> None:
        end.callback(None)

    def _goes_on(self) -> bool:
        return self._services.is_on(ESCAPE_DELAYS)

    def _look(self) -> None:
        """Deliver what is due in each level that rests no more."""
        now_ms, now = self._wall_ms(), self._clock.seconds()
        for level in self._levels:
            if level.is_busy or now < level.retry_at:
                continue
            level.correct()
            if level.offset < level.queue.max_offset and level.is_due(
                level.next_ms, now_ms
            ):
                self._begin(level, now_ms)

    def _begin(self, level: DelayLevel, now_ms: int) -> None:
        level.is_busy = True
        over: Deferred[None] = Deferred()
        self._under_way.add(over)
        done = Deferred.fromCoroutine(self._deliver(level, now_ms))
        done.addErrback(partial(self._failed, level))
        done.addBoth(lambda _: self._over(level, over))

    def _over(self, level: DelayLevel, over: Deferred[None]) -> None:
        level.is_busy = False
        self._under_way.discard(over)
        over.callback(None)

    def _failed(self, level: DelayLevel, failure: Failure) -> None:
        level.retry_at = self._clock.seconds() + REST_SECONDS
        self._log.failure("Delayed messages cannot be delivered.", failure=failure)

    async def _deliver(self, level: DelayLevel, now_ms: int) -> None:
        """Put elsewhere what is due in a level, one step of it."""
        read = partial(find_due, self._store, level, MAX_AT_ONCE, now_ms)
        step = await self._in_thread(read)
        if not self._goes_on():
            return
        taken: list[bool] = await gatherResults(
            [
                Deferred.fromCoroutine(self._put_one(due_message(message)))
                for _, message in step.messages
            ],
            consumeErrors=True,
        )
        self._settle(level, step, taken)
        if level.offset:
            self._offsets.put(level.number, level.offset)
            self._offsets.save()

    async def _put_one(self, escaped: ForwardedMessage) -> bool:
        return await self._put(escaped)

    def _settle(self, level: DelayLevel, step: Step, taken: list[bool]) -> None:
        """Note what became of a step."""
        passed = [offset for offset, _ in step.unreadable]
        if passed:
            self.unreadable += len(passed)
            self._log.error(
                "{count} messages of delay level {delay_level} cannot be read or do "
                "not say where they belong; they are not delivered",
                count=len(passed),
                delay_level=level.number,
            )
        again = None
        for (offset, _), is_taken in zip(step.messages, taken, strict=True):
            if is_taken:
                self.delivered += 1
                passed.append(offset)
            elif again is None:
                again = offset
        if again is None:
            level.advance(step.next_offset)
            level.next_ms = step.next_ms
            return
        level.retry_at = self._clock.seconds() + REST_SECONDS
        level.advance(again)
        level.ahead.update(offset for offset in passed if offset > again)

# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""Delivery of due messages from the timer wheel, slot by slot.

A slot is delivered as soon as it is over, and all of it before the next. What is not
taken is brought again after L{REST_SECONDS}; nothing that comes after it overtakes it.

A slot with very many messages is read before it is over, as far as memory allows: then
it takes half the time until the last of them is stored.

C{docs/facts/transaction-timer-pop.md} B6, B7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.services import Service
from rocketbroker.broker.timer.already_delivered import copy_key
from rocketbroker.broker.timer.due_sink import Due, DueSink
from rocketbroker.broker.timer.due_slot import DueSlot
from rocketbroker.broker.timer.step_runner import Pauses
from rocketbroker.broker.timer.timer_counts import TimerCounts
from rocketbroker.broker.timer.wheel_clock import WheelClock
from rocketbroker.store.timerwheel.units import NONE

#: How many messages one step delivers, and how many bytes of them: some ms.
MAX_MESSAGES: Final = 512
MAX_BYTES: Final = 256 << 10

#: A slot is read ahead if it is over within so many ms, and has so many messages: fewer
#: take some ms, and of more not even the places are kept.
AHEAD_MS: Final = 3000
MIN_AHEAD: Final = 2000
MAX_AHEAD: Final = 1_000_000

#: So many ms before its end such a slot is waited for: the next look may be late.
LAST_MS: Final = 100

#: So many bytes of records are read ahead. In memory they take about three times as
#: much, until they are delivered.
MAX_AHEAD_BYTES: Final = 32 << 20

#: How long delivery rests when something was not taken, in seconds.
REST_SECONDS: Final = 0.5


@final
class WheelDeliver:
    """Delivers what is due, in some roles.

    @ivar lost: how many messages were gone from the commit log before they were due.
    @ivar failures: how many steps were not taken whole.
    @ivar not_before: nothing is delivered before, in seconds of the clock.
    @ivar copies: the keys of copies that are not made again.
    @ivar step_messages: how many messages one step delivers.
    @ivar least_ahead: how many messages a slot has that is read ahead.
    @ivar ahead_bytes: how many bytes of records are read ahead.
    """

    def __init__(
        self,
        context: BrokerContext,
        clock: WheelClock,
        counts: TimerCounts,
        pauses: Pauses,
        may_deliver: Callable[[], bool],
    ) -> None:
        """
        @param may_deliver: whether all is entered that has to be before.
        """
        self.lost = 0
        self.failures = 0
        self.not_before = 0.0
        self.copies: set[bytes] = set()
        self.step_messages = MAX_MESSAGES
        self.least_ahead = MIN_AHEAD
        self.ahead_bytes = MAX_AHEAD_BYTES
        self._store = context.store
        self._clock = clock
        self._counts = counts
        self._wall_ms = context.wall_ms
        self._seconds = context.clock.seconds
        self._pauses = pauses
        self._services = context.services
        self._may_deliver = may_deliver
        self._ahead: DueSlot | None = None

    def look(self, outlet: DueSink, service: Service) -> Deferred[None] | None:
        """Bring what is due to an outlet, while a service is on; fires when that is
        done."""
        clock = self._clock
        write_ms = clock.move_write_time()
        if self._seconds() < self.not_before or not self._may_deliver():
            return None
        ms = clock.timers.wheel.next_used(clock.read_ms, write_ms)
        if ms < write_ms:
            return self._pauses.begin(self._deliver(outlet, service))
        if clock.read_ms < write_ms:
            clock.read_ms = write_ms
            clock.note_time()
        return self._look_ahead(outlet, service)

    def _goes_on(self, service: Service) -> bool:
        return not self._pauses.is_stopped and self._services.is_on(service)

    async def _deliver(self, outlet: DueSink, service: Service) -> None:
        clock, wheel = self._clock, self._clock.timers.wheel
        while self._goes_on(service):
            write_ms = clock.move_write_time()
            clock.read_ms = wheel.next_used(clock.read_ms, write_ms)
            slot = wheel.get(clock.read_ms) if clock.read_ms < write_ms else None
            if slot is None:
                clock.note_time()
                return
            if slot.last >= 0:
                clock.begin_slot()
                try:
                    if not await self._deliver_slot(slot.last, outlet, service):
                        return
                finally:
                    clock.end_slot()
                wheel.passed(slot)
            clock.read_ms += clock.timers.precision_ms
            clock.note()

    async def _deliver_slot(self, last: int, outlet: DueSink, service: Service) -> bool:
        """Deliver all messages of a slot; whether it is over."""
        ms = self._clock.read_ms
        known, self._ahead = self._ahead, None
        if known is not None and known.begin_ms != ms:
            known = None
        slot = await self._open(ms, last, service, known)
        if slot is None:
            return False
        lost = 0
        while len(slot):
            if not self._goes_on(service):
                return False
            read = partial(slot.read, self.step_messages, MAX_BYTES)
            is_cold = not slot.is_ready and slot.is_cold(self.step_messages)
            due = await self._pauses.run(read, is_cold)
            self.lost += slot.lost - lost
            lost = slot.lost
            if not await self._bring(due, outlet, service):
                return False
            await self._pauses.rest()
        return True

    async def _open(
        self, ms: int, last: int, service: Service, known: DueSlot | None = None
    ) -> DueSlot | None:
        """A slot whose messages can be read; None if the service is not on any more.

        @param known: what was read ahead of it.
        """
        run, timers = self._pauses.run, self._clock.timers
        behind = NONE if known is None else known.last
        end_ms = ms + timers.precision_ms
        slot = DueSlot(self._store, timers.log, last, ms, end_ms, behind)
        while await run(slot.walk, slot.is_walk_cold()):
            await self._pauses.rest()
            if not self._goes_on(service):
                return None
        if known is not None and not slot.is_whole:
            return await self._open(ms, last, service)
        cold = slot.is_cold(len(slot))
        while await run(partial(slot.read_deleting, self.step_messages), cold):
            await self._pauses.rest()
        if known is not None:
            slot.take_over(known)
        return slot

    # Reading ahead.

    def forget(self) -> None:
        """Forget what was read ahead: the log may be another one."""
        self._ahead = None

    def _look_ahead(self, outlet: DueSink, service: Service) -> Deferred[None] | None:
        """Read a full slot that is over soon; fires when that is done."""
        clock, wheel = self._clock, self._clock.timers.wheel
        ms = wheel.next_used(clock.read_ms, clock.read_ms + AHEAD_MS)
        if self._ahead is not None and self._ahead.begin_ms == ms:
            left_ms = ms + clock.timers.precision_ms - self._wall_ms()
            if left_ms > LAST_MS:
                return None
            return self._pauses.begin(self._wait(left_ms, outlet, service))
        self._ahead = None
        slot = wheel.get(ms)
        if slot is None or slot.last < 0:
            return None
        if not self.least_ahead <= slot.messages <= MAX_AHEAD:
            return None
        return self._pauses.begin(self._read_ahead(ms, slot.last, outlet, service))

    async def _read_ahead(
        self, ms: int, last: int, outlet: DueSink, service: Service
    ) -> None:
        slot = await self._open(ms, last, service)
        if slot is None:
            return
        self._ahead = slot
        prepare = partial(slot.prepare, self.step_messages, MAX_BYTES)
        while slot.has_unread and slot.ready_bytes < self.ahead_bytes:
            await self._pauses.rest()
            if not self._goes_on(service) or self._clock.move_write_time() > ms:
                break
            await self._pauses.run(prepare, slot.is_cold(self.step_messages))
        await self._deliver(outlet, service)

    async def _wait(self, left_ms: int, outlet: DueSink, service: Service) -> None:
        """Deliver a slot as soon as it is over."""
        await self._pauses.rest((left_ms + 1) / 1000)
        await self._deliver(outlet, service)

    # Bringing.

    async def _bring(self, due: list[Due], outlet: DueSink, service: Service) -> bool:
        """Bring messages to an outlet until all are over; whether they are."""
        if self.copies:
            known = [each for each in due if copy_key(each) in self.copies]
            self._counts.delivered(known)
            due = [each for each in due if copy_key(each) not in self.copies]
        while due:
            if not self._goes_on(service):
                return False
            over = await outlet.put(due, self._wall_ms())
            self._clock.end = max(self._clock.end, outlet.end)
            if all(over):
                self._counts.delivered(due)
                break
            done = [each for each, is_over in zip(due, over, strict=True) if is_over]
            self._counts.delivered(done)
            due = [each for each, is_over in zip(due, over, strict=True) if not is_over]
            self.failures += 1
            await self._pauses.rest(REST_SECONDS)
        return True

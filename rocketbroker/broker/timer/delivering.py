# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""Delivers what is due, slot by slot.

A slot is delivered as soon as it is over, and all of it before the next. What is not
taken is brought again after L{REST_SECONDS}; nothing that comes after it overtakes it.

C{docs/facts/transaction-timer-pop.md} B6, B7.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.services import Service, Services
from rocketbroker.broker.timer.already_delivered import copy_key
from rocketbroker.broker.timer.due_slot import DueSlot
from rocketbroker.broker.timer.outlet import Due, Outlet
from rocketbroker.broker.timer.pauses import Pauses
from rocketbroker.broker.timer.timer_counts import TimerCounts
from rocketbroker.broker.timer.wheel_clock import WheelClock
from rocketbroker.store.interfaces import IStore

#: How many messages one step delivers, and how many bytes of them: some ms.
MAX_MESSAGES: Final = 512
MAX_BYTES: Final = 256 << 10

#: How long delivery rests when something was not taken, in seconds.
REST_SECONDS: Final = 0.5


@final
class Delivering:
    """Delivers what is due, in some roles.

    @ivar lost: how many messages were gone from the commit log before they were due.
    @ivar failures: how many steps were not taken whole.
    @ivar not_before: nothing is delivered before, in seconds of the clock.
    @ivar copies: the keys of copies that are not made again.
    """

    def __init__(
        self,
        store: IStore,
        clock: WheelClock,
        counts: TimerCounts,
        wall_ms: Callable[[], int],
        seconds: Callable[[], float],
        pauses: Pauses,
        services: Services,
        may_deliver: Callable[[], bool],
    ) -> None:
        """
        @param may_deliver: whether all is entered that has to be before.
        """
        self.lost = 0
        self.failures = 0
        self.not_before = 0.0
        self.copies: set[bytes] = set()
        self._store = store
        self._clock = clock
        self._counts = counts
        self._wall_ms = wall_ms
        self._seconds = seconds
        self._pauses = pauses
        self._services = services
        self._may_deliver = may_deliver

    def look(self, outlet: Outlet, service: Service) -> Deferred[None] | None:
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
        return None

    def _goes_on(self, service: Service) -> bool:
        return not self._pauses.is_stopped and self._services.is_on(service)

    async def _deliver(self, outlet: Outlet, service: Service) -> None:
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

    async def _deliver_slot(self, last: int, outlet: Outlet, service: Service) -> bool:
        """Deliver all messages of a slot; whether it is over."""
        run = self._pauses.run
        begin_ms, timers = self._clock.read_ms, self._clock.timers
        end_ms = begin_ms + timers.precision_ms
        slot = DueSlot(self._store, timers.log, last, begin_ms, end_ms)
        while await run(slot.walk, slot.is_walk_cold()):
            await self._pauses.rest()
            if not self._goes_on(service):
                return False
        cold = slot.is_cold(len(slot))
        while await run(partial(slot.read_deleting, MAX_MESSAGES), cold):
            await self._pauses.rest()
        while len(slot):
            if not self._goes_on(service):
                return False
            lost = slot.lost
            read = partial(slot.read, MAX_MESSAGES, MAX_BYTES)
            due = await run(read, slot.is_cold(MAX_MESSAGES))
            self.lost += slot.lost - lost
            if not await self._bring(due, outlet, service):
                return False
            await self._pauses.rest()
        return True

    async def _bring(self, due: list[Due], outlet: Outlet, service: Service) -> bool:
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

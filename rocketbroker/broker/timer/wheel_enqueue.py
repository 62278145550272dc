# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""Enqueuing of messages of the timer topic into the timer wheel, in their order.

A message whose slot is delivered already is delivered at once. As long as it is not,
the message goes there, even if the slot is over: check points of POP have to come
before what acknowledges them. What was entered after the checkpoint, before a crash, is
in the wheel, and not entered again. A slave enters no more than its master has.

C{docs/facts/transaction-timer-pop.md} B5, B10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.timer_messages import NEVER
from rocketbroker.broker.roles import MASTERS
from rocketbroker.broker.services import DELIVERY_SECONDS, Service, always
from rocketbroker.broker.timer.already_delivered import copy_key
from rocketbroker.broker.timer.due_sink import Due, StoreOutlet
from rocketbroker.broker.timer.step_runner import Pauses
from rocketbroker.broker.timer.timer_counts import TimerCounts
from rocketbroker.broker.timer.timer_records import TimerRecords
from rocketbroker.broker.timer.wheel_clock import WheelClock
from rocketbroker.records.properties import find
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.timerwheel.timers import MAX_WINDOW, Entry
from rocketbroker.store.timerwheel.units import topic_hash

ENTER_TIMERS: Final = Service(
    "entering of timers",
    "messages for a certain time get into the timer wheel",
    always(DELIVERY_SECONDS),
)
DELIVER_TIMERS: Final = Service(
    "delivery of timers",
    "messages whose time has come become visible",
    always(DELIVERY_SECONDS),
    roles=MASTERS,
)

#: How many messages one step enters: a ms or two.
MAX_MESSAGES: Final = 128

#: So many hashes of topics are remembered.
MAX_HASHES: Final = 4096

#: How long entering rests when it was refused, in seconds.
REST_SECONDS: Final = 0.5


class TimerMessage(NamedTuple):
    """A message of the timer topic.

    @ivar position: where it stands.
    @ivar message: None if it cannot be read.
    @ivar place: topic and queue where it belongs; None if it does not say so.
    @ivar out_ms: the time of its slot; None if it does not say so.
    @ivar deletes: whether it takes another one back.
    """

    position: int
    message: StoredMessage | None
    place: tuple[str, int] | None
    out_ms: int | None
    deletes: bool


class _Later(NamedTuple):
    """What is known of messages that are entered."""

    entries: list[Entry]
    changes: list[tuple[str, int, int]]


@final
class WheelEnqueue:
    """The enqueuing of messages of the timer topic into the wheel.

    @ivar unreadable: how many could not be.
    @ivar failures: how many steps were refused, and tried again.
    @ivar last_store_ms: when the message was stored that was entered last.
    @ivar last_at: when that was, in seconds of the clock.
    @ivar copies: the keys of copies that are not made again.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        clock: WheelClock,
        counts: TimerCounts,
        outlet: StoreOutlet,
        pauses: Pauses,
        limit: Callable[[], int],
    ) -> None:
        """
        @param outlet: takes what is due already.
        @param limit: the queue offset where entering ends for now.
        """
        self.unreadable = 0
        self.failures = 0
        self.last_store_ms = 0
        self.last_at = 0.0
        self.copies: set[bytes] = set()
        store = context.store
        self.options = context.settings.store
        self._store = store
        self._records = TimerRecords(store)
        self._clock = clock
        self._counts = counts
        self._outlet = outlet
        self._wall_ms = context.wall_ms
        self._seconds = context.clock.seconds
        self._pauses = pauses
        self._services = context.services
        self._limit = limit
        self._queue: IQueue | None = None
        self._until = 0
        self._hashes: dict[str, int] = {}

    def load(self, queue: IQueue) -> None:
        """Enter the messages of that queue."""
        self._queue = queue
        self._until = queue.next_offset

    def look(self) -> Deferred[None] | None:
        """Enter what has come; fires when that is done."""
        return self._pauses.begin(self._enter()) if self._has_to() else None

    def may_deliver(self) -> bool:
        """Whether all is entered that was there at the start.

        What takes a message back may be among it, and has to be entered before the slot
        of that is delivered.
        """
        queue, clock = self._queue, self._clock
        return (
            queue is None
            or self._is_far_behind()
            or self.options.timer_stop_enqueue
            or not self._services.is_on(ENTER_TIMERS)
            or clock.queue_offset >= min(self._until, queue.next_offset, self._limit())
        )

    def _is_far_behind(self) -> bool:
        """Whether slots of long ago are to be delivered: their places are needed."""
        clock, timers = self._clock, self._clock.timers
        end_ms = clock.write_ms - MAX_WINDOW * timers.precision_ms
        return (
            clock.read_ms < end_ms
            and timers.wheel.next_used(clock.read_ms, end_ms) < end_ms
        )

    def behind(self) -> int:
        """How many messages are not entered yet."""
        if self._queue is None:
            return 0
        return max(0, self._queue.max_offset - self._clock.queue_offset)

    def _has_to(self) -> bool:
        """Whether there is something to be entered now."""
        clock, queue = self._clock, self._queue
        clock.move_write_time()
        if queue is None or self.options.timer_stop_enqueue or self._pauses.is_stopped:
            return False
        if self._services.is_on(DELIVER_TIMERS) and self._is_far_behind():
            return False
        # A slave's log may have been cut; the master's goes on from there.
        clock.queue_offset = min(clock.queue_offset, queue.max_offset)
        clock.queue_offset = max(clock.queue_offset, queue.min_offset)
        return clock.queue_offset < min(queue.max_offset, self._limit())

    async def _enter(self) -> None:
        store, queue, clock = self._store, self._queue, self._clock
        assert queue is not None
        while self._services.is_on(ENTER_TIMERS) and self._has_to():
            offset = clock.queue_offset
            most = min(MAX_MESSAGES, queue.max_offset - offset, self._limit() - offset)
            read = partial(self._read, queue, offset, most)
            found = await self._pauses.run(read, store.is_cold(queue, offset))
            if not found or self._pauses.is_stopped or clock.queue_offset != offset:
                return
            if self._take(found):
                await self._pauses.rest()
            else:
                self.failures += 1
                await self._pauses.rest(REST_SECONDS)

    def _read(self, queue: IQueue, offset: int, most: int) -> list[TimerMessage]:
        """I{Blocking if cold.} Messages of the timer topic."""
        records, found = self._records, []
        for position, size, _ in self._store.entries(queue, offset, most):
            message = records.at(position, size)
            if message is None:
                found.append(TimerMessage(position, None, None, None, False))
                continue
            own = message.property_bytes
            deletes = b"TIMER_DEL_UNIQKEY\x01" in own and (
                find(own, b"TIMER_DEL_UNIQKEY") is not None
            )
            out_ms, place = records.destiny(message)
            found.append(TimerMessage(position, message, place, out_ms, deletes))
        return found

    def _take(self, found: Sequence[TimerMessage]) -> bool:
        """Enter messages, and deliver those whose slot is delivered; whether all of
        them."""
        at = 0
        while at < len(found):
            taken = self._take_later(found[at:])
            if taken is None:
                return False
            at += taken
            due = self._due(found[at:])
            over = self._put(due)
            at += over
            if over < len(due):
                return False
        return True

    def _due(self, found: Sequence[TimerMessage]) -> list[Due]:
        """The messages before the first one that has to wait."""
        due = []
        for each in found:
            if each.message is None or self._waits(each):
                break
            due.append(Due(each.message, NEVER, False, each.place))
        return due

    def _put(self, due: Sequence[Due]) -> int:
        """Deliver messages; how many of the first are over."""
        if not due:
            return 0
        is_new = [not self.copies or copy_key(each) not in self.copies for each in due]
        new = [each for each, is_so in zip(due, is_new, strict=True) if is_so]
        over = iter(self._outlet.put_now(new, self._wall_ms()) if new else ())
        passed = 0
        for is_so in is_new:
            if is_so and not next(over):
                break
            passed += 1
        self._counts.delivered(due[:passed])
        clock = self._clock
        clock.end = max(clock.end, self._outlet.end)
        clock.queue_offset += passed
        clock.note()
        return passed

    def _waits(self, each: TimerMessage) -> bool:
        """Whether the slot of a message is not delivered, or others deliver it; one
        that takes another back has nothing to take once its slot is delivered."""
        return (
            each.out_ms is None
            or each.out_ms >= self._clock.open_ms
            or each.deletes
            or each.position in self._clock.timers.entered
            or not self._services.is_on(DELIVER_TIMERS)
        )

    def _take_later(self, found: Sequence[TimerMessage]) -> int | None:
        """Enter the messages before the first one that is due.

        @return: how many; None if the disk refuses them.
        """
        clock = self._clock
        write_ms = clock.move_write_time()
        later = _Later([], [])
        taken = 0
        for each in found:
            if each.message is not None and not self._waits(each):
                break
            taken += 1
            self._note(later, each)
        if not taken:
            return 0
        try:
            clock.timers.enter(later.entries, write_ms)
        except OSError as error:
            self._log.error("Timers cannot be entered: {error}", error=error)
            return None
        changes: dict[str, int] = {}
        for name, by, delay_ms in later.changes:
            self._counts.came(name, delay_ms)
            changes[name] = changes.get(name, 0) + by
        for name, by in changes.items():
            self._counts.change(name, by)
        last = found[taken - 1].message
        if last is not None:
            self.last_store_ms, self.last_at = last.store_ms, self._seconds()
            clock.end = max(clock.end, last.position + last.size)
        clock.queue_offset += taken
        clock.note()
        return taken

    def _note(self, later: _Later, each: TimerMessage) -> None:
        """Note what is to be entered of a message."""
        position, message, place, out_ms, deletes = each
        if message is None or out_ms is None or place is None:
            self.unreadable += 1
            self._log.error(
                "The message at position {position} of the timer topic cannot be read "
                "or does not say when it is due; it is not delivered",
                position=position,
            )
            return
        due_ms = self._clock.floor(out_ms)
        clock = self._clock
        if position in clock.timers.entered or (deletes and due_ms < clock.open_ms):
            return
        name = place[0]
        code = self._hashes.get(name)
        if code is None:
            code = topic_hash(name)
            if len(self._hashes) < MAX_HASHES:
                self._hashes[name] = code
        later.entries.append(Entry(due_ms, position, message.size, deletes, code))
        later.changes.append((name, -1 if deletes else 1, due_ms - message.born_ms))

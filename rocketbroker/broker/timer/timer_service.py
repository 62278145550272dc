# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""The service of timers: enters what has to wait, delivers what is due.

I{Guarantees.} Nothing is delivered before its time, by the time of day, and a message
counts as delivered when it is stored where it belongs (PUT_OK); all else is tried
again, in order. A checkpoint does not go beyond what the disk has (L{wheel_clock}), so
no crash, not of the machine either, loses a message. After a crash what was entered
since the checkpoint is not entered again, and what was delivered since then is
recognised by its copies in the log (L{already_delivered}).

A slave enters what its master has entered, and is where its master is. As acting master
it puts what is due to another group. Files come with the first message that has to
wait.

C{docs/facts/transaction-timer-pop.md} B4 to B10.
"""

from __future__ import annotations

from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.roles import ACTING, MASTERS, Role
from rocketbroker.broker.services import DELIVERY_SECONDS, Service, Services, always
from rocketbroker.broker.stats.rates import Rates
from rocketbroker.broker.timer.already_delivered import already_delivered
from rocketbroker.broker.timer.due_sink import DueSink, StoreOutlet
from rocketbroker.broker.timer.recount import Recount
from rocketbroker.broker.timer.step_runner import Pauses
from rocketbroker.broker.timer.timer_counts import TimerCounts
from rocketbroker.broker.timer.wheel_clock import State, WheelClock
from rocketbroker.broker.timer.wheel_deliver import WheelDeliver
from rocketbroker.broker.timer.wheel_enqueue import (
    DELIVER_TIMERS,
    ENTER_TIMERS,
    WheelEnqueue,
)
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import StoreError
from rocketbroker.files.os_errors import reason
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.retention.cleaner import local_hour
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.store.timerwheel.timers import Flush, Timers
from rocketbroker.store.timerwheel.units import NONE

ESCAPE_TIMERS: Final = Service(
    "timers in a master's place",
    "messages whose time has come go to another group",
    always(DELIVERY_SECONDS),
    roles=ACTING,
)
FLUSH_TIMERS: Final = Service(
    "flush of timers",
    "a start goes on where the timers were",
    lambda s: max(1, s.store.timer_flush_interval_ms) / 1000,
)
COUNT_TIMERS: Final = Service(
    "count of timers",
    "counts of what waits that a crash has left wrong are set right at night",
    always(300),
    roles=MASTERS,
)

#: How often the checkpoint of a broker is written whose timers only see time pass.
IDLE_SECONDS: Final = 60.0

#: How often the timer log is looked at for files that are not needed any more.
CLEAN_SECONDS: Final = 30.0

#: The windows of L{TimerService.snapshot}, in seconds (TimerMetrics of RocketMQ).
SNAPSHOT_BOUNDS: Final = (5, 60, 300, 900, 3600, 14400, 28800, 86400)


@final
class TimerService:
    """The service that lets messages wait for a time.

    @ivar timers: wheel and timer log.
    @ivar clock: how far the work is.
    @ivar counts: what waits, by topic.
    @ivar entering: enters what has to wait.
    @ivar delivering: delivers what is due.
    @ivar recount: counts anew what waits.
    @ivar is_on: whether timers are switched on.
    @ivar flushes: how many checkpoints were written; L{flush_failures}: and were not.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        timers: Timers,
        counts: TimerCounts,
        outlet: StoreOutlet,
    ) -> None:
        """
        @param timers: not loaded yet.
        @param outlet: takes what is due, of a master.
        """
        clock, store, settings = context.clock, context.store, context.settings
        wall_ms = context.wall_ms
        self.timers = timers
        self.counts = counts
        self.outlet = outlet
        self.is_on = settings.store.timer_wheel_enable
        self.flushes = 0
        self.flush_failures = 0
        self.clock = WheelClock(timers, store, wall_ms)
        self._pauses = Pauses(clock, context.in_thread)
        self.entering = WheelEnqueue(
            context, self.clock, counts, outlet, self._pauses, self._limit
        )
        self.delivering = WheelDeliver(
            context, self.clock, counts, self._pauses, self.entering.may_deliver
        )
        self.recount = Recount(
            self.clock,
            counts,
            settings.store,
            lambda: local_hour(wall_ms()),
            clock.seconds,
            self._pauses,
        )
        self._reactor = clock
        self._store = store
        self._wall_ms = wall_ms
        self._in_thread: InThread = context.in_thread
        self._services: Services = context.services
        self._disappear = settings.store.disappear_time_after_start / 1000
        self._checkpoint = Checkpoint()
        self._lock = DeferredLock()
        self._saved_at = self._cleaned_at = clock.seconds()
        self._rates = Rates(
            clock.seconds,
            {
                "entered": lambda: counts.entered,
                "delivered": lambda: counts.delivered_messages,
            },
        )

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.entering.options = self.recount.options = settings.store

    # Start and stop.

    def load(self) -> None:
        """I{Blocking.} Read the files; the store is open.

        @raise StoreError: the disk refuses; one sentence.
        """
        if not self.is_on:
            return
        store, now_ms = self._store, self._wall_ms()
        try:
            found = self._checkpoint = self.timers.load(
                now_ms, store.published_position
            )
            queue = store.queue(TIMER_TOPIC, 0)
            delivered_from = self._delivered_from(queue)
            copies = already_delivered(store, delivered_from)
        except OSError as error:
            raise StoreError(f"The timers cannot be read: {reason(error)}.") from error
        for sentence in self.timers.report:
            self._log.warn("{sentence}", sentence=sentence)
        self.counts.load()
        offset = min(max(found.queue_offset, queue.min_offset), queue.max_offset)
        self.entering.load(queue)
        self.entering.copies = self.delivering.copies = copies
        self.delivering.not_before = self._reactor.seconds() + self._disappear
        log_position = min(found.log_position, self.timers.log.end)
        if delivered_from < 0:
            # RocketMQ wrote it: what this run makes can be recognised.
            delivered_from = store.published_position
        state = State(found.read_ms, offset, log_position, delivered_from)
        self.clock.begin(state, queue.max_offset)

    def _delivered_from(self, queue: IQueue) -> int:
        """Where copies of what was due last begin in the log; -1 if it is not known."""
        if self.timers.has_checkpoint:
            return self.timers.delivered_from
        # A run that wrote none has delivered nothing before the first timer.
        entries = self._store.entries(queue, queue.min_offset, 1)
        return entries[0][0] if entries else NONE

    def start(self) -> None:
        """Begin to enter and to deliver."""
        if not self.is_on:
            return
        begin = self._services.begin
        deliver = partial(self.delivering.look, self.outlet, DELIVER_TIMERS)
        begin(ENTER_TIMERS, self.entering.look)
        begin(DELIVER_TIMERS, deliver, self.delivering.forget)
        begin(FLUSH_TIMERS, self._look)
        begin(COUNT_TIMERS, self.recount.look)

    def escape_by(self, outlet: DueSink) -> None:
        """Whenever this broker acts for a master, bring what is due to an outlet."""
        if self.is_on:
            escape = partial(self.delivering.look, outlet, ESCAPE_TIMERS)
            self._services.begin(ESCAPE_TIMERS, escape, self._lead)

    def stop(self) -> Deferred[None]:
        """Enter and deliver nothing any more; fires when nobody works for it."""
        return self._pauses.stop()

    def ended(self) -> Deferred[None]:
        """Fires when nothing that was due is under way."""
        return self._pauses.settled()

    def close(self) -> Deferred[None]:
        """Write how far the timers are; the store is flushed. Fires when done."""
        if not self.is_on or not (self.timers.is_there or self.clock.has_changed):
            return succeed(None)
        flushed: Deferred[None] = self._lock.run(self._flush)
        return flushed.addBoth(self._close)

    def _close(self, result: None) -> None:
        self.timers.close()
        return result

    # How far the work is.

    def _limit(self) -> int:
        """Where entering ends: of a slave, where its master has ended."""
        if self._services.role is Role.SLAVE:
            return self._checkpoint.master_queue_offset
        return 1 << 62

    def checkpoint(self) -> Checkpoint:
        """How far the timers are, for slaves and for a master that comes back."""
        if not self.is_on:
            return Checkpoint(self.clock.floor(self._wall_ms()))
        if self._services.is_on(DELIVER_TIMERS):
            return self._checkpoint._replace(read_ms=self.clock.kept.read_ms)
        return self._checkpoint._replace(read_ms=self.clock.read_ms)

    def become(self, master: Checkpoint) -> None:
        """As a slave be where the master is."""
        if not self.is_on or self._services.role is not Role.SLAVE:
            return
        self._checkpoint = master._replace(queue_offset=self._checkpoint.queue_offset)
        self.clock.read_ms = self.clock.floor(master.read_ms)
        self.clock.note()

    def take_back(self, other: Checkpoint) -> None:
        """As a master that comes back be where the one is that acted for it."""
        if self.is_on and other.is_newer(self._checkpoint):
            self._checkpoint = other._replace(
                queue_offset=self._checkpoint.queue_offset
            )
            self._lead()

    def _lead(self) -> None:
        """Begin to deliver where the master was, with all that may not be entered."""
        clock, found = self.clock, self._checkpoint
        self.delivering.forget()
        if found.state_version or found.version_ms or found.counter:
            clock.queue_offset = min(clock.queue_offset, found.master_queue_offset)
            clock.read_ms = min(clock.floor(found.read_ms), clock.move_write_time())
        clock.note()

    # Checkpoints.

    def _look(self) -> Deferred[None] | None:
        """Write a checkpoint if it is time."""
        self._rates.sample()
        self.counts.save()
        is_idle = self._reactor.seconds() - self._saved_at < IDLE_SECONDS
        if self.clock.has_changed or (self.timers.is_there and not is_idle):
            flushed: Deferred[None] = self._lock.run(self._flush)
            return flushed
        return None

    def _flush(self) -> Deferred[None]:
        """Put wheel, timer log and checkpoint on the disk."""
        clock = self.clock
        if clock.has_changed:
            self._checkpoint = self._checkpoint.next_version(self._wall_ms())
        clock.has_changed = False
        self._saved_at = self._reactor.seconds()
        kept = clock.keep(self._store.flushed_position)
        if self._services.role is Role.SLAVE:
            master_offset = self._checkpoint.master_queue_offset
        else:
            master_offset = kept.queue_offset
        checkpoint = self._checkpoint = self._checkpoint._replace(
            read_ms=kept.read_ms,
            log_position=kept.log_position,
            queue_offset=min(kept.queue_offset, master_offset),
            master_queue_offset=master_offset,
        )
        flush = self.timers.begin_flush()

        def write() -> None:
            flush.write(checkpoint, kept.delivered_from)
            self._clean()

        written = self._in_thread(write)
        return written.addCallbacks(
            self._written,
            self._not_written,
            callbackArgs=(kept.read_ms,),
            errbackArgs=(flush,),
        )

    def _written(self, _: None, read_ms: int) -> None:
        self.flushes += 1
        self.timers.wheel.prune(read_ms)
        if self.clock.is_behind:
            # What waits for the commit log's flush is for the next checkpoint.
            self.clock.has_changed = True

    def _not_written(self, failure: Failure, flush: Flush) -> None:
        flush.give_back()
        self.clock.has_changed = True
        if not self.flush_failures:
            self._log.error(
                "Timers cannot be written to the disk: {error}", error=failure.value
            )
        self.flush_failures += 1

    def _clean(self) -> None:
        """I{Blocking.} Remove a file of the timer log that is not needed any more.

        @raise OSError: the disk refuses.
        """
        now = self._reactor.seconds()
        if len(self.timers.log.starts) > 1 and now >= self._cleaned_at + CLEAN_SECONDS:
            self._cleaned_at = now
            self.timers.log.clean(self._store.min_position)

    # Figures.

    def read_behind_ms(self) -> int:
        """How far delivery is behind the time of day."""
        return max(0, self._wall_ms() - self.clock.read_ms) if self.is_on else 0

    def enqueue_latency_ms(self) -> int:
        """How long the message had waited that was entered last; 0 when it is no
        news."""
        entering = self.entering
        if not entering.last_store_ms or self._reactor.seconds() - entering.last_at > 2:
            return 0
        return max(0, self._wall_ms() - entering.last_store_ms)

    def snapshot(self) -> dict[int, int]:
        """How many messages are due within each of some bounds and not the one before,
        in seconds."""
        bounds = [1000 * seconds for seconds in SNAPSHOT_BOUNDS]
        counts = self.timers.wheel.counts(self.clock.write_ms, bounds)
        return dict(zip(SNAPSHOT_BOUNDS, counts, strict=True))

    def figures(self) -> dict[str, str]:
        """What request 28 says of timers."""
        if not self.is_on:
            return {}
        return {
            "timerCongestNum": str(self.timers.wheel.pending),
            "timerDequeueTps": str(self._rates.rate("delivered", 1) or 0.0),
            "timerEnqueueTps": str(self._rates.rate("entered", 1) or 0.0),
            "timerOffsetBehind": str(self.entering.behind()),
            "timerReadBehind": str(self.read_behind_ms() // 1000),
        }

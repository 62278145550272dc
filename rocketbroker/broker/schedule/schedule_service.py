# -*- test-case-name: tests.broker.schedule.test_schedule_service -*-
"""The schedule service: it delivers messages whose delay level has passed.

Each level in turn is looked at ten times a second, and without a pause while messages
are due. Due messages are stored in their real topics, many by one append, and wake
consumers like any other message. A turn delivers at most L{MAX_DELIVERED} messages, so
that a backlog after a restart leaves connections their share. Cold messages are read in
a thread.

I{Guarantees.} A message is delivered when its level has passed since it was stored, by
the time of day, and at most L{DELIVERY_SECONDS} later unless there is a backlog. As in
RocketMQ, a clock that is set ahead delivers early, a machine that slept delivers when
it wakes, and a clock that is set back to before the store time delivers at once. Only
PUT_OK counts as delivered; other deliveries are tried again, in order. The offset of a
level that is saved (every flushDelayOffsetInterval, and at the end) never passes a
message whose copy is not flushed, so no crash, not of the machine either, loses one.
Messages that were delivered after the last save could be delivered again after a crash;
the start looks for their copies (L{delay_recovery}), so that few are. After a clean
stop none is.

I{Discarded}, and counted: messages whose part of the log was removed before they were
due, records that cannot be read or have no real topic, and messages that can never be
stored (larger than maxMessageSize is now, or for one LMQ too many). RocketMQ stops its
level for ever at a message that it cannot store.

C{docs/facts/store.md} 18.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.appends.send_answers import QueueSends
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.delay_messages import (
    DelayMessages,
    delivered,
    destination,
)
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.messages.message_types import DELAY
from rocketbroker.broker.roles import MASTERS
from rocketbroker.broker.schedule.delay_level import DelayLevel, Step, find_due
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.broker.schedule.delay_recovery import resumed_offset
from rocketbroker.broker.services import DELIVERY_SECONDS, Service, always
from rocketbroker.errors import BrokerError, ServiceNotAvailable
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.interfaces import (
    MESSAGE_ILLEGAL,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    Draft,
)

DELIVERY: Final = Service(
    "delivery of delayed messages",
    "messages whose delay is over become visible",
    always(DELIVERY_SECONDS),
    roles=MASTERS,
)

#: How many messages are delivered before connections get their turn: some ms.
MAX_DELIVERED: Final = 128

#: How long a level rests that cannot be read, or after a mistake of ours.
BROKEN_SECONDS: Final = 10.0


@final
class ScheduleService:
    """The service that delivers the messages of delay levels.

    @ivar delivered: how many messages were delivered.
    @ivar delivered_bytes: how many bytes of the log that was.
    @ivar lost: how many were gone from the log before they were due.
    @ivar unreadable: how many could not be read or did not say where they belong.
    @ivar refused: how many the store would never take.
    @ivar failures: how many deliveries have to be tried again.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        offsets: DelayOffsets,
        delay_messages: DelayMessages,
        appends: OwnAppends,
        lmqs: Lmq,
    ) -> None:
        options = context.settings.store
        self.delivered = 0
        self.delivered_bytes = 0
        self.lost = 0
        self.unreadable = 0
        self.refused = 0
        self.failures = 0
        self._clock = context.clock
        self._store = context.store
        self._offsets = offsets
        self._delay_messages = delay_messages
        self._lmqs = lmqs
        self._appends = appends
        self._counter: Callable[[str, int, str], QueueSends] | None = None
        pending = options.schedule_async_deliver_max_pending_limit
        is_async = options.enable_schedule_async_deliver
        #: Another broker may have had so many of a level under way when it was killed.
        self._max_under_way = max(pending if is_async else 1, MAX_DELIVERED)
        self._wall_ms = context.wall_ms
        self._in_thread: InThread = context.in_thread
        self._services = context.services
        self._levels: deque[DelayLevel] = deque()
        self._call: IDelayedCall | None = None
        self._reading: set[Deferred[None]] = set()
        self._stopped = False

    def watch(self, counter: Callable[[str, int, str], QueueSends]) -> None:
        """Count what is delivered as messages that came in.

        @param counter: the counts of a queue and type of message.
        """
        self._counter = counter

    def load(self) -> None:
        """I{Blocking.} Read how far each level is; the store is open."""
        self._offsets.load()
        self._levels = self.levels()
        self._log_missing_levels()

    def levels(self) -> deque[DelayLevel]:
        """I{Blocking.} The levels, as far as they are by the table of offsets."""
        levels: deque[DelayLevel] = deque()
        for number, delay_ms in enumerate(self._delay_messages.delays, 1):
            queue = self._store.queue(SCHEDULE_TOPIC, number - 1)
            offset = self._offsets.get(number)
            if offset is None:
                offset = queue.min_offset
            level = DelayLevel(number, delay_ms, queue, offset)
            self._correct(level)
            self._pass_over(level)
            levels.append(level)
        return levels

    def _pass_over(self, level: DelayLevel) -> None:
        """Pass over what has been delivered since the file was written."""
        try:
            offset = resumed_offset(
                self._store, level, self._max_under_way, self._wall_ms()
            )
        except OSError as error:
            self._log.warn(
                "Delay level {delay_level} may deliver some messages again: {error}",
                delay_level=level.number,
                error=error,
            )
            return
        if offset > level.offset:
            level.resume(offset)

    def _log_missing_levels(self) -> None:
        """Warn of messages in levels that messageDelayLevel no longer has."""
        for queue in self._store.queues():
            number = queue.queue_id + 1
            left = queue.max_offset - (self._offsets.get(number) or queue.min_offset)
            if (
                queue.topic == SCHEDULE_TOPIC
                and number > len(self._levels)
                and left > 0
            ):
                self._log.warn(
                    "{count} messages wait in delay level {delay_level}, which "
                    "messageDelayLevel does not have; they are not delivered",
                    count=left,
                    delay_level=number,
                )

    def start(self) -> None:
        """Begin to deliver."""
        self._services.begin(DELIVERY, self._turn, self._resume)

    def _resume(self) -> Deferred[None]:
        """Begin as a slave that becomes a master does: where the last one was, as far
        as its offsets and the log say it."""
        return self._in_thread(self.levels).addCallback(self._resumed)

    def _resumed(self, levels: deque[DelayLevel]) -> None:
        self._levels = levels

    def become(self, value: Mapping[str, object]) -> None:
        """Be where a master is, as its table of offsets says."""
        self._offsets.become(value)
        for level in self._levels:
            offset = self._offsets.get(level.number)
            if offset is not None:
                level.resume(offset)

    def stop(self) -> Deferred[None]:
        """Deliver nothing any more; fires when no thread reads for it."""
        self._stopped = True
        if self._call is not None:
            self._call.cancel()
            self._call = None
        return DeferredList(list(self._reading)).addCallback(lambda _: None)

    def save(self) -> None:
        """Write down how far each level is, as far as the disk has it.

        A slave's table is a copy of the master's, and its levels stand still.
        """
        flushed = self._store.flushed_position
        for level in self._levels if self._services.is_on(DELIVERY) else ():
            level.keep(flushed)
            if level.kept_offset or self._offsets.get(level.number) is not None:
                self._offsets.put(level.number, level.kept_offset)
        self._offsets.save()

    def saved(self) -> Deferred[None]:
        """Fires when no write is under way."""
        return self._offsets.saved()

    def progress(self) -> dict[int, tuple[int, int]]:
        """By level, the next offset to be delivered and the end of its queue; without
        levels that never had a message."""
        return {
            level.number: (level.offset, level.queue.max_offset)
            for level in sorted(self._levels, key=lambda level: level.number)
            if level.queue.max_offset
        }

    def figures(self) -> dict[str, str]:
        """What request 28 says of each level: its next offset, and its end."""
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{end}"
            for level, (offset, end) in self.progress().items()
        }

    def _turn(self) -> None:
        """Look at each level once, unless that is under way."""
        if self._call is None and not self._stopped:
            self._step()

    def _step(self) -> None:
        """Deliver what is due; what is more than one step's, soon."""
        self._call = None
        if not self._services.is_on(DELIVERY):
            return
        left = MAX_DELIVERED
        for _ in range(len(self._levels)):
            level = self._levels[0]
            self._levels.rotate(-1)
            try:
                left -= self._look(level, left)
            except Exception:
                # A bad place on the disk, or a mistake of ours; other levels go on.
                level.retry_at = self._clock.seconds() + BROKEN_SECONDS
                self._log.failure("Delayed messages cannot be delivered.")
            if left <= 0:
                self._call = self._clock.callLater(0, self._step)
                break

    def _look(self, level: DelayLevel, most: int) -> int:
        """Deliver what is due in a level, or have it read.

        @return: how many messages were passed; C{most} if there are more.
        """
        now_ms = self._wall_ms()
        if level.is_busy or self._clock.seconds() < level.retry_at:
            return 0
        self._correct(level)
        store = self._store
        if level.offset >= level.queue.max_offset:
            return 0
        if not level.is_due(level.next_ms, now_ms):
            return 0
        if store.refusal() is not None:
            # Someone has to ask again whether there is room; one message is enough.
            most = 1
        read = partial(find_due, store, level, most, now_ms)
        if not store.is_cold(level.queue, level.offset):
            return min(most, self._deliver(level, read()))
        level.is_busy = True
        over: Deferred[None] = Deferred()
        self._reading.add(over)
        done = self._in_thread(read)
        done.addCallback(partial(self._was_read, level))
        done.addErrback(partial(self._not_read, level))
        done.addBoth(lambda _: self._read_over(level, over))
        return 0

    def _correct(self, level: DelayLevel) -> None:
        """Bring a level into its queue, and count what is gone."""
        lost = level.correct()
        if lost:
            self.lost += lost
            self._log.warn(
                "{lost} messages of delay level {delay_level} were removed from the "
                "log before they were due",
                lost=lost,
                delay_level=level.number,
            )

    def _was_read(self, level: DelayLevel, step: Step) -> None:
        if not self._stopped and self._services.is_on(DELIVERY):
            self._deliver(level, step)

    def _not_read(self, level: DelayLevel, failure: Failure) -> None:
        level.retry_at = self._clock.seconds() + BROKEN_SECONDS
        self._log.failure("Delayed messages cannot be read.", failure=failure)

    def _read_over(self, level: DelayLevel, over: Deferred[None]) -> None:
        level.is_busy = False
        self._reading.discard(over)
        if self._call is not None and not self._stopped:
            self._call.reset(0)
        over.callback(None)

    def _deliver(self, level: DelayLevel, step: Step) -> int:
        """Store what is due where it belongs, and move the level on.

        @return: how many messages were passed; more than any bound if there are more.
        """
        discarded = [offset for offset, _ in step.unreadable]
        if discarded:
            self._log_unreadable(level, step)
        again = None
        drafts = []
        for offset, message in step.messages:
            place = destination(message)
            assert place is not None
            try:
                queue = self._store.queue(*place)
            except ServiceNotAvailable:
                again = offset
                break
            except BrokerError as error:
                self._refuse(level, offset, place[0], str(error))
                discarded.append(offset)
                continue
            draft = delivered(message, queue, offset)
            # Without room in its LMQs a message is delivered to its topic all the same.
            with suppress(BrokerError):
                self._lmqs.spread(draft)
            drafts.append(draft)
        if drafts:
            self._appends.put(drafts)
        failed = self._settle(level, drafts)
        if failed is not None:
            again = failed
        passed = step.next_offset - level.offset
        if again is None:
            level.advance(step.next_offset)
            level.next_ms = step.next_ms
            more = not step.next_ms and step.next_offset < level.queue.max_offset
            return MAX_DELIVERED if more else passed
        self.failures += 1
        level.retry_at = self._clock.seconds() + DELIVERY_SECONDS
        level.advance(again)
        level.ahead.update(offset for offset in discarded if offset > again)
        return 0

    def _settle(self, level: DelayLevel, drafts: list[Draft]) -> int | None:
        """Note what became of drafts.

        @return: the offset of the first message that has to be delivered again.
        """
        again = None
        for draft in drafts:
            offset = draft.context
            assert isinstance(offset, int)
            if draft.status == PUT_OK:
                self._count(draft)
                level.end = max(level.end, draft.end)
                if again is not None:
                    level.ahead.add(offset)
            elif draft.status in (MESSAGE_ILLEGAL, PROPERTIES_SIZE_EXCEEDED):
                words = f"it is too large or malformed: status {draft.status}"
                self._refuse(level, offset, draft.queue.topic, words)
                if again is not None:
                    level.ahead.add(offset)
            elif again is None:
                again = offset
        return again

    def _count(self, draft: Draft) -> None:
        """Count what was delivered, under the topic that it was for."""
        size = draft.end - draft.position
        self.delivered += 1
        self.delivered_bytes += size
        if self._counter is not None:
            queue = draft.queue
            self._counter(queue.topic, queue.queue_id, DELAY).count(1, size)

    def _refuse(self, level: DelayLevel, offset: int, topic: str, reason: str) -> None:
        """Count and say what will never be stored."""
        self.refused += 1
        self._log.error(
            "The message at offset {offset} of delay level {delay_level} is not "
            "delivered to {topic}: {reason}",
            offset=offset,
            delay_level=level.number,
            topic=topic,
            reason=reason,
        )

    def _log_unreadable(self, level: DelayLevel, step: Step) -> None:
        """Count and say what cannot be delivered."""
        self.unreadable += len(step.unreadable)
        offset, position = step.unreadable[0]
        self._log.error(
            "{count} messages of delay level {delay_level} cannot be read or do not "
            "say where they belong, the first at offset {offset}, position {position} "
            "of the log; they are not delivered",
            count=len(step.unreadable),
            delay_level=level.number,
            offset=offset,
            position=position,
        )

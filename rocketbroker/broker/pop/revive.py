# -*- test-case-name: tests.broker.pop.test_revive -*-
"""The revive service: it gives messages out again that were popped and not acknowledged
in time.

Each queue of the revive topic has a loop of its own, which takes bounded steps: read
some check points and acknowledgements, then give out again what is ripe. A message
becomes one of the group's retry topic, with one more in its reconsume times; one that
cannot be read now, or that the store does not take, gets a check point of its own,
which is due later each time. There is no last time, unless
skipWhenCKRePutReachMaxTimes is set: consumers make dead letters of what failed too
often.

I{Guarantees.} The group's committed offset passes a check point only when its messages
are over, and what was stored instead is on the disk as far as the log is flushed. A
message is given out twice if the broker dies before the offset is written down, or if
its acknowledgement comes when it has been given out again.

I{Elsewhere.} A check point of a broker of another name was kept here while a slave
acted for its master: its messages are asked for there. An acting master gives nothing
out again: it has another group do it, by check points that this one keeps.

C{docs/facts/transaction-timer-pop.md} C12, C13; C{docs/facts/broker.md} 20.5.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pop.pop_state import PopState
from rocketbroker.broker.pop.revive_log import Timer
from rocketbroker.broker.pop.revive_queue import ReviveQueue
from rocketbroker.broker.replicas.escape_bridge import EscapeBridge
from rocketbroker.broker.roles import ACTING, MASTERS
from rocketbroker.broker.services import Service, Services
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import BrokerError, RocketbrokerError
from rocketbroker.records.check_points import RE_PUT_SECONDS, Ack, CheckPoint
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import REVIVE_GROUP, popped_topic
from rocketbroker.records.open_check_points import OpenCheckPoint
from rocketbroker.records.properties import (
    CRC32,
    FIRST_POP_TIME,
    MAX_BYTES,
    encode,
)
from rocketbroker.records.record import StoredMessage, decode, decode_all
from rocketbroker.records.sysflags import HOST_MASK
from rocketbroker.store.interfaces import (
    OS_PAGE_CACHE_BUSY,
    PUT_OK,
    Draft,
    IQueue,
)
from rocketbroker.store.reads import ReadResult

REVIVE: Final = Service(
    "revive of popped messages",
    "messages that were not acknowledged in time are given out again",
    lambda s: max(1, s.broker.revive_interval) / 1000,
    roles=MASTERS | ACTING,
)

#: How many messages of the revive topic one step reads, and how many bytes.
MAX_READ: Final = 256
MAX_READ_BYTES: Final = 1 << 20

#: Of how many check points one step gives messages out again: each has 32 at the most.
MAX_POINTS: Final = 8

#: How long a queue rests that cannot be read, or after a mistake of ours.
BROKEN_SECONDS: Final = 5.0

#: A message that is to be given out again: its check point, its queue offset.
Left = tuple[OpenCheckPoint, int]

#: The same with the message itself; None if it is gone.
Found = tuple[OpenCheckPoint, int, StoredMessage | None]


@final
class Revive:
    """The service that gives messages out again, a step at a time.

    @ivar queues: those of the revive topic.
    @ivar revived: how many messages were given out again, by group, topic and status of
        the append.
    @ivar read: how many messages of the revive topic were read, by group, topic,
        revive queue and whether it was a check point.
    @ivar lost: how many messages were gone before they were given out again.
    @ivar re_put: how many got a check point of their own.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        state: PopState,
        timer: Timer,
        appends: OwnAppends,
        bridge: EscapeBridge,
    ) -> None:
        """
        @param timer: keeps check points until they are due.
        @param bridge: to other brokers.
        """
        self.queues: list[ReviveQueue] = []
        self.revived: Counter[tuple[str, str, int]] = Counter()
        self.read: Counter[tuple[str, str, int, bool]] = Counter()
        self.lost = 0
        self.re_put = 0
        self._clock = context.clock
        self._store = context.store
        self._topics = metadata.topics
        self._groups = metadata.groups
        self._offsets = metadata.offsets
        self._retry_topics = state.retry_topics
        self._progress = state.progress
        self._revive_log = state.log
        self._timer = timer
        self._appends = appends
        self._options = context.settings.broker
        self._host = context.host
        self._wall_ms = context.wall_ms
        self._in_thread: InThread = context.in_thread
        self._turns = context.turns
        self._services: Services = context.services
        self._bridge = bridge
        self._steps: set[Deferred[None]] = set()
        self._stopped = False

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def load(self) -> None:
        """Begin where the last broker was; the store and the offsets are open."""
        topic = self._revive_log.topic
        config = self._topics.config(topic)
        count = max(
            self._options.revive_queue_num, config.read_queue_nums if config else 0
        )
        self.queues = []
        for queue_id in range(count):
            queue = self._store.queue(topic, queue_id)
            committed = self._offsets.query(REVIVE_GROUP, topic, queue_id)
            # The queue may have lost its end with the power.
            first = min(committed + 1, queue.next_offset)
            self.queues.append(ReviveQueue(queue, first))

    def start(self) -> None:
        """Begin to revive."""
        self._services.begin(REVIVE, self._look, self.load)

    def stop(self) -> Deferred[None]:
        """Revive no more; fires when no step is under way."""
        self._stopped = True
        return DeferredList(list(self._steps)).addCallback(lambda _: None)

    def save(self) -> None:
        """Put into the table of offsets how far all is over, as far as the disk has it.

        A slave's table is a copy of the master's.
        """
        if not self._services.is_on(REVIVE):
            return
        flushed = self._store.flushed_position
        for queue in self.queues:
            offset = queue.kept_offset(flushed)
            if offset is not None:
                handle = queue.queue
                self._offsets.commit(
                    REVIVE_GROUP, handle.topic, handle.queue_id, offset
                )

    def _look(self) -> None:
        """Take a step with each queue that has none under way."""
        for queue in self.queues:
            self._begin(queue)

    def _begin(self, queue: ReviveQueue) -> None:
        if (
            queue.is_busy
            or self._stopped
            or self._clock.seconds() < queue.retry_at
            or not self._services.is_on(REVIVE)
        ):
            return
        if not queue.open and queue.next_offset >= queue.queue.max_offset:
            return
        queue.is_busy = True
        step = Deferred.fromCoroutine(self._step(queue))
        over: Deferred[None] = Deferred()
        self._steps.add(over)
        step.addErrback(partial(self._failed, queue))
        step.addBoth(lambda more: self._ended(queue, bool(more), over))

    def _failed(self, queue: ReviveQueue, failure: Failure) -> bool:
        queue.retry_at = self._clock.seconds() + BROKEN_SECONDS
        self._log.failure("Check points of POP cannot be worked off.", failure=failure)
        return False

    def _ended(self, queue: ReviveQueue, more: bool, over: Deferred[None]) -> None:
        queue.is_busy = False
        self._steps.discard(over)
        over.callback(None)
        if more and not self._stopped:
            self._clock.callLater(0, self._begin, queue)

    async def _step(self, queue: ReviveQueue) -> bool:
        """Read some of a queue, and give out again some of what is ripe.

        @return: whether there is more to do at once.
        """
        # Asked first: what it delivers afterwards is behind what is read below.
        brought_ms = self._timer.brought_ms()
        if not queue.is_full and queue.next_offset < queue.queue.max_offset:
            self._take(queue, await self._read(queue))
        is_all = queue.next_offset >= queue.queue.max_offset
        at_end = is_all and queue.queue.next_offset <= queue.queue.max_offset
        ripe = queue.ripe(self._wall_ms(), brought_ms if at_end else 0)
        if ripe and not await self._give_again(queue, ripe[:MAX_POINTS]):
            return False
        queue.mark()
        return len(ripe) > MAX_POINTS or not is_all

    async def _read(self, queue: ReviveQueue) -> ReadResult:
        read = partial(
            self._store.read,
            queue.queue,
            queue.next_offset,
            MAX_READ,
            MAX_READ_BYTES,
            None,
        )
        if self._store.is_cold(queue.queue, queue.next_offset):
            return await self._in_thread(read)
        return read()

    def _take(self, queue: ReviveQueue, result: ReadResult) -> None:
        own, number = self._options.broker_name, queue.queue.queue_id
        for message in decode_all(b"".join(result.records)):
            taken = queue.take(message, own)
            if isinstance(taken, Ack | CheckPoint):
                is_point = isinstance(taken, CheckPoint)
                self.read[taken.group, taken.topic, number, is_point] += 1
        queue.next_offset = max(queue.next_offset, result.next_offset)

    # What is ripe.

    async def _give_again(self, queue: ReviveQueue, ripe: list[OpenCheckPoint]) -> bool:
        """Give messages out again; whether this broker still is the one to do so."""
        if self._revive_log.is_acting:
            await self._hand_over(queue, ripe)
            return True
        found = await self._find(ripe)
        others, failed = await self._find_elsewhere(ripe)
        if not self._services.is_on(REVIVE):
            return False
        self._turns.within(lambda: self._revive(queue, found + others, failed, ripe))
        return True

    def _is_own(self, point: CheckPoint) -> bool:
        return point.broker_name.strip() in ("", self._options.broker_name)

    async def _find_elsewhere(
        self, ripe: list[OpenCheckPoint]
    ) -> tuple[list[Found], list[Left]]:
        """The messages of other brokers, and those that cannot be had now."""
        found: list[Found] = []
        failed: list[Left] = []
        silent: set[str] = set()
        for each in ripe:
            point = each.point
            if self._is_own(point) or not self._is_there(point):
                continue
            for offset in each.left():
                if point.broker_name in silent:
                    failed.append((each, offset))
                    continue
                place = point.broker_name, point.topic, point.queue_id
                try:
                    message = await self._bridge.get(*place, offset)
                except RocketbrokerError as error:
                    silent.add(point.broker_name)
                    failed.append((each, offset))
                    self._log.info(
                        "Messages of broker {name} cannot be given out again now: "
                        "{error}",
                        name=point.broker_name,
                        error=error,
                    )
                else:
                    found.append((each, offset, message))
        return found, failed

    async def _find(self, ripe: list[OpenCheckPoint]) -> list[Found]:
        """The messages of this broker that are to be given out again."""
        wanted: list[tuple[OpenCheckPoint, int, IQueue]] = []
        for each in ripe:
            if self._is_own(each.point) and self._is_there(each.point):
                source = self._store.queue(each.point.topic, each.point.queue_id)
                wanted += [(each, offset, source) for offset in each.left()]
        if not wanted:
            return []

        def find() -> list[Found]:
            return [
                (each, offset, self._message(source, offset))
                for each, offset, source in wanted
            ]

        if any(self._store.is_cold(source, offset) for _, offset, source in wanted):
            return await self._in_thread(find)
        return find()

    def _is_there(self, point: CheckPoint) -> bool:
        """Whether the group and the topic that it consumes still are."""
        topic = popped_topic(point.topic, point.group)
        return (
            self._topics.config(topic) is not None
            and self._groups.config(point.group) is not None
        )

    def _message(self, source: IQueue, offset: int) -> StoredMessage | None:
        """I{Blocking if cold.} The message at a queue offset; None if it is gone."""
        if not source.min_offset <= offset < source.max_offset:
            return None
        for position, size, _ in self._store.entries(source, offset, 1):
            data = self._store.record_at(position)
            if data is None or len(data) != size:
                return None
            try:
                return decode(data)
            except Malformed:
                return None
        return None

    async def _hand_over(self, queue: ReviveQueue, ripe: list[OpenCheckPoint]) -> None:
        """Have another group give messages out again, by check points of their own.

        Whether group and topic still are is seen there: the tables here may be old.
        """
        for each in ripe:
            for offset in each.left():
                settled: Deferred[None] = Deferred()
                self._put_again(queue, each, offset, settled)
                await settled
                is_refused = queue.retry_at > self._clock.seconds()
                if is_refused or not self._revive_log.is_acting:
                    return
            queue.close(each)

    def _revive(
        self,
        queue: ReviveQueue,
        found: list[Found],
        failed: list[Left],
        ripe: list[OpenCheckPoint],
    ) -> None:
        """Store messages again; what cannot be gets a check point of its own."""
        drafts: list[Draft] = []
        for each, offset, message in found:
            if message is None:
                self.lost += 1
                each.end(offset)
                continue
            try:
                drafts.append(self._draft(each, offset, message))
            except BrokerError:
                failed.append((each, offset))
        if drafts:
            self._appends.put(drafts)
        for draft in drafts:
            assert isinstance(draft.context, tuple)
            each, offset = draft.context
            point = each.point
            self.revived[point.group, point.topic, draft.status] += 1
            if draft.status == PUT_OK:
                queue.end = max(queue.end, draft.end)
                self._over(each, offset)
            elif draft.status == OS_PAGE_CACHE_BUSY:
                # That is no attempt: the check point stays open.
                queue.retry_at = self._clock.seconds() + BROKEN_SECONDS
            else:
                failed.append((each, offset))
        for each, offset in failed:
            self._put_again(queue, each, offset)
        for each in ripe:
            if each.is_over or not self._is_there(each.point):
                queue.close(each)

    def _over(self, each: OpenCheckPoint, offset: int) -> None:
        point = each.point
        each.end(offset)
        place = point.group, point.topic, point.queue_id
        self._progress.ended(place, point.pop_ms, 1)

    def _draft(
        self, each: OpenCheckPoint, offset: int, message: StoredMessage
    ) -> Draft:
        """The message as one of the retry topic."""
        point = each.point
        topic = self._retry_topics.written(point.group, point.topic)
        self._retry_topics.ensure(point.group, topic)
        encoded = self._properties(each, message)
        return Draft(
            self._store.queue(topic, 0),
            message.body,
            encoded,
            message.flag,
            message.sys_flag & ~HOST_MASK,
            message.born_ms,
            self._host,
            message.reconsume_times + 1,
            tag_code(message.tags or ""),
            (each, offset),
        )

    def _properties(self, each: OpenCheckPoint, message: StoredMessage) -> bytes:
        """The properties of a message that is given out again."""
        properties = dict(message.properties)
        properties.pop(CRC32, None)
        if message.reconsume_times == 0 or FIRST_POP_TIME not in properties:
            properties[FIRST_POP_TIME] = str(each.point.pop_ms)
        encoded = encode(properties)
        if len(encoded) > MAX_BYTES:
            # There is no room for another one, and it must come again.
            properties.pop(FIRST_POP_TIME)
            encoded = encode(properties)
        return encoded

    def _put_again(
        self,
        queue: ReviveQueue,
        each: OpenCheckPoint,
        offset: int,
        settled: Deferred[None] | None = None,
    ) -> None:
        """Try it later, by a check point of its own; another group tries it at once.

        If that cannot be stored either, the old one stays open.

        @param settled: fires when that is known.
        """
        re_puts = each.point.re_puts or 0
        if (
            self._options.skip_when_ck_re_put_reach_max_times
            and re_puts >= len(RE_PUT_SECONDS)
            and not self._revive_log.is_acting
        ):
            self.lost += 1
            each.end(offset)
            return
        now_ms = 0 if self._revive_log.is_acting else self._wall_ms()
        again = each.point.again(offset, now_ms)

        def stored(draft: Draft, code: int) -> None:
            if draft.status == PUT_OK:
                self.re_put += 1
                queue.end = max(queue.end, draft.end)
                each.end(offset)
                if each.is_over:
                    queue.close(each)
                    queue.mark()
            else:
                queue.retry_at = self._clock.seconds() + BROKEN_SECONDS
            if settled is not None:
                settled.callback(None)

        self._revive_log.put_check_point(again, queue.queue.queue_id, stored)

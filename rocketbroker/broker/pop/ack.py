# -*- test-case-name: tests.broker.pop.test_ack -*-
"""Requests 200051 and 200151: messages that a group has consumed.

An acknowledgement is a message that names the check point (L{revive_log}). All that
come with a turn are one append, and those of a check point in a batch one message. Of
what is consumed in order, the group's offset moves on instead. A batch of more than
some is done in slices, each a turn of its own.

As in RocketMQ the answer is SUCCESS even if the acknowledgement could not be stored:
the message then comes once more.

C{docs/facts/transaction-timer-pop.md} C8; C{docs/facts/broker.md} 20.7.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Self, final

import attrs
from twisted.internet.defer import Deferred

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.json_bodies import (
    STEP_ENTRIES,
    check_count,
    read,
)
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pop.order_info import NOT_GIVEN, OUTDATED
from rocketbroker.broker.pop.pop_polling import PopLongPolling
from rocketbroker.broker.pop.pop_state import PopState
from rocketbroker.broker.pop.progress import Place
from rocketbroker.broker.pop.revive_log import MAX_COUNTED
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    MessageIllegal,
    RemoteProtocolError,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records.check_points import Ack
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import pop_retry_topic, popped_topic
from rocketbroker.records.receipt_handle import (
    NORMAL,
    ORDERED,
    RETRY_V1,
    RETRY_V2,
    ReceiptHandle,
)
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.store.append_lock import LOCK_BUSY
from rocketbroker.store.interfaces import OS_PAGE_CACHE_BUSY, Draft, IQueue
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fields import Fields
from rocketbroker.wire.headers.pull import AckMessageRequestHeader

#: How many bytes the bits of one check point may have: a pop has 32 messages; those of
#: a filtered read may be far apart.
MAX_BIT_BYTES: Final = 1 << 16

#: So many bytes of bits take as long to be read as an acknowledgement without them.
BIT_BYTES: Final = 4096

#: How many messages are acknowledged in one step: half a millisecond.
STEP_MESSAGES: Final = 32

#: A byte of bits that are not all clear. Most of a filtered read's may be.
_SET: Final = re.compile(rb"[^\0]")

#: Which bits of a byte are set.
_ONES: Final = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


@attrs.frozen(kw_only=True)
class BatchedAck:
    """Messages of one check point, in a batch.

    @ivar kind: of topic: see L{receipt_handle}.
    @ivar bits: bit C{i} of byte C{j} is the message C{8j + i} behind the start.
    """

    group: str
    topic: str
    kind: str
    start_offset: int
    queue_id: int
    revive_queue: int
    pop_ms: int
    invisible_ms: int
    bits: bytes

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it, with short or long names.

        @raise RemoteProtocolError: it has another form.
        """
        fields = Fields(value, "an acknowledgement")

        def name(short: str, long: str) -> str:
            return short if fields.value(short) is not None else long

        def number(short: str, long: str, bits: int) -> int:
            return fields.integer(name(short, long), bits=bits)

        try:
            bits = b64decode(fields.text(name("b", "bitSet")) or "", validate=True)
        except Base64Error:
            raise RemoteProtocolError("the bits are no Base64") from None
        if len(bits) > MAX_BIT_BYTES:
            raise RemoteProtocolError(f"bits of more than {MAX_BIT_BYTES} bytes")
        return cls(
            group=fields.text(name("c", "consumerGroup")) or "",
            topic=fields.text(name("t", "topic")) or "",
            kind=fields.text(name("r", "retry")) or NORMAL,
            start_offset=number("so", "startOffset", 64),
            queue_id=number("q", "queueId", 32),
            revive_queue=number("rq", "reviveQueueId", 32),
            pop_ms=number("pt", "popTime", 64),
            invisible_ms=number("it", "invisibleTime", 64),
            bits=bits,
        )

    def real_topic(self) -> str:
        """The topic of the queue."""
        if self.kind not in (RETRY_V1, RETRY_V2):
            return self.topic
        return pop_retry_topic(self.group, self.topic, self.kind == RETRY_V2)

    def offsets(self) -> list[int]:
        """The queue offsets."""
        return [
            self.start_offset + 8 * at + bit
            for at in (found.start() for found in _SET.finditer(self.bits))
            for bit in _ONES[self.bits[at]]
        ]

    @property
    def count(self) -> int:
        """How many messages it acknowledges."""
        return int.from_bytes(self.bits).bit_count()


def batch_of(value: object) -> tuple[str, list[object]]:
    """The broker and the acknowledgements of request 200151, which are not read yet.

    @raise RemoteProtocolError: it has another form.
    """
    fields = Fields(value, "a batch of acknowledgements")
    entries = fields.items("acks")
    return fields.text("brokerName") or "", [
        entry for entry in entries if entry is not None
    ]


@final
class AckRequests:
    """The responder of requests 200051 and 200151.

    @ivar acked: how many messages were acknowledged, by group and topic.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        state: PopState,
        polling: PopLongPolling,
    ) -> None:
        """
        @param polling: the pops that wait.
        """
        self.acked: dict[tuple[str, str], int] = {}
        self._store = context.store
        self._topics = metadata.topics
        self._offsets = metadata.offsets
        self._progress = state.progress
        self._buffer = state.buffer
        self._order = state.order
        self._polling = polling
        self._log = state.log
        self._options = context.settings.broker
        self._slices: ISlices = context.slices
        self._long = context.long_requests
        self._turns = context.turns
        self._wall_ms = context.wall_ms

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.ACK_MESSAGE, self.respond)
        table.register(RequestCode.BATCH_ACK_MESSAGE, self.respond_batch)

    def queue_of(self, topic: str, queue_id: int) -> IQueue:
        """The queue that a handle names.

        @raise BrokerError: there is none.
        """
        config = self._topics.config(topic)
        if config is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please!")
        if not 0 <= queue_id < config.read_queue_nums:
            raise MessageIllegal(
                f"queueId[{queue_id}] is illegal, topic:[{topic}] "
                f"topicConfig.readQueueNums:[{config.read_queue_nums}]"
            )
        return self._store.queue(topic, queue_id)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Request 200051: one message."""
        header = AckMessageRequestHeader.complete(request.ext)
        self._log.check_role()
        queue = self.queue_of(header.topic, header.queue_id)
        handle = parsed(header.extra_info)
        offset = header.offset
        if not queue.min_offset <= offset <= queue.max_offset:
            return response_to(
                request,
                ResponseCode.NO_MESSAGE,
                f"offset is illegal, key:{header.topic}@{header.queue_id}, "
                f"commit:{offset}, store:{queue.min_offset}~{queue.max_offset}",
            )
        place = header.consumer_group, header.topic, header.queue_id
        if handle.revive_queue == ORDERED:
            self.ack_in_order(place, offset, handle.pop_ms)
            return response_to(request)
        done: Deferred[Command | None] = Deferred()

        def stored(draft: Draft, code: int) -> None:
            done.callback(_answer(request, draft.status == OS_PAGE_CACHE_BUSY))

        if self.ack(place, handle, [offset], stored):
            return response_to(request)
        return done

    def respond_batch(self, connection: IConnection, request: Command) -> Answer:
        """Request 200151: messages of several check points."""
        self._log.check_role()
        return self._long.begin(request, self._ack_all(connection, request))

    async def _ack_all(self, connection: IConnection, request: Command) -> Command:
        """Read all, and then acknowledge some at each step, which is a turn."""
        most = self._options.rocketbroker_max_request_entries
        broker_name, entries = await self._long.read(
            connection, request, batch_of, most
        )
        if not entries:
            return response_to(request, ResponseCode.NO_MESSAGE)
        check_count(len(entries), "acknowledgements", most)
        acks: list[BatchedAck] = []
        await soon(self._slices, connection, read_acks(entries, acks))
        check_count(sum(each.count for each in acks), "acknowledged messages", most)
        done: Deferred[None] = Deferred()
        # One more than there are, until all were begun.
        waiting = 1
        is_busy = False

        def stored(draft: Draft | None, code: int) -> None:
            nonlocal waiting, is_busy
            waiting -= 1
            is_busy |= draft is not None and draft.status == OS_PAGE_CACHE_BUSY
            if not waiting:
                done.callback(None)

        def acknowledge(some: list[BatchedAck]) -> None:
            nonlocal waiting
            for each in some:
                # Counted first: what cannot be stored may be told at once.
                waiting += 1
                if not self._ack_batched(each, broker_name, stored):
                    waiting -= 1

        def steps() -> Iterator[None]:
            some: list[BatchedAck] = []
            count = 0
            for each in acks:
                some.append(each)
                count += 1 + each.count
                if count >= STEP_MESSAGES:
                    self._turns.within(partial(acknowledge, some))
                    some, count = [], 0
                    yield
            self._turns.within(partial(acknowledge, some))

        await soon(self._slices, connection, steps())
        stored(None, 0)
        await done
        return _answer(request, is_busy)

    def _ack_batched(
        self,
        each: BatchedAck,
        broker_name: str,
        stored: Callable[[Draft | None, int], None],
    ) -> bool:
        """Acknowledge what a batch says of one check point.

        @return: whether C{stored} will be called.
        """
        topic = each.real_topic()
        queue = self.queue_of(topic, each.queue_id)
        first, end = queue.min_offset, queue.max_offset
        offsets = [o for o in each.offsets() if first <= o <= end]
        place = each.group, topic, each.queue_id
        if each.revive_queue == ORDERED:
            for offset in offsets:
                self.ack_in_order(place, offset, each.pop_ms)
            return False
        handle = ReceiptHandle(
            each.start_offset,
            each.pop_ms,
            each.invisible_ms,
            each.revive_queue,
            each.kind,
            broker_name,
            each.queue_id,
        )
        return bool(offsets) and not self.ack(place, handle, offsets, stored)

    def ack(
        self,
        place: Place,
        handle: ReceiptHandle,
        offsets: list[int],
        stored: Callable[[Draft, int], None],
    ) -> bool:
        """Acknowledge messages of one check point.

        @param stored: called when that is in the log, or cannot be.
        @return: whether it is done already, so that C{stored} is not called.
        """
        group, topic, queue_id = place
        ack = Ack(
            topic,
            group,
            queue_id,
            handle.start_offset,
            handle.pop_ms,
            handle.broker_name,
            offsets,
        )
        self.count(place, handle.pop_ms, len(offsets))
        if self._buffer.ack(ack.key(self._options.broker_name), offsets):
            return True
        due_ms = handle.pop_ms + handle.invisible_ms
        self._log.put_ack(ack, handle.revive_queue, due_ms, stored)
        return False

    def count(self, place: Place, pop_ms: int, count: int) -> None:
        """So many messages are over."""
        group, topic, _ = place
        key = group, popped_topic(topic, group)
        if len(self.acked) >= MAX_COUNTED:
            key = "", ""
        self.acked[key] = self.acked.get(key, 0) + count
        self._progress.ended(place, pop_ms, count)

    def popped_again(self, place: Place) -> None:
        """One that was acknowledged is in flight again, by another check point."""
        self._progress.popped(place, 1)

    def ack_in_order(self, place: Place, offset: int, pop_ms: int) -> None:
        """Acknowledge what was given out in order.

        @raise MessageIllegal: it was not given out.
        """
        group, topic, queue_id = place
        if offset < self._offsets.query(group, topic, queue_id):
            return
        next_offset = self._order.commit(place, offset, pop_ms)
        if next_offset == NOT_GIVEN:
            raise MessageIllegal(
                f"offset is illegal, key:{topic}@{group}@{queue_id}, old:"
                f"{self._offsets.query(group, topic, queue_id)}, commit:{offset}, "
                f"next:{next_offset}"
            )
        if next_offset == OUTDATED:
            return
        self.count(place, pop_ms, 1)
        if not self._offsets.has_reset(group, topic, queue_id):
            self._offsets.commit(group, topic, queue_id, next_offset)
        if self._order.free_ms(place, None, 0) <= self._wall_ms():
            self._polling.wake(topic, group, queue_id)


def _answer(request: Command, is_busy: bool) -> Command:
    """SUCCESS, as in RocketMQ, also if an acknowledgement cannot be stored; but not if
    it could be a while later."""
    if is_busy:
        return response_to(request, ResponseCode.SYSTEM_BUSY, LOCK_BUSY)
    return response_to(request)


def read_acks(entries: list[object], acks: list[BatchedAck]) -> Iterator[None]:
    """Read what a batch says of each check point, some at each step.

    @param acks: gets it.
    """
    since = 0
    for entry in entries:
        ack = read(BatchedAck.from_json, entry)
        acks.append(ack)
        since += 1 + len(ack.bits) // BIT_BYTES
        if since >= STEP_ENTRIES:
            since = 0
            yield


def parsed(extra_info: str) -> ReceiptHandle:
    """The handle that a request brings.

    @raise SystemFailure: it is none.
    """
    try:
        return ReceiptHandle.parse(extra_info)
    except Malformed as error:
        raise SystemFailure(str(error)) from None

# -*- test-case-name: tests.broker.pop.test_hot_acks -*-
"""Request 200051 at the least cost: what a turn acknowledges, by check point.

Consumers acknowledge message by message, and mostly several of a check point come
together. What one connection acknowledges of one check point in a turn becomes one
record: an C{ack}, or a C{bAck} of all the messages, as RocketMQ writes it for a batch.
Their answers go out together when that is in the log.

The handle of the first is looked at as by the general way (L{ack}); the others differ
in the offset only. All that is not ordinary goes the general way, by returning False:
what is consumed in order, check points in memory, acting masters and slaves, errors.

C{docs/facts/transaction-timer-pop.md} C8.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from twisted.logger import Logger

from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.appends.send_answers import refuse
from rocketbroker.broker.pop.ack import AckRequests
from rocketbroker.broker.pop.check_point_buffer import CheckPointBuffer
from rocketbroker.broker.pop.revive_log import ReviveLog
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import BrokerError, SystemBusy, SystemFailure
from rocketbroker.records.check_points import Ack
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.receipt_handle import ORDERED, ReceiptHandle
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.append_lock import LOCK_BUSY
from rocketbroker.store.interfaces import OS_PAGE_CACHE_BUSY, Draft, IQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, RESPONSE
from rocketbroker.wire.hot import ACK_ANSWER, NOT_READ, frame_of, read_ack

#: The most acknowledgements that become one record: a pop has 32 messages.
MAX_TOGETHER: Final = 32

#: Where the last digits of the code and the comma stand in a header, and what they are:
#: the table of responders knows the first four digits only.
_REST_OF_CODE: Final = slice(12, 15)
_REST: Final = b"51,"

#: Connection, group, topic, queue, and a handle without its last part.
_Key: TypeAlias = tuple[IConnection, str, str, int, str]


@final
class _AckGroup:
    """What one connection acknowledges of one check point in a turn.

    @ivar first: the least queue offset there is. C{end}: the highest that is accepted.
    @ivar offsets: the queue offsets of the messages.
    @ivar opaques: of the requests that want an answer.
    """

    __slots__ = ("connection", "end", "first", "handle", "offsets", "opaques", "place")

    def __init__(
        self,
        connection: IConnection,
        place: tuple[str, str, int],
        handle: ReceiptHandle,
        queue: IQueue,
    ) -> None:
        self.connection = connection
        self.place = place
        self.handle = handle
        self.first = queue.min_offset
        self.end = queue.max_offset
        self.offsets: list[int] = []
        self.opaques: list[int] = []

    def ack(self) -> Ack:
        """The record."""
        group, topic, queue_id = self.place
        handle = self.handle
        return Ack(
            topic,
            group,
            queue_id,
            handle.start_offset,
            handle.pop_ms,
            handle.broker_name,
            sorted(set(self.offsets)),
        )

    def answer(self, draft: Draft, code: int) -> None:
        """It is in the log, or cannot be: SUCCESS, as in RocketMQ; but if it could be a
        while later the consumer is told."""
        if draft.status == OS_PAGE_CACHE_BUSY:
            self.refuse(SystemBusy(LOCK_BUSY))
            return
        frames = [frame_of(ACK_ANSWER % opaque) for opaque in self.opaques]
        if frames:
            self.connection.send(b"".join(frames), len(frames))

    def refuse(self, error: BrokerError) -> None:
        """It is not in the log."""
        for opaque in self.opaques:
            refuse(self.connection, opaque, error)


@final
class HotAcks:
    """The responder of ordinary acknowledgements, a turn's at once.

    @ivar taken: how many.
    """

    _log = Logger()

    def __init__(
        self,
        acks: AckRequests,
        buffer: CheckPointBuffer,
        log: ReviveLog,
        batcher: AppendBatcher,
        options: BrokerOptions,
    ) -> None:
        self.taken = 0
        self._acks = acks
        self._buffer = buffer
        self._revive_log = log
        self._batcher = batcher
        self._take(options)
        self._together: dict[_Key, _AckGroup] = {}
        batcher.watch_before_append(self._gather)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._gather()
        self._take(settings.broker)

    def _take(self, options: BrokerOptions) -> None:
        self._broker_name = options.broker_name
        #: Whether a pop of this turn may wait for what the turn has acknowledged.
        self._count_at_once = options.enable_pop_message_threshold

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register_hot(RequestCode.ACK_MESSAGE, self.hot, quick=True)

    def hot(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        """Take an acknowledgement that came as JSON if all about it is ordinary."""
        if header[_REST_OF_CODE] != _REST:
            return False
        try:
            call = read_ack(header)
        except NOT_READ:
            return False
        if call.flag & RESPONSE:
            return False
        fields = call.extFields
        offset = fields.offset
        handle, _, last = fields.extraInfo.rpartition(" ")
        if last != str(offset):
            return False
        key = connection, fields.consumerGroup, fields.topic, fields.queueId, handle
        together = self._together.get(key)
        if together is None:
            together = self._begin(*key)
            if together is None:
                return False
        if not together.first <= offset <= together.end:
            return False
        together.offsets.append(offset)
        if not call.flag & ONEWAY:
            together.opaques.append(call.opaque)
        if len(together.offsets) == 1:
            self._together[key] = together
        elif len(together.offsets) == MAX_TOGETHER:
            self._put(self._together.pop(key))
        if self._count_at_once:
            self._acks.count(together.place, together.handle.pop_ms, 1)
        self.taken += 1
        return True

    def _begin(
        self, connection: IConnection, group: str, topic: str, queue_id: int, text: str
    ) -> _AckGroup | None:
        """The first of a check point in a turn; None if it has to go the general way.

        @param text: the handle without the offset of its message.
        """
        if self._revive_log.is_acting or self._batcher.is_slave:
            return None
        try:
            handle = ReceiptHandle.parse(text)
            queue = self._acks.queue_of(topic, queue_id)
        except (Malformed, BrokerError):
            return None
        if handle.offset is not None or handle.revive_queue == ORDERED:
            return None
        together = _AckGroup(connection, (group, topic, queue_id), handle, queue)
        if self._buffer.stays(together.ack().key(self._broker_name)):
            return None
        return together

    def _gather(self) -> None:
        """The turn ends: all become drafts."""
        if self._together:
            all_together = list(self._together.values())
            self._together.clear()
            for together in all_together:
                self._put(together)

    def _put(self, together: _AckGroup) -> None:
        handle = together.handle
        due_ms = handle.pop_ms + handle.invisible_ms
        if not self._count_at_once:
            self._acks.count(together.place, handle.pop_ms, len(together.offsets))
        try:
            self._revive_log.put_ack(
                together.ack(), handle.revive_queue, due_ms, together.answer
            )
        except BrokerError as error:
            together.refuse(error)
        except Exception:
            # A mistake of ours: the others are to be stored.
            self._log.failure("Acknowledgements could not be stored.")
            together.refuse(SystemFailure("UNKNOWN_ERROR"))

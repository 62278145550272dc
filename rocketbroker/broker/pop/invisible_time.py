# -*- test-case-name: tests.broker.pop.test_invisible_time -*-
"""Request 200053: when a message that was popped is to be given out again.

A consumer that failed wants it after some time, one that is slow wants it later. The
message gets a check point of its own, which begins now; when that is in the log, it is
acknowledged for the one that it had. So it is never without a check point, and after a
crash between the two it comes by both.

Of what is consumed in order, the record of what is out changes instead.

C{docs/facts/transaction-timer-pop.md} C11; C{docs/facts/broker.md} 20.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.pop.ack import AckRequests, parsed
from rocketbroker.broker.pop.order_info import OrderInfo
from rocketbroker.broker.pop.revive_log import ReviveLog
from rocketbroker.records.check_points import CheckPoint
from rocketbroker.records.receipt_handle import ORDERED
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.pull import (
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
)

#: The remark to one whose check point could not be stored.
NOT_STORED: Final = "the check point could not be stored"


@final
class InvisibleTimeRequests:
    """The responder of requests that change an invisible time.

    @ivar changes: how many were carried out.
    """

    def __init__(
        self,
        acks: AckRequests,
        offsets: OffsetTable,
        order: OrderInfo,
        log: ReviveLog,
        batcher: AppendBatcher,
        wall_ms: Callable[[], int],
    ) -> None:
        self.changes = 0
        self._acks = acks
        self._offsets = offsets
        self._order = order
        self._log = log
        self._batcher = batcher
        self._wall_ms = wall_ms

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Change the time of one message."""
        header = ChangeInvisibleTimeRequestHeader.complete(request.ext)
        self._log.check_role()
        queue = self._acks.queue_of(header.topic, header.queue_id)
        handle = parsed(header.extra_info)
        offset = header.offset
        if not queue.min_offset <= offset < queue.max_offset:
            return response_to(request, ResponseCode.NO_MESSAGE)
        place = header.consumer_group, header.topic, header.queue_id
        now_ms = self._wall_ms()
        if handle.revive_queue == ORDERED:
            return self._change_in_order(request, header, handle.pop_ms, now_ms)
        # Another one than the old, or neither could be told from the other.
        now_ms = max(now_ms, handle.pop_ms + 1)
        done: Deferred[Command | None] = Deferred()
        group, topic, queue_id = place
        point = CheckPoint(
            topic,
            group,
            queue_id,
            offset,
            now_ms,
            header.invisible_time,
            handle.broker_name,
            [0],
        )

        def stored(draft: Draft, code: int) -> None:
            if draft.status != PUT_OK:
                refusal = ResponseCode.SYSTEM_ERROR
                done.callback(response_to(request, refusal, NOT_STORED))
                return
            self.changes += 1
            if not self._acks.ack(place, handle, [offset], lambda _, __: None):
                # The turn's messages have been appended: this is one more.
                self._batcher.flush()
            self._acks.popped_again(place)
            answer = changed(now_ms, header.invisible_time, handle.revive_queue)
            done.callback(response_to(request, ext=answer))

        self._log.put_check_point(point, handle.revive_queue, stored)
        return done

    def _change_in_order(
        self,
        request: Command,
        header: ChangeInvisibleTimeRequestHeader,
        pop_ms: int,
        now_ms: int,
    ) -> Command:
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        if header.offset < self._offsets.query(group, topic, queue_id):
            return response_to(request, ext=changed(0, 0, 0))
        visible_ms = now_ms + header.invisible_time
        place = group, topic, queue_id
        self._order.delay(place, header.offset, pop_ms, visible_ms)
        return response_to(request, ext=changed(pop_ms, visible_ms - pop_ms, ORDERED))


def changed(pop_ms: int, invisible_ms: int, revive_queue: int) -> dict[str, str]:
    """The fields of an answer: what the next handle of the message has."""
    return ChangeInvisibleTimeResponseHeader(
        pop_time=pop_ms, invisible_time=invisible_ms, revive_qid=revive_queue
    ).to_ext()

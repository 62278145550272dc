# -*- test-case-name: tests.broker.transaction.test_resume_check -*-
"""Request 323: an operator lets a half message be checked back again, from the first
check on.

Named is a place in the log: of a half message that is open, or of what lies in
TRANS_CHECK_MAX_TIME_TOPIC because its producer was checked often enough. It is stored
anew at the end of the half queue with a count of 0.

RocketMQ stores whatever record stands there, also a half message whose transaction was
ended, whose message is then delivered twice; and one that is no half message, which no
check can do anything with. Both are refused here.

C{docs/facts/admin.md} 2.3; C{docs/facts/transaction-timer-pop.md} A7.
"""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.transaction_messages import (
    half_at,
    parsed_offset,
    renewed,
    resumed,
)
from rocketbroker.broker.transaction.counters import TransactionCounters
from rocketbroker.broker.transaction.op_queue import OpQueue
from rocketbroker.broker.transaction.open_transactions import (
    DISCARDED,
    OPEN,
    OVER,
)
from rocketbroker.errors import SystemBusy, SystemFailure
from rocketbroker.records.ids import parse_offset_id
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from rocketbroker.records.properties import PREPARED_QUEUE_OFFSET, REAL_TOPIC
from rocketbroker.records.record import StoredMessage
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.append_lock import LOCK_BUSY
from rocketbroker.store.interfaces import OS_PAGE_CACHE_BUSY, PUT_OK
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.admin import ResumeCheckHalfMessageRequestHeader

#: Where a message may lie whose check is resumed.
TOPICS: Final = (HALF_TOPIC, CHECK_MAX_TIME_TOPIC)


@final
class ResumeCheck:
    """The responder of request 323, which resumes checks."""

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        marks: OpQueue,
        counts: TransactionCounters,
        appends: OwnAppends,
    ) -> None:
        self._store = context.store
        self._state = marks.state
        self._marks = marks
        self._counts = counts
        self._appends = appends
        self._in_thread: InThread = context.in_thread

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.RESUME_CHECK_HALF_MESSAGE, self.resume)

    def resume(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Store the message anew.

        @raise SystemFailure: the id names no place.
        """
        header = ResumeCheckHalfMessageRequestHeader.from_ext(request.ext)
        try:
            position = parse_offset_id(header.msg_id or "").position
        except Malformed as error:
            raise SystemFailure(f"no message can be put back: {error}") from error
        found = self._in_thread(lambda: half_at(self._store, position, TOPICS))
        return found.addCallback(self._put_back, connection)

    def _put_back(self, half: StoredMessage | None, connection: IConnection) -> Command:
        """
        @raise SystemFailure: there is no such message, its transaction was ended, or it
            is not taken.
        """
        if half is None:
            raise SystemFailure("there is no half message that could be put back")
        queue = self._store.queue(HALF_TOPIC, 0)
        open_still = half.topic == HALF_TOPIC
        root = self._root(half)
        if open_still:
            over = self._state.is_over(half.queue_offset)
            self._check(OVER if over else self._state.outcome(half), (OPEN,))
            draft = renewed(half, queue, 0)
        else:
            if root is not None:
                self._check(self._state.outcome_of(root, root), (OVER, DISCARDED))
            draft = resumed(half, queue)
        self._appends.append([draft])
        if draft.status == OS_PAGE_CACHE_BUSY:
            raise SystemBusy(LOCK_BUSY)
        if draft.status != PUT_OK:
            raise SystemFailure(f"Put message back to {HALF_TOPIC} failed.")
        topic = half.properties[REAL_TOPIC]
        if open_still:
            self._marks.write([(half.queue_offset, draft.position)])
        else:
            self._counts.resumed(topic)
        if root is not None:
            self._state.resumed(root, draft.queue_offset)
        self._log.info(
            "{peer} put a half message for topic {topic!r} back to the checks, at "
            "{offset}",
            peer=connection.who,
            topic=topic,
            offset=draft.queue_offset,
        )
        self._appends.announce()
        self._appends.flush()
        return Command(0)

    def _root(self, half: StoredMessage) -> int | None:
        """The offset of the half that its transaction began with; None of a discarded
        one that was never stored anew, which does not say it."""
        if half.topic == HALF_TOPIC:
            return self._state.root(half)
        return parsed_offset(half.properties.get(PREPARED_QUEUE_OFFSET, ""))

    def _check(self, outcome: int, good: tuple[int, ...]) -> None:
        """
        @raise SystemFailure: the transaction is not as it has to be.
        """
        if outcome in good:
            return
        raise SystemFailure(
            "the message is among the checks already"
            if outcome == OPEN
            else "the transaction of the message has been ended; one that was given up "
            f"lies in {CHECK_MAX_TIME_TOPIC}"
        )

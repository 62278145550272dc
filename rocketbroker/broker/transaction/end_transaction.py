# -*- test-case-name: tests.broker.transaction.test_end_transaction -*-
"""Request 37: commit or rollback of a transaction.

A commit is two appends: the final message, then the marks of its half messages
(L{op_queue}); a rollback is the marks. Both are in the log before the answer, and on
the disk with SYNC_FLUSH; with SYNC_MASTER slaves have the final message as they have
what was sent. A transaction that is ended twice the same way is answered
with success and delivered once; an end the other way is refused. After a restart the
disk only shows that a transaction is over. A discarded one can still be committed, and
is in TRANS_CHECK_MAX_TIME_TOPIC; all others were ended.

Clients send this request oneway, and do not send it again: a transaction whose end is
lost or refused is checked back (L{check_back}).

C{docs/facts/transaction-timer-pop.md} A4, A5; C{docs/facts/broker.md} 17.2.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.ack_rule import (
    IN_SYNC_REPLICAS_NOT_ENOUGH,
    NOT_ENOUGH,
)
from rocketbroker.broker.appends.append_batcher import AppendBatcher, problem_of
from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.messages.transaction_messages import (
    final_message,
    half_at,
    was_discarded,
)
from rocketbroker.broker.transaction.counters import TransactionCounters
from rocketbroker.broker.transaction.op_queue import OpQueue
from rocketbroker.broker.transaction.open_transactions import (
    DISCARDED,
    OPEN,
    OVER,
)
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    IllegalOperation,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemFailure,
)
from rocketbroker.records.names import HALF_TOPIC
from rocketbroker.records.properties import (
    CHECK_IMMUNITY_SECONDS,
    PRODUCER_GROUP,
    REAL_TOPIC,
)
from rocketbroker.records.record import StoredMessage
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import (
    TRANSACTION_COMMIT,
    TRANSACTION_UNKNOWN,
    EndTransactionRequestHeader,
)

#: A half message that lies so many bytes back in the log is read in a thread: what is
#: nearer was written in the last seconds, and is in the memory of the system.
WARM_BYTES: Final = 64 << 20

_SECONDS: Final = re.compile(r"[+-]?[0-9]{1,15}\Z")


def immunity_ms(text: str, default: int) -> int:
    """How long a transaction is not checked back, by its own wish.

    @param text: CHECK_IMMUNITY_TIME_IN_SECONDS.
    @param default: transactionTimeOut.
    """
    seconds = int(text) if _SECONDS.match(text) else -1
    return default if seconds == -1 else seconds * 1000


@final
class EndTransaction:
    """The responder of request 37, which ends a transaction."""

    def __init__(
        self,
        context: BrokerContext,
        marks: OpQueue,
        counts: TransactionCounters,
        delay_messages: DelayMessages,
        lmqs: Lmq,
        batcher: AppendBatcher,
        appends: OwnAppends,
    ) -> None:
        waiting = context.waiting.family(RequestCode.END_TRANSACTION)
        self._store = context.store
        self._state = marks.state
        self._marks = marks
        self._counts = counts
        self._delay_messages = delay_messages
        self._lmqs = lmqs
        self._batcher = batcher
        self._appends = appends
        self._wall_ms = context.wall_ms
        self._in_thread = waiting.before_threads(context.in_thread)
        self.configure(context.settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        #: For remarks.
        self._max_bytes = settings.store.max_message_size

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.END_TRANSACTION, self.end)

    def end(self, connection: IConnection, request: Command) -> Answer:
        """Commit or roll back; an unknown outcome gets no answer."""
        if self._batcher.is_slave:
            raise SlaveNotAvailable("this broker is a slave, and ends no transactions")
        header = EndTransactionRequestHeader.from_ext(request.ext)
        if header.commit_or_rollback == TRANSACTION_UNKNOWN:
            return None
        self._batcher.check_load()
        store, position = self._store, header.commit_log_offset
        if store.published_position - position <= WARM_BYTES:
            return self._end(header, half_at(store, position))
        found = self._in_thread(lambda: half_at(store, position))
        return found.addCallback(partial(self._end, header))

    def _end(
        self, header: EndTransactionRequestHeader, half: StoredMessage | None
    ) -> Deferred[Command | None] | Command:
        """End a transaction whose half was looked for."""
        if half is None:
            raise SystemFailure("Find prepared transaction message failed")
        self._check(header, half)
        if self._state.outcome(half) != OVER:
            return self._end_known(header, half, False)
        found = self._in_thread(partial(was_discarded, self._store, half))
        return found.addCallback(partial(self._end_known, header, half))

    def _end_known(
        self, header: EndTransactionRequestHeader, half: StoredMessage, discarded: bool
    ) -> Deferred[Command | None] | Command:
        """End a transaction.

        @param discarded: whether it was discarded, if only the disk shows it.
        """
        wanted = header.commit_or_rollback
        outcome = self._state.outcome(half)
        if outcome == OVER and discarded:
            outcome = DISCARDED
        if outcome not in (OPEN, DISCARDED):
            if outcome not in (OVER, wanted):
                raise SystemFailure("The transaction has been ended the other way")
            return Command(0)
        if self._marks.is_full():
            raise ServiceNotAvailable(
                f"too many ends of transactions wait for the disk: "
                f"{self._store.refusal() or 'it refused them'}"
            )
        drafts: list[Draft] = []
        instead, copies = 0, 1
        if wanted == TRANSACTION_COMMIT:
            draft = final_message(half, self._store, self._delay_messages, None)
            self._lmqs.spread(draft)
            copies = self._batcher.copies() if draft.wait else 1
            if copies == NOT_ENOUGH:
                draft.status = IN_SYNC_REPLICAS_NOT_ENOUGH
            else:
                self._appends.append([draft])
            if draft.status != PUT_OK:
                raise problem_of(draft, self._store, self._max_bytes)
            drafts.append(draft)
            instead = draft.position
        over = self._state.ended(half, wanted)
        drafts += self._marks.write([(offset, instead) for offset in over])
        self._counts.ended(
            half.properties[REAL_TOPIC],
            wanted == TRANSACTION_COMMIT,
            self._wall_ms() - half.born_ms,
            outcome == OPEN,
        )
        # A rollback needs no copies: what is lost of it is checked back. A disk that
        # takes longer than the client waits has the message all the same, and so has
        # this broker if its slaves do.
        kept = self._appends.announce_for(drafts, copies)
        return Command(0) if kept is None else kept.addCallback(_answer_well)

    def _check(self, header: EndTransactionRequestHeader, half: StoredMessage) -> None:
        """Refuse what does not fit the half message.

        @raise IllegalOperation: the transaction has been left to the checks.
        @raise SystemFailure: it is another one.
        """
        own = half.properties
        default = self._options.transaction_time_out
        if CHECK_IMMUNITY_SECONDS in own and not header.from_transaction_check:
            wished = immunity_ms(own[CHECK_IMMUNITY_SECONDS], default)
            if self._wall_ms() - half.born_ms > max(wished, default):
                raise IllegalOperation("")
        if own.get(PRODUCER_GROUP) != header.producer_group:
            raise SystemFailure("The producer group wrong")
        end = self._store.queue(HALF_TOPIC, 0).next_offset
        if half.queue_offset != header.tran_state_table_offset or not (
            0 <= half.queue_offset < end
        ):
            raise SystemFailure("The transaction state table offset wrong")
        if half.position != header.commit_log_offset:
            raise SystemFailure("The commit log offset wrong")


def _answer_well(_: None) -> Command:
    return Command(0)

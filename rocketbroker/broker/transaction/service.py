# -*- test-case-name: tests.broker.transaction.test_service -*-
"""All parts of transactions together.

  - L{transaction_messages}: the messages of a transaction.
  - L{open_transactions}: the open ones, as far as memory has to know.
  - L{op_queue}: the half messages that are over.
  - L{end_transaction}: request 37, commit or rollback.
  - L{check_back}: checks at producers.
  - L{resume_check}: request 323, checks that begin again.
  - L{counters}: numbers for operators.

I{Guarantees.} A half message that was acknowledged is delivered if its producer commits
it, and not delivered if it does not, whatever crashes; without an end the producer is
checked transactionCheckMax times. A message is delivered twice only if the broker dies
between two appends of the same turn; see L{op_queue}. A store can go to RocketMQ's
broker and back with its open transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.services import Services
from rocketbroker.broker.storage.store_scheduler import StoreScheduler
from rocketbroker.broker.transaction.check_back import CheckBack
from rocketbroker.broker.transaction.counters import TransactionCounters
from rocketbroker.broker.transaction.end_transaction import EndTransaction
from rocketbroker.broker.transaction.op_queue import OpQueue
from rocketbroker.broker.transaction.open_transactions import (
    MAX_REMEMBERED,
    OpenTransactions,
)
from rocketbroker.broker.transaction.resume_check import ResumeCheck
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.store.interfaces import IStore


@final
class Transactions:
    """All parts of it.

    @ivar counts: how many there are.
    @ivar state: those that are open.
    @ivar marks: writes what is over.
    @ivar ends: answers request 37.
    @ivar checks: asks producers.
    @ivar resuming: answers request 323.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        options: BrokerOptions,
        store_options: StoreOptions,
        counters_file: JsonTable,
        offsets: OffsetTable,
        topics: TopicTable,
        producers: ProducerRegistry,
        delay_messages: DelayMessages,
        lmqs: Lmq,
        batcher: AppendBatcher,
        group_commit: GroupCommit,
        scheduler: StoreScheduler,
        store_host: bytes,
        wall_ms: Callable[[], int],
        in_thread: InThread,
        ends_in_thread: InThread,
        services: Services,
    ) -> None:
        """
        @param store_host: where this broker is reached, as records have it.
        """
        self.counts = TransactionCounters(counters_file, wall_ms)
        self.state = state = OpenTransactions(MAX_REMEMBERED)
        self.marks = marks = OpQueue(store, state, store_host, wall_ms)
        self.ends = EndTransaction(
            store,
            state,
            marks,
            self.counts,
            delay_messages,
            lmqs,
            batcher,
            group_commit,
            scheduler.appended,
            options,
            store_options.max_message_size,
            wall_ms,
            ends_in_thread,
        )
        self.checks = CheckBack(
            clock,
            store,
            state,
            marks,
            self.counts,
            offsets,
            topics,
            producers,
            group_commit,
            scheduler.appended,
            scheduler.dispatch,
            options,
            reserved_ms(store_options),
            store_host,
            wall_ms,
            in_thread,
            services,
        )
        self.resuming = ResumeCheck(
            store,
            state,
            marks,
            self.counts,
            group_commit,
            scheduler.appended,
            in_thread,
        )

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.ends.configure(settings)
        self.checks.configure(settings.broker, reserved_ms(settings.store))

    def load(self) -> None:
        """I{Blocking.} Find the open transactions; the store and the offsets are open.

        What the disk does not give now the first round asks for again.
        """
        try:
            self.checks.load()
        except (OSError, ServiceNotAvailable) as error:
            self._log.error(
                "Open transactions cannot be read; they are looked for later: {error}",
                error=error,
            )

    def start(self) -> None:
        """Begin to check."""
        self.checks.start()

    def stop(self) -> Deferred[None]:
        """Check no more; fires when no thread reads for it."""
        return self.checks.stop()

    def save(self) -> None:
        """Put into the table of offsets how far the checks are; write the counts."""
        self.checks.save()
        self.counts.save()


def reserved_ms(options: StoreOptions) -> int:
    """How long the log is kept."""
    return options.file_reserved_time * 3_600_000

# -*- test-case-name: tests.broker.transaction.test_room -*-
"""The room of transactions: half messages, their ends, and checks at producers.

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

from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services
from rocketbroker.broker.timer.room import TimerRoom
from rocketbroker.broker.transaction.check_back import CheckBack
from rocketbroker.broker.transaction.counters import TransactionCounters
from rocketbroker.broker.transaction.end_transaction import EndTransaction
from rocketbroker.broker.transaction.op_queue import OpQueue
from rocketbroker.broker.transaction.open_transactions import (
    MAX_REMEMBERED,
    OpenTransactions,
)
from rocketbroker.broker.transaction.resume_check import ResumeCheck
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ServiceNotAvailable
from rocketbroker.remoting.interfaces import IResponderTable

SAVE_COUNTERS: Final = Service(
    "save of counters",
    "the numbers of open transactions go to the disk",
    lambda s: s.broker.transaction_metric_flush_interval / 1000,
)


@final
class TransactionRoom(Room):
    """The transactions of a broker.

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
        context: BrokerContext,
        metadata: MetadataRoom,
        clients: ClientsRoom,
        appends: AppendsRoom,
        timer: TimerRoom,
    ) -> None:
        self._services: Services = context.services
        counts = self.counts = TransactionCounters(
            context.tables.file("transactionMetrics"), context.wall_ms
        )
        self.state = OpenTransactions(MAX_REMEMBERED)
        marks = self.marks = OpQueue(context, self.state)
        self.ends = EndTransaction(
            context,
            marks,
            counts,
            timer.delay_messages,
            appends.lmqs,
            appends.batcher,
            appends.own,
        )
        self.checks = CheckBack(
            context,
            marks,
            counts,
            metadata.offsets,
            metadata.topics,
            clients.producers,
            appends.own,
        )
        self.resuming = ResumeCheck(context, marks, counts, appends.own)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.ends.register(table)
        self.resuming.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.ends.configure(settings)
        self.checks.configure(settings)

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
        self._services.begin(SAVE_COUNTERS, self.counts.save)

    def stop(self) -> Deferred[None]:
        """Check no more; fires when no thread reads for it."""
        return self.checks.stop()

    def save(self) -> Deferred[None]:
        """Put into the table of offsets how far the checks are; write the counts.

        @return: fires when the counts are written.
        """
        self.checks.save()
        self.counts.save()
        return self.counts.saved()

# -*- test-case-name: tests.broker.send -*-
"""The room of sends: from producers, from consumers, and replies."""

from __future__ import annotations

from typing import final

from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.appends.send_answers import QueueSends
from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.schedule.room import ScheduleRoom
from rocketbroker.broker.send.dead_letters import DeadLetters
from rocketbroker.broker.send.reply import Replies
from rocketbroker.broker.send.send import SendRequests, SentElsewhere
from rocketbroker.broker.send.send_back import SendBack
from rocketbroker.broker.transaction.room import TransactionRoom
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable


@final
class SendRoom(Room):
    """The room of sends: its responders and counters.

    @ivar dead_letters: messages that failed too often.
    @ivar sending: answers sends.
    @ivar send_back: stores again what consumers send back.
    @ivar replies: hands on the replies of consumers.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        clients: ClientsRoom,
        appends: AppendsRoom,
        schedule: ScheduleRoom,
        transactions: TransactionRoom,
    ) -> None:
        is_locked = clients.locks.is_locked
        delay_messages = schedule.delay_messages
        dead_letters = self.dead_letters = DeadLetters(
            metadata.topics, metadata.groups, is_locked
        )
        self.sending = SendRequests(
            context,
            metadata,
            appends,
            dead_letters,
            delay_messages,
            transactions.counts.prepared,
        )
        if context.settings.store.enable_schedule_message_stats:
            schedule.service.watch(self.sending.counter)
        self.send_back = SendBack(
            context, metadata, appends, dead_letters, delay_messages
        )
        self.replies = Replies(
            context, metadata, clients.producers, appends, self.sending.counter
        )

    def approved(self, topic: str, queue_id: int) -> QueueSends | None:
        """The counts of a queue to which sends go the hot way; None: they do not."""
        return self.sending.approved(topic, queue_id)

    def stored_by_worker(self, row: SentElsewhere) -> None:
        """Count what a worker has stored in one queue."""
        self.sending.stored_elsewhere(row)

    def taken_by_worker(self, requests: int) -> None:
        """Count requests that a worker has taken."""
        self.sending.taken_elsewhere(requests)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.sending.register(table)
        self.replies.register(table)
        self.send_back.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.sending.configure(settings)
        self.send_back.configure(settings)
        self.replies.configure(settings)

# -*- test-case-name: tests.broker.admin -*-
"""The room of administrators' requests about messages and those that consume them."""

from __future__ import annotations

from typing import final

from rocketbroker.broker.admin.client_relay import ClientRelay
from rocketbroker.broker.admin.clone_offsets import CloneOffsets
from rocketbroker.broker.admin.consume_progress import ConsumeProgress
from rocketbroker.broker.admin.message_queries import MessageQueries
from rocketbroker.broker.admin.queue_admin import QueueAdmin
from rocketbroker.broker.admin.reset_offset import ResetOffset
from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.figures import FiguresRoom
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.storage.room import StorageRoom
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable


@final
class ConsumersAdminRoom(Room):
    """The progress of consumers, their offsets and state; messages and queues."""

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        clients: ClientsRoom,
        storage: StorageRoom,
        pull: PullRoom,
        figures: FiguresRoom,
    ) -> None:
        store, settings = context.store, context.settings
        topics, groups, offsets = metadata.topics, metadata.groups, metadata.offsets
        consumers, dispatch = clients.consumers, storage.scheduler.dispatch
        waiting = context.administrators
        in_thread = waiting.before_threads(context.in_thread)
        self._queries = MessageQueries(
            store,
            topics,
            dispatch,
            context.in_thread,
            in_thread,
            settings.store.default_query_max_num,
        )
        self._reset_offset = ResetOffset(
            context, metadata, consumers, pull.pulling, dispatch
        )
        self._progress = ConsumeProgress(
            context, metadata, consumers, figures.keyed.taken_tps, dispatch
        )
        self._clone_offsets = CloneOffsets(
            store,
            topics,
            groups,
            offsets,
            consumers,
            waiting.before_slices(context.slices),
        )
        self._relay = ClientRelay(
            store, settings.broker.broker_name, topics, groups, consumers, in_thread
        )
        self._queues = QueueAdmin(
            store, topics, consumers, clients.filters, dispatch, in_thread
        )

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self._queries.register(table)
        self._reset_offset.register(table)
        self._progress.register(table)
        self._clone_offsets.register(table)
        self._relay.register(table)
        self._queues.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._queries.configure(settings)
        self._reset_offset.configure(settings)

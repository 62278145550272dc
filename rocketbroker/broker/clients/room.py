# -*- test-case-name: tests.broker.clients -*-
"""The room of the clients that are there, and of what they have agreed upon."""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.clients.consumer_info import ConsumerInfo
from rocketbroker.broker.clients.consumer_notify import ConsumerNotify
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.heartbeats import Heartbeats
from rocketbroker.broker.clients.members import MemberLog
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.clients.queue_assignment import QueueAssignment
from rocketbroker.broker.clients.queue_locks import QueueLocks
from rocketbroker.broker.clients.sql_compiler import SqlCompiler
from rocketbroker.broker.clients.sql_filters import Filters
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable

CLIENTS: Final = Service(
    "scan of clients",
    "clients that are silent leave their groups",
    always(10),
)
NOTICES: Final = Service(
    "notices to consumers",
    "with realTimeNotifyConsumerChange=false members are told of changes late",
    always(15),
    always(30),
)

#: Producers that are silent for so long are gone; for consumers a setting says it.
PRODUCER_SILENCE_SECONDS: Final = 120.0


@final
class ClientsRoom(Room):
    """Producers and consumers, their subscriptions and locks.

    @ivar filters: the subscriptions by SQL92.
    @ivar notify: tells consumers that their group has changed.
    @ivar consumers: the consumers that are there.
    @ivar producers: the producers that are there.
    @ivar heartbeats: answers requests 34, 35 and 46.
    @ivar assignment: answers requests 400 to 402.
    @ivar locks: the queues that consumers have to themselves.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        registration: RegistrationRoom,
    ) -> None:
        options, seconds = context.settings.broker, context.clock.seconds
        slices, long_requests = context.slices, context.long_requests
        topics, groups = metadata.topics, metadata.groups
        self._services: Services = context.services
        file = context.tables.file("consumerFilter.json")
        self.filters = Filters(options, file, context.wall_ms, SqlCompiler(slices))
        self.notify = ConsumerNotify(context.clock, options)
        log = MemberLog(slices)
        changed = self.notify.consumer_ids_changed
        consumers = self.consumers = ConsumerRegistry(seconds, log, changed)
        self.producers = ProducerRegistry(seconds, log)
        self.heartbeats = Heartbeats(
            context,
            topics,
            groups,
            consumers,
            self.producers,
            self.filters,
            registration.registration.announced,
        )
        is_needed = registration.name_servers.is_needed()
        self.assignment = QueueAssignment(
            options,
            topics,
            groups,
            consumers,
            metadata.request_modes,
            registration.routes.queues if is_needed else None,
        )
        self.locks = QueueLocks(seconds, slices, long_requests, context.settings)
        self._info = ConsumerInfo(
            topics, groups, metadata.offsets, consumers, context.store
        )
        self._silence_seconds = options.channel_expired_timeout / 1000

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.heartbeats.register(table)
        self.locks.register(table)
        self.assignment.register(table)
        self._info.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._silence_seconds = settings.broker.channel_expired_timeout / 1000
        self.filters.configure(settings)
        self.notify.configure(settings)
        self.heartbeats.configure(settings)
        self.locks.configure(settings)
        self.assignment.configure(settings)

    def load(self) -> None:
        """I{Blocking.} Read the filters."""
        self.filters.load()

    def start(self) -> None:
        """Look for clients that are gone, and tell those that are there."""
        self._services.begin(CLIENTS, self.scan)
        self._services.begin(NOTICES, self.notify.deliver)

    def scan(self) -> None:
        """Forget clients that are silent, and what nobody uses any more."""
        self.consumers.scan(self._silence_seconds)
        self.producers.scan(PRODUCER_SILENCE_SECONDS)
        self.locks.scan()
        self.filters.look(self.consumers.is_subscribed)

    def keep(self, seconds: float) -> None:
        """Count the silence of all clients from so much later on."""
        members = [
            member
            for group in self.consumers.groups()
            for member in group.members.values()
        ]
        for name in self.producers.names():
            members += self.producers.members(name)
        for member in members:
            member.seen += seconds

    def save(self) -> Deferred[None]:
        """Write the filters if they changed; fires when that is done."""
        self.filters.save()
        return self.filters.saved()

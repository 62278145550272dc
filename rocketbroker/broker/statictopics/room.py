# -*- test-case-name: tests.broker.statictopics -*-
"""The room of static topics, whose queues move between brokers."""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.roles import MASTERS
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.statictopics.mapped_requests import MappedRequests
from rocketbroker.broker.statictopics.mapping_cleanup import MappingCleanup
from rocketbroker.broker.statictopics.other_brokers import OtherBrokers
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.store.retention.cleaner import local_hour

CLEAN_MAPPINGS: Final = Service(
    "cleaning of mappings",
    "parts of moved queues whose messages are gone are not asked for any more",
    always(300),
    roles=MASTERS,
)


@final
class StaticTopicsRoom(Room):
    """The static topics of a broker.

    @ivar others: the brokers that have other parts of their queues.
    @ivar mapped: stands before the responders for static topics.
    @ivar cleanup: forgets parts whose messages are gone.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        registration: RegistrationRoom,
        pull: PullRoom,
    ) -> None:
        options, mappings = context.settings.broker, metadata.mappings
        routes = registration.routes
        self._services: Services = context.services
        self.others = OtherBrokers(context.client, routes, options)
        self.mapped = MappedRequests(mappings, self.others, options.broker_name)
        # Pulls that wait in a queue that has moved are to ask at its new place.
        mappings.watch(pull.long_polling.wake_all)
        self.cleanup = MappingCleanup(
            mappings, self.others, routes, context.settings, context.wall_ms, local_hour
        )

    def stand_before(self, table: ResponderTable) -> None:
        """See each request of a port that is complete, before its responder does."""
        self.mapped.stand_before(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.others.configure(settings)
        self.cleanup.configure(settings)

    def start(self) -> None:
        """Clean again and again."""
        self._services.begin(CLEAN_MAPPINGS, self.cleanup.look)

# -*- test-case-name: tests.broker.registration -*-
"""The room of the name servers: this broker as they know it, and others by them."""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.registration.membership import FILE, Membership
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.broker.registration.registration import Registration, clamped
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.config.broker_settings import BrokerSettings

REPLICA_HOSTS: Final = Service(
    "look at who belongs to the group",
    "only copies of slaves count that name servers know",
    lambda s: clamped(s.broker.register_name_server_period / 1000),
    always(1),
)


@final
class RegistrationRoom(Room):
    """What a broker says to name servers, and asks them.

    @ivar calls: the requests to name servers.
    @ivar name_servers: where they are.
    @ivar registration: tells them of this broker.
    @ivar membership: says who is a slave of this broker, and who its master.
    @ivar routes: the queues of other brokers.
    """

    def __init__(self, context: BrokerContext, metadata: MetadataRoom) -> None:
        settings, clock = context.settings, context.clock
        options, services = settings.broker, context.services
        self._services: Services = services
        ha_address = f"{options.broker_ip2}:{settings.store.ha_listen_port}"
        self.calls = NameServerApi(context.client, options, context.address, ha_address)
        self.name_servers = NameServers(
            settings, context.lookup, context.in_thread, services
        )
        self.registration = Registration(
            clock,
            self.calls,
            self.name_servers,
            options,
            metadata.topics,
            metadata.mappings,
            services,
        )
        self.membership = Membership(
            clock,
            settings,
            self.registration.members,
            self.registration.masters,
            self.name_servers,
            context.tables.file(FILE),
        )
        self.routes = RouteCache(
            clock.seconds,
            options.broker_name,
            lambda: self.name_servers.current,
            self.calls.route,
        )

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.calls.configure(settings)
        self.registration.configure(settings)
        self.membership.configure(settings)

    def load(self) -> None:
        """I{Blocking.} Read what name servers said last."""
        self.membership.load()

    def start(self) -> None:
        """Look at who belongs to the group of this broker's name."""
        self._services.begin(REPLICA_HOSTS, self.membership.look)

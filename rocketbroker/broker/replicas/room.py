# -*- test-case-name: tests.broker.replicas -*-
"""The room of the copies: the log to slaves, and from a master."""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.replicas.escape_bridge import EscapeBridge
from rocketbroker.broker.replicas.ha_status import HaStatus
from rocketbroker.broker.replicas.slave_progress import SlaveProgress
from rocketbroker.broker.roles import SLAVES
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable

#: How often a slave asks its master where the log ends: as often as they tell each
#: other that they are there.
MASTER_SECONDS: Final = 5.0

MASTERS_END: Final = Service(
    "look at the master's log",
    "a slave can say how far behind its master it is",
    always(MASTER_SECONDS),
    always(1),
    SLAVES,
)


@final
class ReplicasRoom(Room):
    """Both sides of replication, of which a broker's role uses one.

    @ivar server: sends the log to slaves.
    @ivar link: gets it from the master.
    @ivar status: how replication is.
    @ivar bridge: to other brokers, for what an acting master may not store itself.
    @ivar progress: of a slave, how far behind its master it is.
    """

    def __init__(self, context: BrokerContext, registration: RegistrationRoom) -> None:
        store, in_thread, services = context.store, context.in_thread, context.services
        self._services: Services = services
        self._options = context.settings.store
        self.server = context.replica_server(store, in_thread, registration.membership)
        self.link = context.master_link(store, in_thread)
        self.status = HaStatus(store, services, self.server, self.link)
        self.bridge = EscapeBridge(
            context.client, registration.routes, context.settings.broker
        )
        masters = registration.registration.masters
        self.progress = SlaveProgress(
            context.client,
            store,
            self.link,
            lambda: masters.current.address,
            context.wall_ms,
        )

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.status.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.store

    def problems(self) -> list[str]:
        """Sentences about copies that cannot be made."""
        return self.status.problems(self._options)

    def start(self) -> None:
        """Look at the master's log."""
        self._services.begin(MASTERS_END, self.progress.look)

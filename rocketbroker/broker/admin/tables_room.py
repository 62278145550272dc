# -*- test-case-name: tests.broker.admin -*-
"""The room of administrators' requests about topics and groups."""

from __future__ import annotations

from typing import final

from rocketbroker.broker.admin.group_admin import GroupAdmin
from rocketbroker.broker.admin.topic_admin import TopicAdmin
from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.figures import FiguresRoom
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.timer.room import TimerRoom
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable


@final
class TablesAdminRoom(Room):
    """Topics and groups are made, changed, listed and deleted."""

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        registration: RegistrationRoom,
        clients: ClientsRoom,
        appends: AppendsRoom,
        timer: TimerRoom,
        figures: FiguresRoom,
    ) -> None:
        self._topics = TopicAdmin(
            context,
            metadata,
            figures.keyed.put_tps,
            timer.service.counts.forget,
            appends.batcher.flush,
            registration.registration.announced,
            figures.creation_times,
        )
        self._groups = GroupAdmin(
            context,
            metadata,
            clients.consumers,
            clients.producers,
            figures.creation_times,
        )

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self._topics.register(table)
        self._groups.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._topics.configure(settings)
        self._groups.configure(settings)

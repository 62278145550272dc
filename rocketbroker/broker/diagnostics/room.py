# -*- test-case-name: tests.broker.diagnostics -*-
"""The room of the problems of groups."""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.diagnostics.group_diagnosis import GroupDiagnosis
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.remoting.cooperative_tasks import only_stopped
from rocketbroker.remoting.interfaces import IResponderTable, ISlices

DIAGNOSIS: Final = Service(
    "diagnosis",
    "finds problems of groups that nothing else reports",
    always(5),
)


@final
class DiagnosticsRoom(Room):
    """What is wrong with groups, and nothing else reports.

    @ivar diagnosis: finds it.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        clients: ClientsRoom,
        registration: RegistrationRoom,
        pull: PullRoom,
    ) -> None:
        self._services: Services = context.services
        self._slices: ISlices = context.slices
        self.diagnosis = GroupDiagnosis(
            context,
            clients.consumers,
            metadata.topics,
            metadata.groups,
            registration.routes,
            pull.refusals,
        )

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.diagnosis.register(table)

    def start(self) -> None:
        """Look again and again."""
        self._services.begin(DIAGNOSIS, self._look)

    def _look(self) -> Deferred[None]:
        """Look at all groups, in slices; the stop drops it."""
        look = self.diagnosis.look
        return self._slices.run(look, look()).addErrback(only_stopped)

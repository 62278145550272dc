# -*- test-case-name: tests.broker.access -*-
"""The room of access control: what the settings ask for."""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.access.plain_access import PlainAccess
from rocketbroker.broker.access.plain_files import PlainFiles
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, always
from rocketbroker.remoting.interfaces import IResponderTable
from rocketbroker.remoting.request_hooks import IRequestHook

#: As often as RocketMQ looks at these files.
LOOK: Final = Service(
    "look at accounts", "files of ACL 1.0 may have changed", always(5)
)


@final
class AccessRoom(Room):
    """Who may do what.

    @ivar hooks: to stand before the requests of both ports.
    """

    def __init__(self, context: BrokerContext) -> None:
        settings = context.settings
        options = settings.broker
        self._services = context.services
        self._plain = PlainAccess(
            PlainFiles(context.files, settings.home),
            context.in_thread,
            context.wall_ms,
            {
                "brokerName": options.broker_name,
                "brokerAddr": context.address,
                "clusterName": options.broker_cluster_name,
            },
        )
        self.hooks: tuple[IRequestHook, ...] = (self._plain,)

    def register(self, table: IResponderTable) -> None:
        """Answer requests about the rules."""
        self._plain.register(table)

    def load(self) -> None:
        """I{Blocking.} Read the rules.

        @raise ConfigurationError: they are not in order; one sentence.
        """
        self._plain.load()

    def start(self) -> None:
        """Look at the files."""
        self._services.begin(LOOK, self._plain.look)

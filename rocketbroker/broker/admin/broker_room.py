# -*- test-case-name: tests.broker.admin -*-
"""The room of administrators' requests about the broker itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, final

from rocketbroker.broker.admin.broker_config import BrokerConfig
from rocketbroker.broker.admin.runtime_info import RuntimeInfo
from rocketbroker.broker.admin.stats_views import StatsViews
from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.figures import FiguresRoom
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.files.own_version import own_version
from rocketbroker.files.settings_file import SettingsFile
from rocketbroker.remoting.interfaces import IResponderTable
from rocketbroker.wire.codes import RequestCode

#: A key that RocketMQ's brokers do not have; brokerVersionDesc is whom we are like.
OWN_VERSION: Final = "rocketbrokerVersion"

#: Some figures of request 28, as they are now.
Figures: TypeAlias = Callable[[], Mapping[str, str]]


@final
class BrokerAdminRoom(Room):
    """The state of a broker in figures, its settings, its statistics.

    @ivar runtime_info: the figures.
    """

    def __init__(
        self,
        context: BrokerContext,
        running: RunningSettings,
        registration: RegistrationRoom,
        appends: AppendsRoom,
        pull: PullRoom,
        figures: FiguresRoom,
        others: Sequence[Figures],
    ) -> None:
        """
        @param others: the figures of other rooms.
        """
        self.runtime_info = RuntimeInfo(
            context,
            running,
            figures.statistics,
            appends.group_commit,
            pull.pulling,
            context.waiting.family(RequestCode.END_TRANSACTION).size,
            (*others, lambda: {OWN_VERSION: own_version()}),
        )
        self._config = BrokerConfig(
            running,
            SettingsFile(context.files, context.settings.changes_path()),
            registration.registration.announced,
            context.in_thread,
        )
        self._views = StatsViews(figures.keyed)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.runtime_info.register(table)
        self._config.register(table)
        self._views.register(table)

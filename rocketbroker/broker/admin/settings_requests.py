# -*- test-case-name: tests.broker.admin.test_settings_requests -*-
"""Request 26: what the broker's settings are. The admin sheet, section 2.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.properties import render
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.admin import GetBrokerConfigResponseHeader


@final
class SettingsRequests:
    """Answers what tools ask about the settings."""

    def __init__(
        self,
        settings: BrokerSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._version = DataVersion(timestamp=wall_ms())

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.GET_BROKER_CONFIG, self.settings)

    def settings(self, connection: IConnection, request: Command) -> Command:
        """Request 26: all settings as lines of a properties file, sorted."""
        header = GetBrokerConfigResponseHeader(
            version=dumps(self._version.to_json()).decode()
        )
        return response_to(
            request,
            ext=header.to_ext(),
            body=render(self._settings.as_properties()).encode("utf-8"),
        )

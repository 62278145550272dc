# -*- test-case-name: tests.broker.admin.test_broker_config -*-
"""The settings of a broker on request: shown (26) and changed (25).

Changes are kept in the file of C{-c}, or, without one, in C{config/broker.properties}
in the store, which the next start reads. Which keys may change:
L{rocketbroker.config.running}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.config.effects import ignored
from rocketbroker.config.properties import render
from rocketbroker.files.settings_file import SettingsFile
from rocketbroker.remoting.audit_line import MAX_SHOWN, differences
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.remoting.settings_change import SettingsChange
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.admin import GetBrokerConfigResponseHeader


@final
class BrokerConfig:
    """Answers requests 25 and 26."""

    _log = Logger()

    def __init__(
        self,
        running: RunningSettings,
        file: SettingsFile,
        announced: Callable[[float], Deferred[None]],
        in_thread: InThread,
    ) -> None:
        """
        @param file: where changes are kept.
        @param announced: fires when name servers know what changed, or after so long.
        """
        self._running = running
        self._requests = SettingsChange(file, self._change, in_thread, announced)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_BROKER_CONFIG, self.show)
        table.register(RequestCode.UPDATE_BROKER_CONFIG, self.update)

    def show(self, connection: IConnection, request: Command) -> Command:
        """Request 26: all settings as lines of a properties file, sorted."""
        running = self._running
        header = GetBrokerConfigResponseHeader(
            version=dumps(running.version.to_json()).decode()
        )
        return response_to(
            request,
            ext=header.to_ext(),
            body=render(running.current.as_properties()).encode("utf-8"),
        )

    def update(self, connection: IConnection, request: Command) -> Answer:
        """Request 25: change settings."""
        return self._requests.update(connection, request)

    def _change(self, texts: dict[str, str]) -> str:
        """Take other values, all of them or none; what is different."""
        running = self._running
        before = running.current
        running.change(texts)
        ineffective = ignored(texts, running.current.parts())
        if ineffective:
            self._log.warn(
                "These settings have no effect here: {keys} (docs/settings.rst).",
                keys=", ".join(ineffective)[:MAX_SHOWN],
            )
        return differences(before.as_properties(), running.current.as_properties())

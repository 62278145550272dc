# -*- test-case-name: tests.nameserver.test_settings -*-
"""Settings asked for and changed while the name server runs (requests 318 and 319).

C{docs/facts/namesrv.md} 15, but for what L{rocketbroker.config.running} refuses;
RocketMQ answers success to a value that does not fit. A request cannot make the name
server wait for longer than L{MAX_WAIT_SECONDS<rocketbroker.config.namesrv>}.

A change is written to the file of C{-c}, or without one to that of C{configStorePath},
which the next start reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

from twisted.internet.defer import Deferred

from rocketbroker.config.namesrv import NamesrvOptions, NamesrvSettings
from rocketbroker.config.properties import render
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.settings_file import SettingsFile
from rocketbroker.nameserver.file_writer import InThread
from rocketbroker.remoting.audit_line import differences
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.remoting.settings_change import SettingsChange
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to


@final
class RunningSettings:
    """The settings as they are now.

    @ivar current: another object after each change.
    """

    def __init__(
        self, settings: NamesrvSettings, files: IFiles, in_thread: InThread
    ) -> None:
        self.current = settings
        file = SettingsFile(files, settings.options.config_store_path)
        self._requests = SettingsChange(file, self._change, in_thread)
        self._told: list[Callable[[NamesrvOptions], None]] = []

    @property
    def options(self) -> NamesrvOptions:
        """The name server's."""
        return self.current.options

    def watch(self, told: Callable[[NamesrvOptions], None]) -> None:
        """Call C{told} with the options after each change."""
        self._told.append(told)

    def stop(self) -> Deferred[None]:
        """Fires when nothing is being written any more."""
        return self._requests.settled()

    def register(self, table: IResponderTable) -> None:
        """Answer requests 318 and 319."""
        table.register(RequestCode.UPDATE_NAMESRV_CONFIG, self.update)
        table.register(RequestCode.GET_NAMESRV_CONFIG, self.get)

    def get(self, connection: IConnection, request: Command) -> Command:
        """All settings (319)."""
        body = render(self.current.as_properties()).encode("utf-8")
        return response_to(request, body=body)

    def update(self, connection: IConnection, request: Command) -> Answer:
        """Request 318: change settings."""
        return self._requests.update(connection, request)

    def _change(self, texts: Mapping[str, str]) -> str:
        """Take other values, all of them or none; what is different."""
        before = self.current
        self.current = before.changed(texts)
        for told in self._told:
            told(self.current.options)
        return differences(before.as_properties(), self.current.as_properties())

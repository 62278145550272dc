# -*- test-case-name: tests.broker.admin.test_broker_config -*-
"""The settings of a broker on request: shown (26) and changed (25).

A change is in force when it is answered, and written to the file of C{-c}, or, without
one, to C{config/broker.properties} in the store, which the next start reads. The file
keeps all else that stands in it. If the disk refuses, the change is in force all the
same, and the answer says so.

Which keys may change: L{rocketbroker.config.running}.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from rocketbroker.broker.admin.changes import MAX_SHOWN, differences
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.config.effects import ignored
from rocketbroker.config.properties import edited, parse, render
from rocketbroker.errors import ConfigurationError, SystemFailure
from rocketbroker.files.settings_file import SettingsFile
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.admin import GetBrokerConfigResponseHeader

#: How long an answer waits for name servers, if a change concerns them.
ANNOUNCE_SECONDS: Final = 3.0


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
        self._file = file
        self._announced = announced
        self._in_thread = in_thread
        self._writing = DeferredLock()

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
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
        if not request.body:
            return response_to(request)
        try:
            texts = parse(request.body.decode("utf-8"), "request")
        except (ConfigurationError, UnicodeDecodeError) as error:
            raise SystemFailure("string2Properties error") from error
        before = self._running.current.as_properties()
        self._running.change(texts)
        after = self._running.current.as_properties()
        self._log.info(
            "{peer} changed settings: {changes}, kept in {path}.",
            peer=connection.peer,
            changes=differences(before, after) or "none",
            path=self._file.path,
        )
        ineffective = ignored(texts, self._running.current.parts())
        if ineffective:
            self._log.warn(
                "These settings have no effect here: {keys} (docs/settings.rst).",
                keys=", ".join(ineffective)[:MAX_SHOWN],
            )
        return Deferred.fromCoroutine(self._kept(texts, request))

    async def _kept(self, texts: dict[str, str], request: Command) -> Command:
        """Write the change; the answer.

        @raise SystemFailure: it cannot be written.
        """
        announced = self._announced(ANNOUNCE_SECONDS)
        change = partial(edited, changes=texts, source=self._file.path)
        try:
            await self._writing.run(self._in_thread, partial(self._file.edit, change))
        except (OSError, ConfigurationError) as error:
            self._log.error(
                "The change of settings is lost with the next start, as {path} cannot "
                "be written: {error}",
                path=self._file.path,
                error=error,
            )
            reason = getattr(error, "strerror", None) or error
            raise SystemFailure(
                f"The change is in force but could not be saved: {reason}."
            ) from error
        await announced
        return response_to(request)

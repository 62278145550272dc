# -*- test-case-name: tests.nameserver.test_settings -*-
"""Settings asked for and changed while the name server runs (requests 318 and 319).

C{docs/facts/namesrv.md} 15, with three differences. Only the keys in L{CHANGEABLE} can
be changed by a request, so that no file or port is moved through the network. A wrong
value is refused; RocketMQ ignores it and answers success. A request cannot make the
name server wait for longer than L{MAX_WAIT_SECONDS}: it refuses all routes meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.config.namesrv import NamesrvOptions, NamesrvSettings
from rocketbroker.config.properties import parse, render, written
from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.errors import ConfigurationError, NoPermission, SystemFailure
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.nameserver.saving import InThread, Saving
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: Keys that are never changed, whatever configBlackList says.
NEVER: Final = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")

#: Keys that take effect at once, because they are read when they are used.
CHANGEABLE_NOW: Final = (
    "deleteTopicWithBrokerRegistration",
    "enableAllTopicList",
    "enableTopicList",
    "needWaitForService",
    "notifyMinBrokerIdChanged",
    "orderMessageEnable",
    "returnOrderTopicConfigToBroker",
    "supportActingMaster",
    "unRegisterBrokerQueueCapacity",
    "waitSecondsForService",
)

#: Keys that are written to the file, for the next start or for RocketMQ.
AT_NEXT_START: Final = (
    "clientRequestThreadPoolNums",
    "clientRequestThreadPoolQueueCapacity",
    "defaultThreadPoolNums",
    "defaultThreadPoolQueueCapacity",
    "scanNotActiveBrokerInterval",
    *(
        key
        for key in RemotingServerOptions.keys()  # noqa: SIM118
        if key not in ("bindAddress", "listenPort")
    ),
)

#: How long after its start a name server waits for brokers at most, where a request
#: says so: ten registrations of each.
MAX_WAIT_SECONDS: Final = 300

#: All keys that a request can change, besides unknown keys of the settings file.
CHANGEABLE: Final = frozenset((*CHANGEABLE_NOW, *AT_NEXT_START))


@final
class RunningSettings:
    """The settings as they are now.

    @ivar options: the name server's; another object after each change.
    """

    _log = Logger()

    def __init__(
        self, settings: NamesrvSettings, files: IFiles, in_thread: InThread
    ) -> None:
        self.options: NamesrvOptions = settings.options
        self._server = settings.server
        self._stated = dict(settings.properties)
        self._unknown = frozenset(settings.unknown)
        black = self.options.config_black_list.split(";")
        self._black = frozenset((*NEVER, *(key.strip() for key in black)))
        self._saving = Saving(
            JsonFile(files, self.options.config_store_path), in_thread
        )

    def stop(self) -> Deferred[None]:
        """Fires when nothing is being written any more."""
        return self._saving.idle()

    def register(self, table: IResponderTable) -> None:
        """Answer requests 318 and 319."""
        table.register(RequestCode.UPDATE_NAMESRV_CONFIG, self.update)
        table.register(RequestCode.GET_NAMESRV_CONFIG, self.get)

    def all(self) -> dict[str, str]:
        """All keys and values: those of the file, and those in force."""
        return {
            **self._stated,
            **self.options.as_properties(),
            **self._server.as_properties(),
        }

    def get(self, connection: IConnection, request: Command) -> Command:
        """All settings (319)."""
        return response_to(request, body=render(self.all()).encode("utf-8"))

    def update(self, connection: IConnection, request: Command) -> Answer:
        """Change settings (318)."""
        if not request.body:
            return response_to(request)
        try:
            properties = parse(request.body.decode("utf-8"), "request")
        except (ConfigurationError, UnicodeDecodeError) as error:
            raise SystemFailure("string2Properties error") from error
        self._change(properties)
        self._log.info(
            "{peer} changed settings: {changes:.1000}.",
            peer=connection.peer,
            changes=", ".join(f"{key}={value!r}" for key, value in properties.items()),
        )
        answer = self._saving.answer(lambda: written(self.all()), request)
        return Deferred.fromCoroutine(answer)

    def _change(self, properties: Mapping[str, str]) -> None:
        """Take the values that may be changed; unknown keys are ignored.

        @raise NoPermission: one of them may not be changed: then none is.
        @raise SystemFailure: a value does not fit: then none is taken.
        """
        if not self._black.isdisjoint(properties):
            raise NoPermission("Can not update config in black list.")
        known = self.all()
        for key in properties:
            if key in known and key not in CHANGEABLE and key not in self._unknown:
                raise NoPermission(f"Can not update config {key} while running.")
        try:
            options = self.options.changed(properties)
            server = self._server.changed(properties)
        except ConfigurationError as error:
            raise SystemFailure(str(error)) from error
        seconds = options.wait_seconds_for_service
        if (
            properties.keys() & {"needWaitForService", "waitSecondsForService"}
            and options.need_wait_for_service
            and seconds > MAX_WAIT_SECONDS
        ):
            raise SystemFailure(
                f"waitSecondsForService would be {seconds}, in which all routes are "
                f"refused: a request can make it {MAX_WAIT_SECONDS} at most"
            )
        self.options, self._server = options, server
        for key in self._unknown & properties.keys():
            self._stated[key] = properties[key]

# -*- test-case-name: tests.app.test_namesrv -*-
"""`twistd namesrv`: a name server as a program.

Everything that can be wrong with its settings, its file and its port is found before
the reactor runs: then an error is one sentence on standard error and exit status 1.
Flags and settings: C{docs/facts/namesrv.md 1} and C{2}.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar, final

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from rocketbroker.app.logs import LoggedService
from rocketbroker.app.metricsport import MetricsAccess, MetricsPort, namesrv_site
from rocketbroker.app.options import (
    ServerOptions,
    kept_changes,
    log_ignored,
    or_refuse,
    printed,
    say_ready,
)
from rocketbroker.app.process import ServerProcess, wall_ms
from rocketbroker.app.reactor import server_reactor, watch_timers
from rocketbroker.app.startflags import (
    METRICS_PORT,
    NO_FLAGS,
    StartFlags,
    reached,
    ready_json,
)
from rocketbroker.app.tls import ServerTls
from rocketbroker.config import properties
from rocketbroker.config.namesrv import NamesrvOptions, NamesrvSettings
from rocketbroker.config.paths import resolved
from rocketbroker.files.disk import Disk
from rocketbroker.files.secret_file import SecretFile
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.hub import hub_of
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command
from rocketbroker.wire.ha_secret import proved

T = TypeVar("T")


def steady_ms() -> int:
    """Milliseconds that only ever go forward, whatever is done to the clock."""
    return time.monotonic_ns() // 1_000_000


class Options(ServerOptions):
    """The command line of a name server; C{-n} is accepted and means nothing."""

    synopsis = "[-c FILE] [--set KEY=VALUE] [-p]"


def settings_of(options: Options) -> NamesrvSettings:
    """The settings of a command line and its file.

    @raise ConfigurationError: one sentence.
    """
    path, flags = options["configFile"], options.start_flags()
    if path is None:
        default = resolved(flags.settings.get("configStorePath", ""))
        kept_at = default or NamesrvOptions().config_store_path
        kept = kept_changes(kept_at, [NamesrvOptions])
        return NamesrvSettings.from_properties(flags.over(kept))
    # A change of it must not take the place of a symbolic link.
    path = os.path.realpath(resolved(path))
    return NamesrvSettings.from_properties(flags.over(properties.read(path)), path)


def hooked(table: ResponderTable, settings: NamesrvSettings) -> ResponderTable:
    """The table whose requests the plug-ins of requestHooks see.

    @raise ConfigurationError: one cannot be had; one sentence.
    """
    from rocketbroker.app.plugins import hooks_of
    from rocketbroker.remoting.request_hooks import fronted

    names = settings.options.request_hooks
    return fronted(table, hooks_of(names, settings.as_properties()))


@final
class NameServerService(LoggedService):
    """A name server on a reactor.

    @ivar nameserver: the name server; metrics read its counters.
    @ivar server: its port, with counters.
    @ivar port: where it listens.
    @ivar metrics: the port of /metrics.
    @ivar ready: fires when it serves.
    """

    name = "namesrv"
    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        settings: NamesrvSettings,
        flags: StartFlags = NO_FLAGS,
    ) -> None:
        """
        Read the files and listen.

        @param reactor: the reactor, not running yet.
        @param flags: whether the port of metrics is any free one.
        @raise ConfigurationError: a file makes no sense or cannot be written, or the
            port cannot be had; one sentence.
        """
        self.settings = settings
        self.ready: Deferred[None] = Deferred()
        self._reactor = reactor
        self._oneways: Callable[[str, Command], None] | None = None
        self._stop_client: Callable[[], Deferred[None]] | None = None
        self.nameserver = NameServer(
            reactor, settings, Disk(), steady_ms, self._in_thread, self._oneway
        )
        self.nameserver.load()
        table = self.nameserver.responders
        if settings.options.request_hooks:
            table = hooked(table, settings)
        self.server = RemotingServer(
            reactor,
            settings.server,
            table,
            hub_of(reactor, settings.server),
        )
        uses_tls = settings.client.use_tls
        self._tls = ServerTls(reactor, settings.tls, uses_tls, self._in_thread)
        self.server.group.tls = self._tls.port
        self._secret: SecretFile | None = None
        if settings.options.ha_secret_file is not None:
            path = settings.options.ha_secret_file
            self._secret = SecretFile(path, "haSecretFile")
            self._tls.look_at(self._secret)
        running = self.nameserver.settings
        running.watch(lambda _: self.server.configure(running.current.server))
        watch_timers(reactor, self.server.turns)
        access = MetricsAccess(reactor, settings.metrics, self._tls)
        ports = {"main": self.server.group}
        self.metrics = MetricsPort(
            reactor,
            settings.options,
            METRICS_PORT in settings.properties,
            namesrv_site(self.nameserver, ports, self._in_thread, access),
            flags.is_any_metrics_port,
            access.tls,
        )
        self.port = self.server.listen()
        try:
            self.metrics.listen()
        except BaseException:
            self.abandon()
            raise

    @property
    def address(self) -> str:
        """Where this machine reaches it."""
        return str(reached(self.settings.server.bind_address, self.port))

    def ready_line(self, output: str) -> str:
        """The line that scripts wait for.

        @param output: its form.
        """
        if output == "json":
            metrics = self.metrics.address
            return ready_json(self.address, (), metrics, None, os.getpid())
        return f"ready: name server {self.address}"

    def abandon(self) -> None:
        """Close the ports again: the program ends before the reactor has run."""
        self.metrics.stop()
        self.server.stop()

    def _in_thread(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} in the reactor's thread pool."""
        reactor = self._reactor
        return deferToThreadPool(reactor, reactor.getThreadPool(), function)

    def _oneway(self, address: str, command: Command) -> None:
        """Tell a broker something; few name servers ever do, so the client is late."""
        if self._secret is not None:
            fields, code = command.ext or {}, command.code
            fields = proved(self._secret.value, code, fields, wall_ms())
            command = Command(code, fields, flag=command.flag)
        if self._oneways is None:
            from rocketbroker.remoting.client import RemotingClient

            client = RemotingClient(
                self._reactor, self.settings.client, tls=self._tls.client_context
            )
            self._oneways, self._stop_client = client.oneway, client.stop
        self._oneways(address, command)

    def startService(self) -> None:
        """The reactor runs: begin to work."""
        super().startService()  # type: ignore[no-untyped-call]
        settings = self.settings
        log_ignored(self._log, settings.unknown, settings.properties, settings.parts())
        self._tls.start()
        self._reactor.callWhenRunning(self._start)

    def _start(self) -> None:
        self.nameserver.start()
        self._log.info(
            "The Name Server boot success. serializeType=JSON, address {host}:{port}",
            host=self.settings.server.bind_address,
            port=self.port,
        )
        self.ready.callback(None)

    async def _stopped(self) -> None:
        self._tls.stop()
        await self.metrics.stop()
        await self.server.stop()
        if self._stop_client is not None:
            await self._stop_client()
        await self.nameserver.stop()

    def stopService(self) -> Deferred[None]:
        """Stop; fires when all is on the disk."""
        super().stopService()  # type: ignore[no-untyped-call]
        return Deferred.fromCoroutine(self._stopped())


@or_refuse
def makeService(options: Options) -> NameServerService:
    """The name server that a command line asks for."""
    reactor = server_reactor()
    settings = settings_of(options)
    if options["printConfigItem"]:
        print(printed(settings.parts()), end="")
        raise SystemExit(0)
    log = options.open_log()
    flags = options.start_flags()
    process = ServerProcess(reactor, log, flags)
    service = NameServerService(reactor, settings, flags)
    service.log = log
    if options.says_ready:
        service.ready.addCallback(lambda _: say_ready(service.ready_line(flags.output)))
    process.opened(service.ready)
    return service

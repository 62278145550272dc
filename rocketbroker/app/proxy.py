# -*- test-case-name: tests.app.test_proxy -*-
"""`twistd rocketmq-proxy`: a proxy as a program, gRPC for clients of RocketMQ 5.

Its server is grpcio's for asyncio, so the reactor is Twisted's that runs a loop of
asyncio. What can be wrong with its settings and its port is found before that runs:
then an error is one sentence on standard error and exit status 1. Settings are those of
RocketMQ's rmq-proxy.json: L{rocketbroker.proxy.settings}.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar, final

from twisted.internet.defer import Deferred
from twisted.internet.main import installReactor
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from rocketbroker.app.certificates import WATCH_SECONDS
from rocketbroker.app.descriptors import proxied_connections
from rocketbroker.app.grpc_extra import import_extra
from rocketbroker.app.logs import LoggedService, LoggingLines
from rocketbroker.app.metricsport import MetricsAccess, MetricsPort, proxy_site
from rocketbroker.app.options import ServerOptions, or_refuse, say_ready
from rocketbroker.app.process import ServerProcess
from rocketbroker.app.proxy_certificate import ProxyCertificate
from rocketbroker.app.startflags import METRICS_PORT, NO_FLAGS, StartFlags
from rocketbroker.app.systemd import handed_on
from rocketbroker.app.tls import ServerTls
from rocketbroker.client.settings import name_servers
from rocketbroker.config.paths import resolved
from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.front import Front, Limits, listening_socket
from rocketbroker.proxy.inner_client import (
    CREDENTIALS,
    SIGNS,
    credentials_of,
    with_tools_account,
)
from rocketbroker.proxy.settings import ProxySettings, settings_from, settings_with
from rocketbroker.remoting.periodic import PeriodicCall

T = TypeVar("T")

#: Why nobody may be served who has to be a user.
UNSIGNED: Final = (
    "Users are looked up without a signature, and brokers that control access refuse "
    f"that: {CREDENTIALS} with {SIGNS}=true gives one (docs/proxy.rst)."
)


class Options(ServerOptions):
    """The command line of a proxy; C{-c} names rmq-proxy.json."""

    synopsis = "[-c FILE] [-n HOST:PORT] [--set KEY=VALUE]"

    optParameters: ClassVar[Sequence[Sequence[Any]]] = [
        *ServerOptions.optParameters,
        ["listen-fd", None, None, "A descriptor that listens, from who starts this."],
    ]


def inherited_socket(text: str, source: str) -> socket.socket:
    """The listening socket that somebody has handed on.

    @param text: its descriptor.
    @param source: who says so.
    @raise ConfigurationError: it is none.
    """
    try:
        found = socket.socket(fileno=int(text))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{source} cannot be {text!r}: {error}.") from error
    problem = None
    if not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        problem = "it does not listen"
    elif found.family not in (socket.AF_INET, socket.AF_INET6):
        problem = "it is none of TCP"
    if problem is not None:
        found.close()
        raise ConfigurationError(f"{source} cannot be {text!r}: {problem}.")
    found.setblocking(False)
    return found


def listening_of(
    options: Options, environment: Mapping[str, str]
) -> socket.socket | None:
    """The listening socket that this process was started with.

    @return: C{None}: it is to listen itself.
    @raise ConfigurationError: it cannot be used.
    """
    given = options["listen-fd"]
    if given is not None:
        return inherited_socket(given, "--listen-fd")
    found = handed_on(environment, os.getpid())
    return None if found is None else inherited_socket(str(found), "systemd's socket")


def asyncio_reactor() -> Any:
    """The reactor of this process, with a loop of asyncio in it.

    @raise ConfigurationError: it has another one.
    """
    if "twisted.internet.reactor" not in sys.modules:
        from twisted.internet.asyncioreactor import AsyncioSelectorReactor

        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        made = AsyncioSelectorReactor(loop)
        installReactor(made)  # type: ignore[no-untyped-call]
    from twisted.internet import reactor

    if type(reactor).__name__ != "AsyncioSelectorReactor":
        raise ConfigurationError(
            "A proxy needs the reactor of asyncio: leave twistd's --reactor out, or "
            "give --reactor asyncio."
        )
    return reactor


def settings_of(
    options: Options, environment: Mapping[str, str]
) -> tuple[ProxySettings, tuple[str, ...], list[str]]:
    """The settings, the name servers, and the keys that are not used here.

    @raise ConfigurationError: one sentence.
    """
    text = "{}"
    if options["configFile"] is not None:
        path = resolved(options["configFile"])
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path} cannot be read: {error}.") from error
    settings, unused = settings_from(text)
    settings = settings_with(settings, options.start_flags().over({}))
    settings = with_tools_account(settings, environment.get("ROCKETMQ_HOME", ""))
    given = options["namesrvAddr"] or settings.namesrv_addr or None
    if given is None:
        given = environment.get("NAMESRV_ADDR")
    return settings, name_servers(given, environment), unused


@final
class ProxyService(LoggedService):
    """A proxy on the reactor of asyncio.

    @ivar ready: fires when it serves.
    """

    name = "rocketmq-proxy"
    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        settings: ProxySettings,
        servers: tuple[str, ...],
        unused: list[str],
        listening: socket.socket | None = None,
        flags: StartFlags = NO_FLAGS,
    ) -> None:
        """
        @param unused: keys of the file that change nothing here.
        @param listening: has the port; C{None}: it is that of the settings.
        @param flags: whether the port of metrics is to be had, and is any free one.
        @raise ConfigurationError: the extra is not here, the port is taken, or there is
            something wrong with the certificate.
        """
        import_extra()
        from rocketbroker.proxy.server import Proxy

        self.ready: Deferred[None] = Deferred()
        self._reactor = reactor
        self._unused = unused
        self._asks_unsigned = settings.controls_access and not credentials_of(settings)
        self._certificate = ProxyCertificate(settings)
        if listening is None:
            listening = listening_socket("", settings.grpc_server_port)
        self._front = Front(
            listening,
            settings.tls_server_mode,
            self._certificate.context,
            Limits(connections=proxied_connections(resource)),
        )
        self._proxy = Proxy(servers, settings, self._front)
        self._watch: PeriodicCall | None = None
        self._lines = LoggingLines()
        self._tls = ServerTls(
            reactor, settings.metrics_tls_options, False, self._in_thread
        )
        access = MetricsAccess(reactor, settings.metrics_access, self._tls)
        self._metrics = MetricsPort(
            reactor,
            settings,
            METRICS_PORT in flags.over({}) or settings.has_own_metrics_port,
            proxy_site(self._proxy, settings, self._in_thread, access),
            flags.is_any_metrics_port,
            access.tls,
        )
        self._metrics.listen()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._front.port

    def ready_line(self, output: str) -> str:
        """The line that scripts wait for.

        @param output: its form.
        """
        address = f"127.0.0.1:{self.port}"
        if output == "json":
            metrics = self._metrics.address
            ready = {"proxy": address, "metrics": metrics, "pid": os.getpid()}
            return json.dumps(ready)
        return f"ready: proxy {address}"

    def startService(self) -> None:
        """The reactor runs: begin to work."""
        super().startService()  # type: ignore[no-untyped-call]
        lines = logging.getLogger("rocketbroker")
        lines.setLevel(logging.INFO)
        lines.addHandler(self._lines)
        if self._unused:
            self._log.warn(
                "These settings have no effect here: {keys} (docs/proxy.rst).",
                keys=", ".join(self._unused),
            )
        if self._asks_unsigned:
            self._log.warn("{warning}", warning=UNSIGNED)
        if self._certificate.warning is not None:
            self._log.warn("{warning}", warning=self._certificate.warning)
        if self._certificate.files is not None:
            look = self._certificate.files.look
            self._watch = PeriodicCall(self._reactor, "look at the certificate", look)
            self._watch.start(WATCH_SECONDS)
        self._tls.start()
        self._reactor.callWhenRunning(self._start)

    def _in_thread(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} in the reactor's thread pool."""
        reactor = self._reactor
        return deferToThreadPool(reactor, reactor.getThreadPool(), function)

    def _start(self) -> None:
        started = _deferred(self._proxy.start())
        started.addCallbacks(self._started, self._failed)

    def _started(self, _: None) -> None:
        self._log.info("The proxy boot success: gRPC on port {port}.", port=self.port)
        self.ready.callback(None)

    def _failed(self, failure: Any) -> None:
        self._log.critical(
            "The proxy cannot start: {problem}", problem=failure.getErrorMessage()
        )
        self._reactor.stop()

    def stopService(self) -> Deferred[None]:
        """Stop; fires when calls under way are answered."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._watch is not None:
            self._watch.stop()
        self._tls.stop()
        return Deferred.fromCoroutine(self._stopped())

    async def _stopped(self) -> None:
        await _deferred(self._proxy.stop())
        await self._metrics.stop()


def _deferred(coroutine: Coroutine[Any, Any, T]) -> Deferred[T]:
    return Deferred.fromFuture(asyncio.ensure_future(coroutine))


@or_refuse
def makeService(options: Options) -> ProxyService:
    """The proxy that a command line asks for."""
    reactor = asyncio_reactor()
    settings, servers, unused = settings_of(options, os.environ)
    log = options.open_log()
    flags = options.start_flags()
    process = ServerProcess(reactor, log, flags)
    listening = listening_of(options, os.environ)
    service = ProxyService(reactor, settings, servers, unused, listening, flags)
    service.log = log
    if options.says_ready:
        service.ready.addCallback(lambda _: say_ready(service.ready_line(flags.output)))
    process.opened(service.ready)
    return service

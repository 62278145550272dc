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
import os
import sys
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar, final

from twisted.internet.defer import Deferred
from twisted.internet.main import installReactor
from twisted.logger import Logger

from rocketbroker.app.logs import LoggedService
from rocketbroker.app.options import ServerOptions, or_refuse, say_ready
from rocketbroker.app.process import ServerProcess
from rocketbroker.client.settings import name_servers
from rocketbroker.config.paths import resolved
from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.settings import ProxySettings, settings_from, settings_with

T = TypeVar("T")


class Options(ServerOptions):
    """The command line of a proxy; C{-c} names rmq-proxy.json."""

    synopsis = "[-c FILE] [-n HOST:PORT] [--set KEY=VALUE]"


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
    settings = settings_with(settings, options.start_flags().settings)
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
    ) -> None:
        """
        @param unused: keys of the file that change nothing here.
        @raise ConfigurationError: grpcio is not installed.
        """
        try:
            from rocketbroker.proxy.server import Proxy
        except ImportError as error:
            raise ConfigurationError(
                f"A proxy needs {error.name}: pip install 'rocketbroker[grpc]'."
            ) from error
        self.ready: Deferred[None] = Deferred()
        self._reactor = reactor
        self._unused = unused
        self._proxy = Proxy(servers, settings)

    @property
    def port(self) -> int:
        """Where it listens, once it is ready."""
        return self._proxy.port

    def ready_line(self, output: str) -> str:
        """The line that scripts wait for.

        @param output: its form.
        """
        address = f"127.0.0.1:{self.port}"
        if output == "json":
            return json.dumps({"proxy": address, "pid": os.getpid()})
        return f"ready: proxy {address}"

    def startService(self) -> None:
        """The reactor runs: begin to work."""
        super().startService()  # type: ignore[no-untyped-call]
        if self._unused:
            self._log.warn(
                "These settings have no effect here: {keys} (docs/proxy.rst).",
                keys=", ".join(self._unused),
            )
        self._reactor.callWhenRunning(self._start)

    def _start(self) -> None:
        started = _deferred(self._proxy.start())
        started.addCallbacks(self._started, self._failed)

    def _started(self, _: None) -> None:
        self._log.info(
            "The proxy boot success: gRPC on port {port}.", port=self._proxy.port
        )
        self.ready.callback(None)

    def _failed(self, failure: Any) -> None:
        self._log.critical(
            "The proxy cannot start: {problem}", problem=failure.getErrorMessage()
        )
        self._reactor.stop()

    def stopService(self) -> Deferred[None]:
        """Stop; fires when calls under way are answered."""
        super().stopService()  # type: ignore[no-untyped-call]
        return _deferred(self._proxy.stop())


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
    service = ProxyService(reactor, settings, servers, unused)
    service.log = log
    if options.says_ready:
        service.ready.addCallback(lambda _: say_ready(service.ready_line(flags.output)))
    process.opened(service.ready)
    return service

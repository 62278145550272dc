# -*- test-case-name: tests.app.test_metricsport -*-
"""The port of `/metrics` and `/healthz`, for a broker (which has `/problems` besides),
a name server and a proxy.

Everything behind it is imported with the first connection: a server that nobody scrapes
neither starts later for it nor is larger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, final

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ServerFactory
from twisted.logger import Logger

from rocketbroker.app.startflags import METRICS_PORT, reached
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.plain_port import PlainPort

if TYPE_CHECKING:
    from rocketbroker.broker.background_work import InThread
    from rocketbroker.broker.broker import Broker
    from rocketbroker.nameserver.nameserver import NameServer
    from rocketbroker.proxy.server import Proxy
    from rocketbroker.proxy.settings import ProxySettings
    from rocketbroker.remoting.connection_group import ConnectionGroup
    from rocketbroker.workers.workers import Workers

#: The exporter that this port is.
PROMETHEUS: Final = "PROM"

#: For so long (in s) a connection may stay without a whole request, from the first byte
#: of its head or the end of the last answer on.
IDLE_SECONDS: Final = 60

#: Why a name server is not ready.
NOT_READY: Final = "It waits for brokers to register (waitSecondsForService)."

#: Why a proxy is not.
NOT_SERVING: Final = "It does not serve yet, or no longer."


class MetricsOptions(Protocol):
    """The settings that matter here, of a broker, a name server or a proxy."""

    @property
    def metrics_exporter_type(self) -> str:
        """How metrics leave the server."""

    @property
    def metrics_prom_exporter_port(self) -> int:
        """The port; 0: none."""

    @property
    def metrics_prom_exporter_host(self) -> str:
        """The address; empty: all."""


@final
class SiteLater(ServerFactory[Any]):
    """Makes the site when somebody connects."""

    noisy = False

    def logPrefix(self) -> str:
        """The name of the port in Twisted's log lines."""
        return "Metrics"

    def __init__(self, make_site: Callable[[], Any]) -> None:
        self._make_site = make_site
        self._site: Any = None

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """One connection."""
        if self._site is None:
            self._site = self._make_site()
            self._site.doStart()
        return self._site.buildProtocol(addr)

    def stopFactory(self) -> None:
        """The port is closed."""
        if self._site is not None:
            self._site.doStop()
            self._site = None


@final
class MetricsPort:
    """Listens if the settings say so.

    @ivar address: where this machine reaches it; C{None}: it does not listen.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        options: MetricsOptions,
        is_required: bool,
        make_site: Callable[[], Any],
        is_any: bool = False,
    ) -> None:
        """
        @param reactor: listens, and tells the time.
        @param is_required: whether the port was asked for, so that the server does not
            start without it.
        @param is_any: whether port 0 of the settings means any that is free.
        """
        self.address: str | None = None
        self._is_any = is_any
        self._reactor = reactor
        self._options = options
        self._is_required = is_required
        self._make_site = make_site
        self._listening: PlainPort | None = None

    def listen(self) -> int:
        """Accept scrapes; also before the reactor runs.

        @return: the port, 0 if metrics are off or the port of the defaults is taken.
        @raise ConfigurationError: one sentence, if a port that was asked for is taken.
        """
        options = self._options
        port = options.metrics_prom_exporter_port
        if options.metrics_exporter_type != PROMETHEUS or not (port or self._is_any):
            return 0
        host = options.metrics_prom_exporter_host
        try:
            listening = PlainPort(
                self._reactor, SiteLater(self._make_site), "metrics", IDLE_SECONDS
            )
            port = listening.listen(host, port)
        except ConfigurationError as error:
            cause = cast(OSError, error.__cause__)
            sentence = (
                f"The metrics port {host or '*'}:{port} cannot be had: "
                f"{cause.strerror or cause} "
                f"({METRICS_PORT}; 0 switches metrics off)."
            )
            if self._is_required:
                raise ConfigurationError(sentence) from error
            self._log.warn(
                "There are no metrics and no /healthz: {sentence}", sentence=sentence
            )
            return 0
        self._listening = listening
        self.address = reached(host, port)
        return port

    def stop(self) -> Deferred[None]:
        """Close the port."""
        listening, self._listening = self._listening, None
        if listening is None:
            return succeed(None)
        return listening.stop()


def broker_site(
    broker: Broker,
    ports: dict[str, ConnectionGroup],
    wall_ms: Callable[[], int],
    in_thread: InThread,
    workers: Workers | None,
    standing: Callable[[], list[str]],
) -> Callable[[], Any]:
    """Return the function that makes the site of a broker.

    @param standing: sentences about what is as it should be, for C{/healthz}.
    """

    def make() -> Any:
        from rocketbroker.metrics.broker_families import BrokerFamilies
        from rocketbroker.metrics.problems import ProblemsResource
        from rocketbroker.metrics.site import metrics_site

        families = BrokerFamilies(broker, ports, wall_ms, in_thread, workers)
        return metrics_site(
            families.collect,
            in_thread,
            broker.unhealthy,
            lambda: [*standing(), *broker.problems()],
            broker.not_ready,
            {b"problems": ProblemsResource(broker.diagnostics.diagnosis.to_json)},
        )

    return make


def namesrv_site(
    server: NameServer, ports: dict[str, ConnectionGroup], in_thread: InThread
) -> Callable[[], Any]:
    """Return the function that makes the site of a name server."""

    def make() -> Any:
        from rocketbroker.metrics.namesrv_families import NameServerFamilies
        from rocketbroker.metrics.site import metrics_site

        families = NameServerFamilies(server, ports, in_thread)
        return metrics_site(
            families.collect,
            in_thread,
            lambda: None,
            tuple,
            lambda: None if server.lookups.is_ready else NOT_READY,
        )

    return make


def proxy_site(
    proxy: Proxy, settings: ProxySettings, in_thread: InThread
) -> Callable[[], Any]:
    """Return the function that makes the site of a proxy."""

    def make() -> Any:
        from socket import gethostname

        from rocketbroker.metrics.proxy_families import ProxyFamilies
        from rocketbroker.metrics.site import metrics_site

        families = ProxyFamilies(
            proxy.calls, proxy.service, settings, gethostname(), in_thread
        )
        return metrics_site(
            families.collect,
            in_thread,
            lambda: None,
            tuple,
            lambda: None if proxy.serves else NOT_SERVING,
        )

    return make

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
from rocketbroker.app.tls import ServerTls
from rocketbroker.config.metrics import MetricsAccessOptions
from rocketbroker.config.tls import DISABLED, ENFORCING
from rocketbroker.errors import ConfigurationError
from rocketbroker.files.secret_file import SecretFile
from rocketbroker.remoting.plain_port import PlainPort
from rocketbroker.remoting.tls_transport import Contexts

if TYPE_CHECKING:
    from rocketbroker.broker.background_work import InThread
    from rocketbroker.broker.broker import Broker
    from rocketbroker.metrics.page_guard import PageGuard
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
class MetricsAccess:
    """How the pages are asked for, and who sees them.

    @ivar tls: what clients speak TLS with; C{None}: they do not.
    """

    def __init__(
        self, reactor: Any, options: MetricsAccessOptions, server: ServerTls
    ) -> None:
        """
        I{Blocking.}

        @param server: has the certificate, and looks at files.
        @raise ConfigurationError: the file of the token is not in order; one sentence.
        """
        self.tls: Contexts | None = None
        if options.metrics_tls != DISABLED:
            self.tls = server.at_port(options.metrics_tls == ENFORCING)
        self._reactor = reactor
        self._takes_certificates = options.metrics_client_certificate
        self._token: SecretFile | None = None
        path = options.metrics_bearer_token_file
        if path is not None:
            self._token = SecretFile(path, "metricsBearerTokenFile")
            server.look_at(self._token)

    def guard(self) -> PageGuard | None:
        """Says who sees pages; C{None}: everybody does."""
        if self._token is None and not self._takes_certificates:
            return None
        from rocketbroker.metrics.page_guard import PageGuard
        from rocketbroker.remoting.refusal_log import AddressRefusals

        refusals = AddressRefusals(self._reactor.seconds)
        return PageGuard(self._token, self._takes_certificates, refusals)


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
        tls: Contexts | None = None,
    ) -> None:
        """
        @param reactor: listens, and tells the time.
        @param is_required: whether the port was asked for, so that the server does not
            start without it.
        @param is_any: whether port 0 of the settings means any that is free.
        @param tls: what clients speak TLS with; C{None}: they do not.
        """
        self.address: str | None = None
        self._is_any = is_any
        self._reactor = reactor
        self._options = options
        self._is_required = is_required
        self._make_site = make_site
        self._tls = tls
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
                self._reactor,
                SiteLater(self._make_site),
                "metrics",
                IDLE_SECONDS,
                self._tls,
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
    access: MetricsAccess,
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
            access.guard(),
        )

    return make


def namesrv_site(
    server: NameServer,
    ports: dict[str, ConnectionGroup],
    in_thread: InThread,
    access: MetricsAccess,
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
            guard=access.guard(),
        )

    return make


def proxy_site(
    proxy: Proxy, settings: ProxySettings, in_thread: InThread, access: MetricsAccess
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
            guard=access.guard(),
        )

    return make

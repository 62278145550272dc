# -*- test-case-name: tests.app.test_broker -*-
"""`twistd rocketbroker`: a broker as a program.

Everything that can be wrong with its settings, its store and its ports is found before
the reactor runs: then an error is one sentence on standard error and exit status 1.
Flags and settings: C{docs/facts/broker.md 1}.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, final

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from rocketbroker.app.address_lookup import AddressLookup
from rocketbroker.app.logs import LoggedService
from rocketbroker.app.metricsport import MetricsAccess, MetricsPort, broker_site
from rocketbroker.app.options import (
    ServerOptions,
    kept_changes,
    log_ignored,
    or_refuse,
    printed,
    say_ready,
)
from rocketbroker.app.plugins import (
    attachments_of,
    followers_of,
    hooks_of,
    start_all,
    stop_all,
    wrapped,
)
from rocketbroker.app.process import ServerProcess, wall_ms
from rocketbroker.app.reactor import server_reactor, watch_timers
from rocketbroker.app.startflags import (
    METRICS_PORT,
    NO_FLAGS,
    ReadyBroker,
    StartFlags,
    ready_json,
)
from rocketbroker.app.tls import ServerTls
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.broker import VIP_DISTANCE, Broker
from rocketbroker.broker.context import BrokerContext
from rocketbroker.codec.build import FORM
from rocketbroker.config.addresses import check_host
from rocketbroker.config.broker_settings import CLASSES, BrokerSettings, changes_path
from rocketbroker.config.keyed import PORT
from rocketbroker.config.machine import store_root
from rocketbroker.config.paths import resolved
from rocketbroker.config.properties import read
from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.config.workers import check_workers, worker_count
from rocketbroker.errors import ConfigurationError
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.open_files import OpenFiles, bound_of
from rocketbroker.files.processes import ProcessTable
from rocketbroker.files.secret_file import SecretFile
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.remoting.addresses import host_bytes, packed_address
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub, hub_of
from rocketbroker.remoting.listener import descriptor_limit
from rocketbroker.remoting.request_hooks import IRequestHook, fronted
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.turns import Turns
from rocketbroker.replication.interfaces import Membership
from rocketbroker.replication.master import ReplicaServer
from rocketbroker.replication.security import HaSecurity
from rocketbroker.replication.slave import MasterLink
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.takeover import not_taken_over
from rocketbroker.store.recovery.outcome import RecoveryOutcome

if TYPE_CHECKING:
    # Most brokers have none of these: they are imported where somebody asks for them.
    from rocketbroker.app.testing.mode import TestingMode
    from rocketbroker.auth.signatures import Credentials
    from rocketbroker.store.sharing.sharing import Sharing
    from rocketbroker.workers.approvals import Approvals
    from rocketbroker.workers.workers import Workers

T = TypeVar("T")

#: The settings that C{-m} prints, as RocketMQ's does; C{-p} prints all.
IMPORTANT: Final = frozenset(
    {
        "namesrvAddr",
        "listenPort",
        "brokerIP1",
        "recoverConcurrently",
        "autoCreateTopicEnable",
        "autoCreateSubscriptionGroup",
        "msgTraceTopicName",
        "traceTopicEnable",
        "rejectTransactionMessage",
        "fetchNameSrvAddrByDnsLookup",
        "fetchNamesrvAddrByAddressServer",
        "transactionTimeOut",
        "transactionCheckMax",
        "transactionCheckInterval",
        "aclEnable",
    }
)


class Options(ServerOptions):
    """The command line of a broker."""

    synopsis = (
        "[-c FILE] [-n HOST:PORT;HOST:PORT] [--set KEY=VALUE] [--topic NAME:QUEUES] "
        "[--advertise HOST[:PORT]] [--workers N|auto] [-p | -m]"
    )
    optParameters: ClassVar[Sequence[Sequence[Any]]] = [
        ["advertise", None, None, "HOST or HOST:PORT, which clients are told."],
        ["workers", None, None, "Processes for clients' connections: N or auto."],
    ]
    optFlags: ClassVar[Sequence[Sequence[Any]]] = [
        ["printImportantConfig", "m", "Print the important settings and exit."],
    ]

    def opt_topic(self, text: str) -> None:
        """A topic, NAME:QUEUES, made unless it is there; may be given again."""
        self.topics.append(text)


def settings_of(options: Options) -> BrokerSettings:
    """The settings of a command line and its file.

    @raise ConfigurationError: one sentence.
    """
    path, flags = options["configFile"], options.start_flags()
    if path is not None:
        # A change of it must not take the place of a symbolic link.
        path = os.path.realpath(resolved(path))
        properties = read(path)
    else:
        root = resolved(flags.settings.get("storePathRootDir", "")) or store_root()
        properties = kept_changes(changes_path(root), CLASSES)
    properties = flags.over(properties)
    if options["advertise"] is not None:
        properties.update(advertised(options["advertise"]))
    if options["workers"] is not None:
        properties["workers"] = asked_workers(options["workers"])
    return BrokerSettings.from_properties(properties, path, options["namesrvAddr"])


def advertised(text: str) -> dict[str, str]:
    """The settings for the value of C{--advertise}, a host or C{HOST:PORT}.

    @raise ConfigurationError: it is no address; one sentence.
    """
    host, port = text, ""
    if text.count(":") == 1 or "]:" in text:
        host, _, port = text.rpartition(":")
        if not (port.isascii() and port.isdigit() and 0 < int(port[:9]) <= PORT[1]):
            raise ConfigurationError(
                f"--advertise cannot be {text!r}: its port must be from 1 to {PORT[1]}."
            )
    try:
        check_host(host)
    except ValueError as error:
        raise ConfigurationError(f"--advertise cannot be {text!r}: {error}.") from error
    settings = {"brokerIP1": host}
    if port:
        settings["rocketbrokerAdvertisedPort"] = port
    return settings


def asked_workers(text: str) -> str:
    """The value of C{--workers}.

    @raise ConfigurationError: it is no number of workers; one sentence.
    """
    try:
        check_workers(text)
    except ValueError as error:
        raise ConfigurationError(f"--workers cannot be {text!r}: {error}.") from error
    return text


def checked_topics(
    topics: Mapping[str, int], settings: BrokerSettings
) -> Mapping[str, int]:
    """The topics of C{--topic}.

    @raise ConfigurationError: this broker makes none; one sentence.
    """
    if topics and settings.store.broker_role == "SLAVE":
        raise ConfigurationError(
            "--topic is not for a slave, which takes its topics from its master: give "
            "it to the master."
        )
    return topics


def workers_of(
    reactor: Any,
    hub: Hub | Turns,
    settings: BrokerSettings,
    approvals: Approvals | None = None,
    sharing: Sharing | None = None,
) -> Workers | None:
    """The workers that the settings ask for; they have not begun.

    @param approvals: lets them append; None: they may not.
    @param sharing: of the store that they join.
    @raise ConfigurationError: there can be none here; one sentence.
    """
    size = worker_count(settings.broker.workers)
    if not size:
        return None
    if not isinstance(hub, Hub):
        raise ConfigurationError(
            f"workers cannot be {settings.broker.workers!r}: there is no epoll here, "
            "which workers need; 0 does without."
        )
    from rocketbroker.app.worker_process import spawner
    from rocketbroker.workers.hello import WorkerSettings
    from rocketbroker.workers.lock_watch import LockWatch
    from rocketbroker.workers.workers import Workers

    lock_watch = None if sharing is None else LockWatch(reactor, sharing)
    server = settings.server
    each = WorkerSettings.share(
        ConnectionLimits.of_server(server),
        server.rocketbroker_max_buffered_bytes,
        settings.tls,
        size,
    )
    spawn = spawner(reactor, server.listen_port)
    return Workers(reactor, hub, each, size, spawn, approvals, lock_watch)


def admin_options(settings: BrokerSettings) -> RemotingServerOptions:
    """How the admin port listens."""
    broker, server = settings.broker, settings.server
    return attrs.evolve(
        server,
        listen_port=broker.rocketbroker_admin_port,
        bind_address=broker.rocketbroker_admin_address or server.bind_address,
    )


def log_settings(log: Logger, settings: BrokerSettings) -> None:
    """Log what an operator should know about the settings at the start."""
    log_ignored(log, settings.unknown, settings.given, settings.parts())
    kept: dict[str, str] = {}
    if settings.broker.broker_config_path is None:
        kept = kept_changes(settings.changes_path(), CLASSES)
    if kept:
        log.info(
            "Settings that requests have changed are taken from {path}: {keys}.",
            path=settings.changes_path(),
            keys=", ".join(sorted(kept)),
        )
    broker, role = settings.broker, settings.store.broker_role
    log.info(
        "This is {role} ({key}): {name} of the cluster {cluster}, brokerId {number}.",
        role="a slave" if role == "SLAVE" else "a master",
        key=role,
        name=broker.broker_name,
        cluster=broker.broker_cluster_name,
        number=broker.broker_id,
    )
    if not settings.has_name_servers:
        log.warn(
            "No name server is configured, so no client finds this broker: set "
            "namesrvAddr, or start it with -n."
        )
    log.info(
        "Clients are told the address {address} ({reason}).",
        address=settings.broker.broker_ip1,
        reason=settings.address_reason,
    )
    told, port = settings.advertised_port, settings.server.listen_port
    if told != port:
        log.info(
            "Clients are told the port {told} instead of {port}. Those with "
            "vipChannelEnabled connect to {vip}: forward that to {own}, or they find "
            "nothing.",
            told=told,
            port=port,
            vip=told - VIP_DISTANCE,
            own=port - VIP_DISTANCE,
        )


def log_recovery(
    log: Logger, root: str, outcome: RecoveryOutcome, report: Iterable[str]
) -> None:
    """Log how the store was opened, and all that an operator should know of it.

    @param report: sentences about faults that were found, and what is not taken over.
    """
    line = (
        "Opened the store {root} after {stop} in {seconds} s: {records} messages were "
        "read, the log ends at {end}, {cut} bytes were cut off{where}."
    )
    if outcome.clean and not outcome.end:
        line = "Opened the store {root} in {seconds} s: it has no messages yet."
    log.info(
        line,
        root=root,
        stop="a clean stop" if outcome.clean else "a crash",
        seconds=round(outcome.seconds, 3),
        records=outcome.records,
        end=outcome.end,
        cut=outcome.cut_bytes,
        where=f" at {outcome.cut_position}" if outcome.cut_bytes else "",
    )
    for sentence in report:
        log.warn("Store: {sentence}", sentence=sentence)


def own_credentials(settings: BrokerSettings) -> Credentials | None:
    """What a broker signs its own requests with; C{None}: it does not.

    @raise ConfigurationError: the setting makes no sense; one sentence.
    """
    if not settings.auth.inner_client_authentication_credentials:
        return None
    from rocketbroker.broker.access.room import inner_user

    return inner_user(settings)


@final
class BrokerService(LoggedService):
    """A broker on a reactor.

    @ivar broker: the broker; metrics read its counters.
    @ivar port: where it listens.
    @ivar store: its store.
    @ivar approvals: lets these append messages themselves; C{None}: they do not.
    @ivar workers: the processes that own clients' connections; C{None}: none.
    @ivar metrics: the port of /metrics.
    @ivar ready: fires when name servers know it, or could not be reached.
    """

    name = "rocketbroker"
    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        settings: BrokerSettings,
        flags: StartFlags = NO_FLAGS,
        testing: TestingMode | None = None,
    ) -> None:
        """
        Open the store and listen.

        @param reactor: the reactor, not running yet.
        @param flags: the topics that are to be there, and whether the port of metrics
            is any free one.
        @param testing: gives the broker its time, and stands before its responders;
            C{None}: nobody does.
        @raise ConfigurationError: a port or a plug-in cannot be had; one sentence.
        @raise StoreError: the store cannot be opened; one sentence.
        """
        self.settings = settings
        self._topics = checked_topics(flags.topics, settings)
        self.port = settings.server.listen_port
        self.ready: Deferred[None] = Deferred()
        self._reactor = reactor
        self._testing = testing
        self._wall_ms = wall_ms if testing is None else testing.time.wall_ms
        options = settings.broker
        hub = hub_of(reactor, settings.server)
        self.client = self._make_client()
        self._ha_security = self._make_ha_security(settings.store)
        self._files = Disk() if testing is None else testing.files(Disk())
        self._store_host = host_bytes(options.broker_ip1, settings.advertised_port)
        self.store = store = self._make_store(self._files)
        context = self._make_context(hub)
        self.broker = Broker(context)
        self._hooks = self._make_hooks()
        self._fronts: list[tuple[ResponderTable, ResponderTable]] = []
        self._attachments = attachments_of(self.broker, settings)
        self.approvals = self._make_approvals(context, hub)
        self.workers = workers_of(reactor, hub, settings, self.approvals, store.sharing)
        hand_over = None if self.workers is None else self.workers.hand_over
        main, vip, *more = self._tables()
        self.main, self.vip = (
            RemotingServer(reactor, settings.server, table, hub, hand_over=hand_over)
            for table in (main, vip)
        )
        self.admin: RemotingServer | None = None
        if more:
            own = admin_options(settings)
            self.admin = RemotingServer(reactor, own, more[0], hub)
        ports = self._ports()
        for group in ports.values():
            group.tls = self._tls.port
        self.broker.running.watch(self._configure_ports)
        if self.approvals is not None:
            self.approvals.port_counts = self.main.group.counts
        watch_timers(reactor, self.main.turns)
        self.metrics = self._make_metrics(context, ports, flags)
        self.broker.open()
        if self.approvals is not None:
            self.approvals.start()
        try:
            self.broker.listen(self.main, self.vip, self.admin)
            self.metrics.listen()
        except BaseException:
            for server in self._servers():
                server.stop()
            self.broker.replicas.server.stop()
            store.close()
            raise

    def _make_client(self) -> RemotingClient:
        """What calls name servers and other brokers."""
        reactor, settings = self._reactor, self.settings
        uses_tls = settings.client.use_tls
        self._tls = ServerTls(reactor, settings.tls, uses_tls, self._in_thread)
        return RemotingClient(
            reactor,
            settings.client,
            tls=self._tls.client_context,
            credentials=own_credentials(settings),
        )

    def _make_metrics(
        self,
        context: BrokerContext,
        ports: dict[str, ConnectionGroup],
        flags: StartFlags,
    ) -> MetricsPort:
        settings = self.settings
        access = MetricsAccess(self._reactor, settings.metrics, self._tls)
        site = broker_site(
            self.broker,
            ports,
            self._wall_ms,
            context.in_thread,
            self.workers,
            self._standing,
            access,
        )
        return MetricsPort(
            self._reactor,
            settings.broker,
            METRICS_PORT in settings.given,
            site,
            flags.is_any_metrics_port,
            access.tls,
        )

    def _make_ha_security(self, options: StoreOptions) -> HaSecurity:
        tls, secret = self._tls, None
        if options.ha_secret_file is not None:
            secret = SecretFile(options.ha_secret_file, "haSecretFile")
            tls.look_at(secret)
        return HaSecurity(
            secret=secret,
            port_tls=tls.at_port(options.ha_tls_required),
            client_tls=tls.as_client() if options.ha_tls else None,
        )

    def _make_context(self, hub: Hub | Turns) -> BrokerContext:
        settings, testing = self.settings, self._testing
        return BrokerContext(
            settings=settings,
            port=self.port,
            clock=self._reactor if testing is None else testing.time,
            wall_ms=self._wall_ms,
            files=self._files,
            store=wrapped(self.store, settings),
            in_thread=self._in_thread,
            client=self.client,
            lookup=AddressLookup(),
            turns=hub,
            unique_keys=UniqueKeys(
                packed_address(settings.broker.broker_ip1),
                os.getpid(),
                int.from_bytes(os.urandom(4), "big"),
                self._wall_ms,
            ),
            followers=followers_of(settings, self._reactor),
            replica_server=self._replica_server,
            master_link=self._master_link,
            ha_secret=self._ha_security.secret,
        )

    def _make_hooks(self) -> list[IRequestHook]:
        """What stands before each request: rules first, and then plug-ins."""
        access, settings = self.broker.access, self.settings
        rules = [] if access is None else access.hooks
        names = settings.broker.request_hooks
        return [*rules, *hooks_of(names, settings.as_properties())]

    def _tables(self) -> Sequence[ResponderTable]:
        """The responders of all ports."""
        broker, testing = self.broker, self._testing
        tables: Sequence[ResponderTable] = broker.ports.tables
        if testing is not None:
            testing.serve(broker)
            tables = [testing.front(table) for table in tables]
        if self._hooks:
            fronts = [fronted(table, self._hooks) for table in tables]
            self._fronts = [*zip(fronts, tables, strict=True)]
            tables = fronts
        return tables

    def _servers(self) -> list[RemotingServer]:
        return [self.main, self.vip, *([] if self.admin is None else [self.admin])]

    def _ports(self) -> dict[str, ConnectionGroup]:
        """The connections of each port, by its name in metrics."""
        names = ("main", "vip", "admin")
        return {
            name: server.group
            for name, server in zip(names, self._servers(), strict=False)
        }

    def _standing(self) -> list[str]:
        own = [] if self._testing is None else self._testing.standing()
        return [*own, *self.broker.standing()]

    def _configure_ports(self, settings: BrokerSettings) -> None:
        for server in self._servers():
            server.configure(settings.server)
        for front, behind in self._fronts:
            front.limit_waits(behind.max_waits)

    def _make_store(self, files: IFiles) -> Store:
        settings = self.settings
        return Store(
            files,
            settings.store,
            self._wall_ms,
            self._store_host,
            is_shared=worker_count(settings.broker.workers) > 0,
            open_files=OpenFiles(files, bound_of(descriptor_limit())),
            processes=ProcessTable(),
        )

    def _make_approvals(
        self, context: BrokerContext, hub: Hub | Turns
    ) -> Approvals | None:
        """What lets workers append; None if there are none, if plug-ins around the
        store are to see each message before it is stored, or hooks each request."""
        count = worker_count(self.settings.broker.workers)
        if not count or context.store is not self.store or self._hooks:
            return None
        from rocketbroker.workers.approvals import Approvals

        sharing = self.store.sharing
        return Approvals(self._reactor, hub, self.broker, sharing, self._store_host)

    def _replica_server(
        self, store: IStore, in_thread: InThread, membership: Membership
    ) -> ReplicaServer:
        options, host = self.settings.store, self.settings.server.bind_address
        return ReplicaServer(
            self._reactor,
            store,
            options,
            in_thread,
            self._wall_ms,
            membership,
            host,
            self._ha_security,
        )

    def _master_link(self, store: IStore, in_thread: InThread) -> MasterLink:
        options, security = self.settings.store, self._ha_security
        return MasterLink(self._reactor, store, options, self._wall_ms, security)

    def _in_thread(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} in the reactor's thread pool."""
        reactor = self._reactor
        return deferToThreadPool(reactor, reactor.getThreadPool(), function)

    def startService(self) -> None:
        """The reactor runs: begin to work."""
        super().startService()  # type: ignore[no-untyped-call]
        log_settings(self._log, self.settings)
        self._log.info("The codec of messages is {form}.", form=FORM)
        self._log.info(
            "At most {bound} files of the store are open at once.",
            bound=self.store.open_files.bound,
        )
        store, root = self.store, self.settings.store.store_path_root_dir
        home = self.settings.broker.rocketmq_home or ""
        has_timers = self.settings.store.timer_wheel_enable
        auth = self.settings.auth
        has_acl = self.settings.broker.acl_enable or auth.migrate_auth_from_v1_enabled
        log_recovery(
            self._log,
            root,
            store.recovered,
            [
                *store.report,
                *not_taken_over(self._files, root, home, has_timers, has_acl),
            ],
        )
        self._tls.start()
        self._reactor.callWhenRunning(self._start)

    def ready_broker(self) -> ReadyBroker:
        """This broker in the ready line."""
        options = self.settings.broker
        return ReadyBroker(
            name=options.broker_name,
            id=options.broker_id,
            address=self.broker.address,
        )

    def ready_line(self, output: str) -> str:
        """The line that scripts wait for.

        @param output: its form.
        """
        broker, names = (
            self.ready_broker(),
            ";".join(self.broker.registration.name_servers.current),
        )
        if output == "json":
            store = self.settings.store.store_path_root_dir
            metrics = self.metrics.address
            return ready_json(names or None, [broker], metrics, store, os.getpid())
        return f"ready: broker {broker.address}, name server {names or 'none'}"

    def _start(self) -> None:
        # Before the name servers are told the topics.
        for name, queues in self._topics.items():
            if self.broker.metadata.topics.config(name) is None:
                self.broker.metadata.topics.ensure(name, queues)
        if self.workers is not None:
            self.workers.start()
        start_all(self._attachments)
        self.broker.start().chainDeferred(self.ready)

    def stopService(self) -> Deferred[None]:
        """Stop; fires when all is on the disk."""
        super().stopService()  # type: ignore[no-untyped-call]
        return Deferred.fromCoroutine(self._stopped())

    async def _stopped(self) -> None:
        self._tls.stop()
        await stop_all(self._attachments, self._reactor)
        await self.metrics.stop()
        if self.approvals is not None:
            self.approvals.stop()
        try:
            await self.broker.stop()
            if self.workers is not None:
                await self.workers.stop()
        finally:
            await self.client.stop()


@or_refuse
def makeService(options: Options) -> BrokerService:
    """The broker that a command line asks for."""
    reactor = server_reactor()
    settings = settings_of(options)
    for flag, only in (("printConfigItem", ()), ("printImportantConfig", IMPORTANT)):
        if options[flag]:
            print(printed(settings.parts(), only), end="")
            raise SystemExit(0)
    log = options.open_log()
    flags = options.start_flags()
    process = ServerProcess(reactor, log, flags)
    service = BrokerService(reactor, settings, flags)
    service.log = log
    if options.says_ready:
        service.ready.addCallback(lambda _: say_ready(service.ready_line(flags.output)))
    process.opened(service.ready)
    return service

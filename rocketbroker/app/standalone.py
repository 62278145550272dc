# -*- test-case-name: tests.app.test_standalone -*-
"""A name server and a broker in one process: for development, tests, a laptop.

With more than one replica the broker has slaves, each a process of its own. They stop
with it, and it stops when one of them ends: who tries replication out wants to see it.

The keys of a settings file go to both; flags win over them. The file is a broker's, so
its C{listenPort}, its address and its metrics port are the broker's. It may be a copy
of one that is in use elsewhere, so its C{namesrvAddr} counts only if the broker is told
to join those: then there is no name server here. What is to be thrown away afterwards
has small files.

A laptop has another address on the next network. Unless an address is set, each client
is told that by which it reached the name server.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TextIO, final

import attrs
from twisted.application.service import MultiService
from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger, globalLogBeginner

from rocketbroker.app.broker import BrokerService, advertised
from rocketbroker.app.embedded_proxy import embedded_settings
from rocketbroker.app.grpc_extra import GRPC_PORT
from rocketbroker.app.grpc_port import GrpcPort, listening
from rocketbroker.app.logs import Log, LogOptions
from rocketbroker.app.namesrv import NameServerService
from rocketbroker.app.options import kept_changes, refuse
from rocketbroker.app.process import ServerProcess, wall_ms
from rocketbroker.app.reactor import server_reactor
from rocketbroker.app.startflags import (
    LOOPBACK,
    METRICS_PORT,
    NO_FLAGS,
    ReadyBroker,
    StartFlags,
    ready_json,
)
from rocketbroker.app.temporary import TemporaryDirectory, remove_left, small_sizes
from rocketbroker.broker.broker import VIP_DISTANCE
from rocketbroker.config import properties
from rocketbroker.config.addresses import advertised_address
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import CLASSES, BrokerSettings, changes_path
from rocketbroker.config.keyed import unknown
from rocketbroker.config.machine import store_root
from rocketbroker.config.namesrv import (
    NAMESRV_PORT,
    NamesrvOptions,
    NamesrvSettings,
)
from rocketbroker.config.paths import resolved
from rocketbroker.config.store import StoreOptions
from rocketbroker.config.unsupported import BROKERS_OWN
from rocketbroker.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from rocketbroker.app.slave_process import SlaveProcess

#: Why clients are told an address, where each is told the one by which it came.
FOLLOWING: Final = (
    "by IPv6; others are told the one by which they reach the name server"
)

#: Why C{--join} cannot be.
NOBODY_TO_JOIN: Final = (
    "--join needs name servers to join: set namesrvAddr, in the file of -c or by --set "
    "namesrvAddr=HOST:PORT."
)

#: How many ports are tried to find one that is free, as those beside it are.
MAX_PORTS: Final = 100


def free_port(host: str) -> int:
    """A port that nobody listens on now, and whose VIP port and the next one, which is
    that of replication, are free, too.

    @raise ConfigurationError: there is none.
    """
    for _ in range(MAX_PORTS):
        with socket.socket() as main, socket.socket() as vip, socket.socket() as ha:
            try:
                main.bind((host, 0))
                port = int(main.getsockname()[1])
                vip.bind((host, port - VIP_DISTANCE))
                ha.bind((host, port + 1))
            except (OSError, OverflowError):
                continue
            return port
    raise ConfigurationError(f"{host} has no free port for a broker.")


@attrs.frozen(kw_only=True)
class Flags:
    """The command line; None leaves it to the settings file.

    @ivar directory: the store's.
    @ivar is_temporary: the store is removed at the end, wherever the file wants it.
    @ivar namesrv_port: the name server's port, 0 for any that is free; C{None}: 9876.
    @ivar port: the broker's, 0 likewise.
    @ivar config: the path of the settings file.
    @ivar advertise: the address that clients are told.
    @ivar replicas: how many copies there are, the broker's own included.
    @ivar is_joining: whether the broker joins the name servers of namesrvAddr, and
        there is none here.
    @ivar is_testing: whether anybody on this machine may move the broker's time, and
        let it fail.
    @ivar grpc_port: the port for gRPC, 0 for any that is free, -1 for none; C{None}:
        8081 if that is free, and none if the store is temporary.
    @ivar start: those that all servers have.
    """

    directory: str | None = None
    is_temporary: bool = False
    namesrv_port: int | None = None
    port: int | None = None
    config: str | None = None
    advertise: str | None = None
    replicas: int = 1
    is_joining: bool = False
    is_testing: bool = False
    grpc_port: int | None = None
    start: StartFlags = NO_FLAGS


def merged(given: Mapping[str, str], flags: Flags) -> dict[str, str]:
    """The broker's settings: those of the file, with the flags in their place.

    @raise ConfigurationError: a flag makes no sense; one sentence.
    """
    settings = flags.start.over(given)
    if flags.is_temporary:
        settings.pop("storePathCommitLog", None)
        if not flags.is_testing:
            settings = {**small_sizes(settings), **settings}
    if flags.directory is not None:
        settings["storePathRootDir"] = resolved(flags.directory)
    if flags.port is not None:
        settings["listenPort"] = str(flags.port)
    if flags.advertise is not None:
        settings.update(advertised(flags.advertise))
    if flags.is_testing:
        from rocketbroker.app.testing.loopback import testing_settings

        settings = testing_settings(settings)
    return settings


@final
class Standalone:
    """Both servers on one reactor.

    @ivar namesrv: the name server; C{None}: the broker joins others.
    @ivar broker: the broker.
    @ivar slaves: the broker's slaves, which begin with it.
    @ivar grpc: the port for gRPC; C{None}: there is none.
    @ivar failed: whether a slave has ended before it was to.
    """

    _log = Logger()

    def __init__(self, reactor: Any, given: Mapping[str, str], flags: Flags) -> None:
        """
        Open the store and listen.

        @param reactor: the reactor, not running yet.
        @param given: the settings of the file.
        @raise ConfigurationError: one sentence.
        @raise StoreError: one sentence.
        """
        path = (
            None if flags.config is None else os.path.realpath(resolved(flags.config))
        )
        settings = merged(given, flags)
        self._flags = flags.start
        self._is_testing = flags.is_testing
        if path is None:
            root = resolved(settings.get("storePathRootDir", "")) or store_root()
            settings = {**kept_changes(changes_path(root), CLASSES), **settings}
        # Checked before the name server listens.
        checked = BrokerSettings.from_properties(settings, path)
        self._host = advertised_address(checked.server.bind_address, LOOPBACK, ())[0]
        #: Whether each client is told the address by which it came.
        self._follows = not flags.is_joining and "brokerIP1" not in settings
        self.namesrv = None
        if not flags.is_joining:
            root = checked.store.store_path_root_dir
            ours = given
            if flags.is_testing:
                ours = {**given, "bindAddress": settings["bindAddress"]}
            self.namesrv = self._name_server(reactor, ours, flags, root, path)
        elif not checked.name_servers:
            raise ConfigurationError(NOBODY_TO_JOIN)
        try:
            if not checked.server.listen_port:
                port = free_port(checked.server.bind_address)
                settings["listenPort"] = str(port)
            self.broker = self._broker(reactor, settings, path)
        except BaseException:
            if self.namesrv is not None:
                self.namesrv.abandon()
            raise
        self.failed = False
        self.grpc = self._grpc(reactor, flags)
        self.slaves = [
            self._slave(settings, number) for number in range(1, flags.replicas)
        ]
        self.services = MultiService()  # type: ignore[no-untyped-call]
        # Services stop in the opposite order: the broker still finds the name server.
        for service in (self.namesrv, self.broker):
            if service is not None:
                service.setServiceParent(self.services)
        if self.namesrv is not None and self._follows:
            own = (self.broker.broker.address, *(each.address for each in self.slaves))
            self.namesrv.nameserver.lookups.follow_askers(own)
        if self.namesrv is not None and "namesrvAddr" in settings:
            self._log.warn(
                "This broker does not join the name servers {names} (namesrvAddr): it "
                "has its own; --join joins them instead.",
                names=settings["namesrvAddr"],
            )

    def _name_server(
        self,
        reactor: Any,
        given: Mapping[str, str],
        flags: Flags,
        root: str,
        path: str | None,
    ) -> NameServerService:
        """The name server, with its files in the directory of the store."""
        folder = os.path.join(root, "namesrv")
        own = {
            "kvConfigPath": os.path.join(folder, "kvConfig.json"),
            "configStorePath": os.path.join(folder, "namesrv.properties"),
            **given,
            **flags.start.settings,
        }
        for key in BROKERS_OWN:
            own.pop(key, None)
        if path is None:
            own.update(kept_changes(own["configStorePath"], [NamesrvOptions]))
        port = NAMESRV_PORT if flags.namesrv_port is None else flags.namesrv_port
        names = NamesrvSettings.from_properties(
            {**own, "listenPort": str(port), METRICS_PORT: "0"}, path
        )
        return NameServerService(
            reactor,
            attrs.evolve(
                names,
                unknown=unknown(names.unknown, (BrokerOptions, StoreOptions)),
            ),
        )

    def _broker(
        self, reactor: Any, settings: dict[str, str], path: str | None
    ) -> BrokerService:
        """The broker, which registers with this name server, or with those it joins."""
        own = None if self.namesrv is None else f"{self._host}:{self.namesrv.port}"
        built = BrokerSettings.from_properties(settings, path, own)
        if self._follows:
            built = attrs.evolve(built, address_reason=FOLLOWING)
        testing = None
        if self._is_testing:
            from rocketbroker.app.testing.mode import TestingMode

            testing = TestingMode(reactor, wall_ms)
        return BrokerService(
            reactor,
            attrs.evolve(built, unknown=unknown(built.unknown, (NamesrvOptions,))),
            self._flags,
            testing,
        )

    def _grpc(self, reactor: Any, flags: Flags) -> GrpcPort | None:
        """The port for gRPC, if there is to be one and it can be had."""
        port = flags.grpc_port
        if port is None and flags.is_temporary:
            port = -1
        if port == -1:
            return None
        own = self.broker.settings
        wanted = GRPC_PORT if port is None else port
        listener = listening(own.server.bind_address, wanted, port is not None)
        if listener is None:
            self._log.warn(
                "The port {port} for gRPC is taken, so clients of gRPC are not served; "
                "--grpc-port chooses another one.",
                port=wanted,
            )
            return None
        words = ["-n", ";".join(own.name_servers)]
        return GrpcPort(reactor, listener, words, embedded_settings(own))

    def _slave(self, settings: Mapping[str, str], number: int) -> SlaveProcess:
        """A slave of the broker, not begun yet."""
        from rocketbroker.app.slave_process import SlaveProcess, slave_settings

        own = self.broker.settings
        root = os.path.join(own.store.store_path_root_dir, f"replica-{number}")
        port = free_port(own.server.bind_address)
        metrics = free_port(LOOPBACK) if self.broker.metrics.address else 0
        admin = own.broker.rocketbroker_admin_port and free_port(LOOPBACK)
        return SlaveProcess(
            number,
            f"{own.broker.broker_ip1}:{port}",
            os.path.join(root, "broker.log"),
            slave_settings(settings, root, number, port, metrics, admin),
        )

    def start_slaves(self, reactor: Any, log_options: LogOptions) -> Deferred[Any]:
        """Begin the slaves; all stop if one of them ends.

        @return: fires when name servers know all of them.
        """
        names = ";".join(self.broker.settings.name_servers)
        for slave in self.slaves:
            slave.spawn(reactor, names, log_options)
            slave.ended.addCallback(self._slave_ended, reactor, slave)
        return gatherResults([slave.ready for slave in self.slaves])

    def _slave_ended(self, status: int, reactor: Any, slave: SlaveProcess) -> int:
        if not slave.is_stopping:
            self.failed = True
            self._log.error(
                "The slave {number} has ended ({status}), and all stop. The end of its "
                "log, {path}:\n{words}",
                number=slave.number,
                status=status,
                path=slave.log,
                words=slave.last_words(),
            )
            if reactor.running:
                reactor.stop()
        return status

    def ready_line(self) -> str:
        """The line that scripts wait for."""
        names = ";".join(self.broker.settings.name_servers)
        broker = self._reached(self.broker.ready_broker())
        slaves = [self._reached(slave.ready_broker()) for slave in self.slaves]
        if self._flags.output == "json":
            store = self.broker.settings.store.store_path_root_dir
            metrics = self.broker.metrics.address
            return ready_json(
                names,
                [broker, *slaves],
                metrics,
                store,
                os.getpid(),
                self._is_testing,
                self._grpc_address(),
            )
        line = f"ready: name server {names}, broker {broker.address}" + "".join(
            f", {slave.shown(told.address)}"
            for slave, told in zip(self.slaves, slaves, strict=True)
        )
        if self.grpc is not None:
            line += f", gRPC {self._grpc_address()}"
        return f"{line} (testing)" if self._is_testing else line

    def _grpc_address(self) -> str | None:
        """Where this machine reaches the port for gRPC."""
        return None if self.grpc is None else f"{self._host}:{self.grpc.port}"

    def _reached(self, broker: ReadyBroker) -> ReadyBroker:
        """A broker of the ready line, as this machine is told of it."""
        if not self._follows:
            return broker
        port = broker.address.rpartition(":")[2]
        return attrs.evolve(broker, address=f"{self._host}:{port}")

    async def stop(self) -> None:
        """The proxy and the slaves first, then the broker, while the name server still
        listens."""
        if self.grpc is not None:
            await self.grpc.stop()
        await gatherResults([slave.stop() for slave in self.slaves if slave.pid])
        await self.broker.stopService()
        if self.namesrv is not None:
            await self.namesrv.stopService()


def run_standalone(flags: Flags, log_options: LogOptions) -> int:
    """Run both servers until a signal ends the process.

    @return: the exit status.
    """
    reactor = server_reactor()
    directory = None
    try:
        given: dict[str, str] = {}
        if flags.config is not None:
            given = properties.read(resolved(flags.config))
        if flags.is_temporary:
            remove_left(tempfile.gettempdir(), Standalone._log)
            directory = TemporaryDirectory(tempfile.gettempdir())
            flags = attrs.evolve(flags, directory=directory.path)
        log = log_options.open(sys.stderr)
        process = ServerProcess(reactor, log, flags.start)
        standalone = Standalone(reactor, given, flags)
        process.opened(standalone.broker.ready)
        run(reactor, standalone, sys.stdout, log, log_options)
        if standalone.failed:
            return 1
    except (ConfigurationError, StoreError) as error:
        refuse(str(error))
    finally:
        if directory is not None:
            directory.remove()
    return 0


def run(
    reactor: Any,
    standalone: Standalone,
    out: TextIO,
    log: Log,
    log_options: LogOptions,
) -> None:
    """Run the reactor with both servers until it is stopped.

    @param out: gets the ready line.
    @param log: gets the log.
    @param log_options: how slaves log, each to a file of its own.
    """
    globalLogBeginner.beginLoggingTo([log.observer], redirectStandardIO=False)
    ready = standalone.broker.ready
    ready.addCallback(lambda _: standalone.start_slaves(reactor, log_options))
    ready.addCallback(lambda _: print(standalone.ready_line(), file=out, flush=True))
    if standalone.grpc is not None:
        standalone.grpc.start()
    standalone.services.startService()  # type: ignore[no-untyped-call]
    reactor.addSystemEventTrigger(
        "before", "shutdown", lambda: Deferred.fromCoroutine(standalone.stop())
    )
    reactor.run()

# -*- test-case-name: tests.app.test_standalone -*-
"""A name server and a broker in one process: for development, tests, a laptop.

What a settings file says goes to both. Some settings have another default here than for
a broker of its own: its address is that of this machine for itself, and what is to be
thrown away afterwards begins with a small log.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import sys
import tempfile
from typing import Any, Final, TextIO, cast, final

import attrs
from twisted.application.service import MultiService
from twisted.internet.defer import Deferred
from twisted.logger import globalLogBeginner, textFileLogObserver

from rocketbroker.app.broker import BrokerService
from rocketbroker.app.descriptors import raise_descriptor_limit
from rocketbroker.app.namesrv import NameServerService
from rocketbroker.app.options import refuse
from rocketbroker.app.signals import stop_at_hangup
from rocketbroker.app.steadiness import make_steady
from rocketbroker.broker.broker import VIP_DISTANCE
from rocketbroker.config import properties
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.keyed import unknown
from rocketbroker.config.namesrv import NamesrvOptions, NamesrvSettings
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError, StoreError

#: The address that clients on this machine are told.
LOOPBACK: Final = "127.0.0.1"

#: The segment size of a store that is thrown away afterwards: a whole one would take a
#: gigabyte of a disk that may be memory.
TEMPORARY_SEGMENT: Final = 64 << 20

#: How many ports are tried to find one that is free and whose VIP port is, too.
MAX_PORTS: Final = 100


def free_port(host: str) -> int:
    """A port that nobody listens on now, and whose VIP port is free, too.

    @raise ConfigurationError: there is none.
    """
    for _ in range(MAX_PORTS):
        with socket.socket() as main, socket.socket() as vip:
            try:
                main.bind((host, 0))
                port = int(main.getsockname()[1])
                vip.bind((host, port - VIP_DISTANCE))
            except OSError:
                continue
            return port
    raise ConfigurationError(f"{host} has no free port for a broker.")


@final
class Standalone:
    """Both servers on one reactor.

    @ivar namesrv: the name server.
    @ivar broker: the broker.
    """

    def __init__(
        self,
        reactor: Any,
        said: dict[str, str],
        directory: str,
        namesrv_port: int,
        port: int,
        metrics_port: int,
        config: str | None,
    ) -> None:
        """
        Open the store and listen.

        @param reactor: the reactor, not running yet.
        @param said: what the settings file says.
        @param directory: the store's.
        @param namesrv_port: the name server's port, 0 for any that is free.
        @param port: the broker's, 0 likewise.
        @param metrics_port: the port of the broker's metrics, 0 for none.
        @param config: the path of the settings file.
        @raise ConfigurationError: one sentence.
        @raise StoreError: one sentence.
        """
        own = {
            "kvConfigPath": os.path.join(directory, "namesrv", "kvConfig.json"),
            "configStorePath": os.path.join(directory, "namesrv", "namesrv.properties"),
        }
        only = {"listenPort": str(namesrv_port), "metricsPromExporterPort": "0"}
        names = NamesrvSettings.from_properties({**own, **said, **only}, config)
        self.namesrv = NameServerService(
            reactor,
            attrs.evolve(
                names,
                # A changed setting of the name server must not become the broker's.
                options=attrs.evolve(
                    names.options, config_store_path=own["configStorePath"]
                ),
                unknown=unknown(names.unknown, (BrokerOptions, StoreOptions)),
            ),
        )
        said = {
            "brokerIP1": LOOPBACK,
            "brokerIP2": LOOPBACK,
            **said,
            "storePathRootDir": directory,
            "metricsPromExporterPort": str(metrics_port),
        }
        try:
            port = port or free_port(names.server.bind_address)
            self.broker = self._broker(reactor, said, port, config)
        except BaseException:
            self.namesrv.abandon()
            raise
        self.services = MultiService()  # type: ignore[no-untyped-call]
        # Services stop in the opposite order: the broker still finds the name server.
        for service in (self.namesrv, self.broker):
            service.setServiceParent(self.services)  # type: ignore[no-untyped-call]

    def _broker(
        self, reactor: Any, said: dict[str, str], port: int, config: str | None
    ) -> BrokerService:
        """The broker, which registers with the name server."""
        settings = BrokerSettings.from_properties(
            {**said, "listenPort": str(port)},
            config,
            f"{LOOPBACK}:{self.namesrv.port}",
        )
        own = attrs.evolve(
            settings, unknown=unknown(settings.unknown, (NamesrvOptions,))
        )
        return BrokerService(reactor, own)

    def ready_line(self) -> str:
        """What a script that starts this waits for."""
        return (
            f"ready: name server {LOOPBACK}:{self.namesrv.port}, "
            f"broker {LOOPBACK}:{self.broker.port}"
        )

    async def stop(self) -> None:
        """The broker first, while the name server still listens."""
        await self.broker.stopService()
        await self.namesrv.stopService()


def run_standalone(
    directory: str | None,
    namesrv_port: int = 9876,
    port: int = 10911,
    metrics_port: int = 5557,
    config: str | None = None,
) -> int:
    """Run both servers until a signal ends the process.

    @param directory: the store's; None for one that is removed at the end.
    @param namesrv_port: the name server's port, 0 for any that is free.
    @param port: the broker's, 0 likewise.
    @param metrics_port: the port of the broker's metrics, 0 for none.
    @param config: a settings file for both.
    @return: the exit status.
    """
    from twisted.internet import reactor

    make_steady(cast(Any, reactor))
    raise_descriptor_limit(resource)
    temporary = directory is None
    folder = tempfile.mkdtemp(prefix="rocketbroker-") if temporary else directory
    assert folder is not None
    try:
        said = {} if config is None else properties.read(config)
        if temporary:
            said.setdefault("mappedFileSizeCommitLog", str(TEMPORARY_SEGMENT))
        standalone = Standalone(
            reactor,
            said,
            os.path.abspath(folder),
            namesrv_port,
            port,
            metrics_port,
            None if config is None else os.path.abspath(config),
        )
        cast(Any, reactor).callWhenRunning(stop_at_hangup, reactor)
        run(reactor, standalone, sys.stdout, sys.stderr)
    except (ConfigurationError, StoreError) as error:
        refuse(str(error))
    finally:
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def run(reactor: Any, standalone: Standalone, out: TextIO, log: TextIO) -> None:
    """Run the reactor with both servers until it is stopped.

    @param out: gets the ready line.
    @param log: gets the log.
    """
    globalLogBeginner.beginLoggingTo(
        [textFileLogObserver(log)], redirectStandardIO=False
    )
    standalone.broker.ready.addCallback(
        lambda _: print(standalone.ready_line(), file=out, flush=True)
    )
    standalone.services.startService()  # type: ignore[no-untyped-call]
    reactor.addSystemEventTrigger(
        "before", "shutdown", lambda: Deferred.fromCoroutine(standalone.stop())
    )
    reactor.run()

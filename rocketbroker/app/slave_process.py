# -*- test-case-name: tests.integration.test_standalone_replicas -*-
"""Slaves of a standalone broker: each a process of its own, as a copy should be.

C{python -m rocketbroker.app.slave_process -c FILE -n NAMES --log-file LOG} runs a
broker that says C{ready} on its standard output, and stops when its standard input
ends: so it stops with its parent, however that ends. It overlooks Ctrl-C, which a
terminal sends to both: the parent stops its slaves before itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, final

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IProcessTransport
from twisted.internet.protocol import ProcessProtocol, Protocol
from twisted.internet.stdio import StandardIO
from twisted.logger import globalLogBeginner
from twisted.python.failure import Failure

from rocketbroker.app.broker import BrokerService, Options, settings_of
from rocketbroker.app.logs import LogOptions
from rocketbroker.app.options import or_refuse
from rocketbroker.app.process import ServerProcess
from rocketbroker.app.reactor import server_reactor
from rocketbroker.app.startflags import ReadyBroker
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.properties import render
from rocketbroker.files.disk import Disk

#: What a slave says when name servers know it.
READY: Final = b"ready\n"

#: How long a slave may take to stop before it is killed: what a broker may take to
#: answer and to flush.
STOP_SECONDS: Final = 30.0


def slave_settings(
    given: Mapping[str, str],
    root: str,
    number: int,
    port: int,
    metrics_port: int,
    admin_port: int = 0,
) -> dict[str, str]:
    """The settings of a slave, from those of its master.

    What the file says of the master's own place and ports is left out.

    @param root: where the slave's store lies.
    @param number: its broker id.
    @param admin_port: of its own, if its master has one; 0: none.
    """
    own = (
        *("storePathCommitLog", "haListenPort", "haMasterAddress", "namesrvAddr"),
        *("rocketbrokerAdvertisedPort", "rocketbrokerAdminPort"),
    )
    admin = {"rocketbrokerAdminPort": str(admin_port)} if admin_port else {}
    return {
        **{key: value for key, value in given.items() if key not in own},
        "brokerRole": "SLAVE",
        "brokerId": str(number),
        "storePathRootDir": root,
        "listenPort": str(port),
        "metricsPromExporterPort": str(metrics_port),
        **admin,
    }


@final
@attrs.define(eq=False, slots=False)
class SlaveProcess(ProcessProtocol):
    """A slave that runs, as its parent sees it.

    @ivar number: its broker id.
    @ivar address: where clients reach it.
    @ivar log: the file of its log.
    @ivar settings: its settings; its store's folder gets them as a file.
    @ivar pid: the process; 0: it has not begun.
    @ivar ready: fires when name servers know it.
    @ivar ended: fires with its exit status, or the negative number of a signal.
    """

    number: int
    address: str
    log: str
    settings: Mapping[str, str]
    pid: int = 0
    ready: Deferred[None] = attrs.field(factory=Deferred)
    ended: Deferred[int] = attrs.field(factory=Deferred)
    is_stopping: bool = False
    _said: bytes = b""
    _late: IDelayedCall | None = None
    _reactor: Any = None

    def shown(self, address: str) -> str:
        """Its ports, for people.

        @param address: where this machine reaches it.
        """
        metrics = self.settings["metricsPromExporterPort"]
        shown = f" (metrics {metrics})" if metrics != "0" else ""
        return f"slave {address}{shown}"

    def ready_broker(self) -> ReadyBroker:
        """The slave in the ready line."""
        name = self.settings.get("brokerName") or BrokerOptions().broker_name
        return ReadyBroker(name=name, id=self.number, address=self.address)

    def spawn(self, reactor: Any, names: str, log_options: LogOptions) -> None:
        """Start it.

        @param names: the name servers.
        """
        self._reactor = reactor
        root = self.settings["storePathRootDir"]
        files = Disk()
        files.make_dirs(root)
        path = os.path.join(root, "broker.properties")
        file = files.open(path, create=True)
        try:
            file.truncate(0)
            file.pwrite(render(self.settings).encode(), 0)
        finally:
            file.close()
        command = [
            *(sys.executable, "-m", "rocketbroker.app.slave_process"),
            *("-c", path, "-n", names),
            *("--log-file", self.log),
            *("--log-level", log_options.level),
            *("--log-format", log_options.format),
            *("--log-rotate-bytes", str(log_options.rotate_bytes)),
            *("--log-keep", str(log_options.keep_files)),
        ]
        process = reactor.spawnProcess(
            self, command[0], command, os.environ, childFDs={0: "w", 1: "r", 2: 2}
        )
        self.pid = process.pid

    def outReceived(self, data: bytes) -> None:
        """It speaks."""
        self._said += data
        if READY in self._said and not self.ready.called:
            self.ready.callback(None)

    def processEnded(self, reason: Failure) -> None:
        """It has ended."""
        value: Any = reason.value
        status = value.exitCode if value.exitCode is not None else -(value.signal or 0)
        if self._late is not None and self._late.active():
            self._late.cancel()
        self.ended.callback(status)

    def stop(self) -> Deferred[int]:
        """Let it stop, or kill it; fires when it has ended."""
        self.is_stopping = True
        transport = cast(IProcessTransport, self.transport)
        transport.closeStdin()
        if not self.ended.called:
            self._late = self._reactor.callLater(
                STOP_SECONDS, transport.signalProcess, "KILL"
            )
        return self.ended

    def last_words(self, lines: int = 5) -> str:
        """The end of its log; empty if there is none."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except OSError:
            return ""


@final
class _Parent(Protocol):
    """The standard input, which ends with the parent."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It has: stop."""
        if self._reactor.running:
            self._reactor.stop()


@or_refuse
def main(words: Sequence[str]) -> None:
    """Run a slave until the standard input ends."""
    reactor = server_reactor()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = Options()
    options.parseOptions(words)
    log = options.open_log()
    assert log is not None
    process = ServerProcess(reactor, log)
    service = BrokerService(reactor, settings_of(options))
    process.opened(service.ready)
    globalLogBeginner.beginLoggingTo([log.observer], redirectStandardIO=False)
    service.ready.addCallback(lambda _: os.write(1, READY))
    service.startService()
    reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
    reactor.callWhenRunning(StandardIO, _Parent(reactor), reactor=reactor)
    reactor.run()


if __name__ == "__main__":
    main(sys.argv[1:])

# -*- test-case-name: tests.app.test_worker_process -*-
"""The process of a worker, and how the owner starts it.

C{python -m rocketbroker.app.worker_process worker 1 of rocketbroker 10911} has its link
to the owner as descriptor 3, and logs one JSON object a line to its standard output;
the owner puts these into its own log. It overlooks signals that a terminal or a service
manager sends to all processes: it ends when the owner says so, or is gone.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast, final

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.threads import deferToThreadPool
from twisted.logger import (
    FileLogObserver,
    FilteringLogObserver,
    Logger,
    LogLevel,
    LogLevelFilterPredicate,
    globalLogBeginner,
)
from twisted.python.failure import Failure

from rocketbroker.app.logs import json_line
from rocketbroker.app.process import ServerProcess, wall_ms
from rocketbroker.app.reactor import server_reactor
from rocketbroker.app.tls import ServerTls
from rocketbroker.config.tls import TlsOptions
from rocketbroker.files.disk import Disk
from rocketbroker.files.open_files import OpenFiles, bound_of
from rocketbroker.remoting.listener import descriptor_limit
from rocketbroker.remoting.tls_port import TlsPort
from rocketbroker.workers.worker import Worker
from rocketbroker.workers.workers import Spawn, WorkerProcess

T = TypeVar("T")

#: The link's descriptor in the worker.
LINK: Final = 3

#: Variables of a service manager that are for the owner only.
OWNERS: Final = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")

#: Signals that a worker leaves to its owner.
OVERLOOKED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)

#: The longest line of a worker that is logged as one.
MAX_LINE: Final = 64 * 1024

#: The system shows so many bytes of a process's short name.
_NAME: Final = "/proc/self/comm"
_MEMORY: Final = "/proc/self/statm"


def command_line(number: int, port: int) -> list[str]:
    """The words that start a worker, as the process list shows them."""
    module = "rocketbroker.app.worker_process"
    words = ("worker", str(number), "of", "rocketbroker", str(port))
    return [sys.executable, "-m", module, *words]


def worker_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a worker, from those of its owner."""
    return {key: text for key, text in variables.items() if key not in OWNERS}


def how_it_ended(reason: Any) -> str:
    """The end of a process in words."""
    if reason.signal is not None:
        return f"signal {reason.signal}"
    return f"exit status {reason.exitCode}"


@final
@attrs.define(eq=False, slots=False)
class WorkerOutput(ProcessProtocol):
    """A worker's process, as its owner sees it.

    @ivar number: of the worker.
    @ivar pid: the number of the process.
    """

    _log = Logger()

    number: int
    _ended: Callable[[str], object]
    pid: int = 0
    _lines: bytes = b""
    _errors: bytes = b""

    def connectionMade(self) -> None:
        """It has begun."""
        self.pid = int(cast(Any, self.transport).pid)

    def kill(self) -> None:
        """End it, by SIGKILL; nothing if it has ended."""
        with suppress(ProcessExitedAlready):
            cast(IProcessTransport, self.transport).signalProcess("KILL")

    def outReceived(self, data: bytes) -> None:
        """It logs."""
        *lines, rest = (self._lines + data).split(b"\n")
        self._lines = rest if len(rest) <= MAX_LINE else b""
        for line in lines:
            self._say(line)

    def errReceived(self, data: bytes) -> None:
        """It speaks in another way: Python does, and libraries."""
        *lines, rest = (self._errors + data).split(b"\n")
        self._errors = rest if len(rest) <= MAX_LINE else b""
        for line in lines:
            self._emit(LogLevel.warn, line.decode("utf-8", "replace"))

    def _say(self, line: bytes) -> None:
        try:
            said = json.loads(line)
            level = LogLevel.levelWithName(said["level"])
            text = "\n".join([said["message"], *said.get("traceback", "").splitlines()])
        except Exception:  # Whatever it is, the owner goes on.
            level, text = LogLevel.warn, line.decode("utf-8", "replace")
        self._emit(level, text)

    def _emit(self, level: Any, text: str) -> None:
        words = "Worker {number}: {text}"
        self._log.emit(level, words, number=self.number, text=text)

    def processEnded(self, reason: Failure) -> None:
        """It has ended."""
        self._ended(how_it_ended(reason.value))


def spawner(reactor: Any, port: int) -> Spawn:
    """Return the function that starts workers.

    @param port: of the broker; the process list shows it.
    """

    def spawn(
        number: int, end: socket.socket, ended: Callable[[str], object]
    ) -> WorkerProcess:
        output = WorkerOutput(number, ended)
        words = command_line(number, port)
        reactor.spawnProcess(
            output,
            words[0],
            words,
            worker_environment(os.environ),
            childFDs={0: "w", 1: "r", 2: "r", LINK: end.fileno()},
        )
        return output

    return spawn


@final
class ProcessUsage:
    """What this process takes of the machine."""

    def cpu_seconds(self) -> float:
        """All its time on cores."""
        return time.process_time()

    def resident_bytes(self) -> int:
        """Its memory; 0 where the system does not say."""
        try:
            with open(_MEMORY, encoding="ascii") as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        except OSError:
            return 0


def set_name(number: int) -> None:
    """Let the short list of processes say which this is."""
    with suppress(OSError), open(_NAME, "w", encoding="ascii") as file:
        file.write(f"rocketbroker-w{number}")


def main(words: Sequence[str]) -> None:
    """Run a worker until its owner ends it."""
    reactor = server_reactor()
    for number in OVERLOOKED:
        signal.signal(number, signal.SIG_IGN)
    set_name(int(words[1]))
    everything = FileLogObserver(sys.stdout, json_line)
    wanted = LogLevelFilterPredicate(defaultLogLevel=LogLevel.info)
    observer = FilteringLogObserver(everything, [wanted])
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)
    process = ServerProcess(reactor, None)
    link = socket.socket(fileno=LINK)
    open_files = OpenFiles(Disk(), bound_of(descriptor_limit()))

    def in_thread(function: Callable[[], T], /) -> Deferred[T]:
        return deferToThreadPool(reactor, reactor.getThreadPool(), function)

    def tls_of(options: TlsOptions) -> TlsPort | None:
        tls = ServerTls(reactor, options, False, in_thread)
        tls.start()
        return tls.port

    usage = ProcessUsage()
    Worker(reactor, link, open_files, wall_ms, usage, reactor.stop, tls_of)
    process.opened(Deferred())
    reactor.run(installSignalHandlers=False)


if __name__ == "__main__":
    main(sys.argv[1:])

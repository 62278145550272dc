# -*- test-case-name: tests.app.test_grpc_port -*-
"""The port for gRPC of a standalone broker: a proxy begins with its first connection.

Nobody who has no client of RocketMQ 5 pays for one: until then there is a listening
socket that is looked at, and nothing else. The proxy is a process of its own, which is
handed the socket, so that the first connection waits in its queue and is served. If the
proxy ends, the next connection begins another one; it ends with this process.

Its settings go through a pipe: they may have secrets, which no list of processes and no
environment is to show, and no file that a crash would leave behind.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast, final

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IProcessTransport, IReadDescriptor
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from rocketbroker.app.grpc_extra import extra_problem
from rocketbroker.errors import ConfigurationError

#: What says that there is to be none.
OFF: Final = "off"

#: The descriptor by which the proxy gets the socket.
CHILD_DESCRIPTOR: Final = 3

#: The descriptor from which it reads its settings.
SETTINGS_DESCRIPTOR: Final = 4

#: How many connections may wait while the proxy begins.
BACKLOG: Final = 512

#: How long a proxy may take to stop before it is killed.
STOP_SECONDS: Final = 35.0

#: How long nobody is served after a proxy has ended: one that cannot begin would take
#: a processor otherwise.
PAUSE_SECONDS: Final = 1.0


def grpc_port_of(text: str | None) -> int | None:
    """What C{--grpc-port} says: -1 for none, C{None} if it was not given.

    @raise ConfigurationError: it makes no sense; one sentence.
    """
    if text is None:
        return None
    if text == OFF:
        return -1
    if not text.isascii() or not text.isdecimal() or int(text[:9]) > 65535:
        raise ConfigurationError(
            f"--grpc-port cannot be {text!r}: it must be a port, or {OFF}."
        )
    return int(text)


def listening(host: str, port: int, is_asked: bool) -> socket.socket | None:
    """A socket that listens.

    @param port: 0: any free one.
    @param is_asked: whether somebody has asked for this very port.
    @return: None if it is taken, and nobody has asked for it.
    @raise ConfigurationError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)
        found.setblocking(False)
    except OSError as error:
        found.close()
        if not is_asked:
            return None
        raise ConfigurationError(
            f"The port {port} for gRPC cannot be had: {os.strerror(error.errno or 0)}. "
            "Choose another one by --grpc-port, or none by --grpc-port off."
        ) from error
    return found


@final
@implementer(IReadDescriptor)
class GrpcPort:
    """The listening socket, and the proxy that has begun.

    @ivar port: where it listens.
    @ivar begun: how many proxies have begun.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: Any,
        listener: socket.socket,
        words: Sequence[str],
        settings: Mapping[str, object],
        problem: Callable[[], str | None] = extra_problem,
    ) -> None:
        """
        @param words: the flags of the proxy.
        @param settings: as rmq-proxy.json has them.
        @param problem: says what keeps a proxy from being here.
        """
        self.port = int(listener.getsockname()[1])
        self.begun = 0
        self._reactor = reactor
        self._listener = listener
        self._words = words
        self._settings = json.dumps(settings).encode()
        self._problem = problem
        self._has_said = False
        self._pause: IDelayedCall | None = None
        self._child: _Child | None = None
        self._is_stopping = False

    def start(self) -> None:
        """Look for connections."""
        self._reactor.addReader(self)

    def fileno(self) -> int:
        """The socket's, for the reactor."""
        return self._listener.fileno()

    def logPrefix(self) -> str:
        """See C{ILoggingContext}."""
        return "gRPC"

    def doRead(self) -> None:
        """Somebody connects."""
        problem = self._problem()
        if problem is not None:
            self._refuse(problem)
            return
        self._reactor.removeReader(self)
        self._begin()

    def _refuse(self, problem: str) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.close()
        if not self._has_said:
            self._has_said = True
            self._log.warn(
                "A client of gRPC is refused: the proxy {problem}", problem=problem
            )

    def connectionLost(self, reason: Failure) -> None:
        """See C{IReadDescriptor}: the reactor stops."""

    def _begin(self) -> None:
        command = [
            *(sys.executable, "-m", "rocketbroker.cli.command", "proxy", "run"),
            *("--listen-fd", str(CHILD_DESCRIPTOR), "--exit-with-parent"),
            *("--metrics-port", "off", "-c", f"/dev/fd/{SETTINGS_DESCRIPTOR}"),
            *self._words,
        ]
        self._log.info("A client of gRPC comes: its proxy begins.")
        self.begun += 1
        child = self._child = _Child(self._ended)
        self._reactor.spawnProcess(
            child,
            command[0],
            command,
            os.environ,
            childFDs={
                0: "w",
                1: "r",
                2: 2,
                CHILD_DESCRIPTOR: self.fileno(),
                SETTINGS_DESCRIPTOR: "w",
            },
        )
        child.tell(self._settings)

    def _ended(self, status: int) -> None:
        self._child = None
        if self._is_stopping:
            return
        self._log.warn(
            "The proxy has ended ({status}); the next connection begins another one.",
            status=status,
        )
        self._pause = self._reactor.callLater(PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._reactor.addReader(self)

    def stop(self) -> Deferred[Any]:
        """Listen no more, and stop the proxy; fires when it has ended."""
        self._is_stopping = True
        if self._pause is not None:
            self._pause.cancel()
        self._reactor.removeReader(self)
        self._listener.close()
        if self._child is None:
            return succeed(None)
        return self._child.stop(self._reactor)


@final
class _Child(ProcessProtocol):
    """A proxy that runs, as its parent sees it."""

    def __init__(self, ended: Callable[[int], None]) -> None:
        self._ended = ended
        self._gone: Deferred[None] = Deferred()
        self._late: IDelayedCall | None = None

    def processEnded(self, reason: Failure) -> None:
        """It has ended."""
        value: Any = reason.value
        status = value.exitCode if value.exitCode is not None else -(value.signal or 0)
        if self._late is not None and self._late.active():
            self._late.cancel()
        self._ended(status)
        self._gone.callback(None)

    def tell(self, settings: bytes) -> None:
        """Let it read its settings."""
        transport = cast(IProcessTransport, self.transport)
        transport.writeToChild(SETTINGS_DESCRIPTOR, settings)
        transport.closeChildFD(SETTINGS_DESCRIPTOR)

    def stop(self, reactor: Any) -> Deferred[None]:
        """Let it stop, or kill it; fires when it has ended."""
        transport = cast(IProcessTransport, self.transport)
        transport.signalProcess("TERM")
        self._late = reactor.callLater(STOP_SECONDS, transport.signalProcess, "KILL")
        return self._gone

# -*- test-case-name: tests.remoting.test_listener -*-
"""A listening socket: all ports of a server accept their connections here.

Those of data go to the hub, those of L{rocketbroker.remoting.plain_port} to Twisted.
What they have in common is the limit of descriptors: connections leave some to the
store, and when there are none at all nobody is accepted for a moment.
"""

from __future__ import annotations

import errno
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.counts import Counts
from rocketbroker.remoting.interfaces import HubReactor

#: Connections accepted at one wake-up, at most; the others wait for the next.
MAX_ACCEPTED: Final = 64

#: How long to accept no connection when the system has no more descriptors or memory.
#: Without a pause the reactor would spin on a socket that stays readable.
PAUSE_SECONDS: Final = 1.0

#: Of four descriptors, connections have three at most. The others are the store's and
#: those of all else: a crowd of connections must not keep it from opening a file.
SHARE: Final = (3, 4)

#: Of so many descriptors the last one is for no connection, however few there are: a
#: process may have other ports, and a long log.
RESERVE: Final = 16

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def connections_of(limit: int) -> int:
    """How many connections there may be.

    @param limit: the limit of descriptors, as the system says it.
    """
    if limit == resource.RLIM_INFINITY:
        limit = 1 << 30
    return limit * SHARE[0] // SHARE[1]


def highest_descriptor(limit: int) -> int:
    """The first descriptor that is not for connections.

    The system gives the lowest one that is free, so the number of a new connection says
    how many are taken at least.

    @param limit: the limit of descriptors, as the system says it.
    """
    if limit == resource.RLIM_INFINITY:
        limit = 1 << 30
    return limit - limit // RESERVE


def descriptor_limit() -> int:
    """The limit of descriptors of this process, as the system says it."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def cannot_listen(host: str, port: int, error: OSError) -> ConfigurationError:
    """One sentence for the operator."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(f"Cannot listen on {where}: the port is in use.")
    words = error.strerror or str(error)
    return ConfigurationError(f"Cannot listen on {where}: {words}.")


def listening_socket(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens and does not block.

    @raise ConfigurationError: one sentence, if it cannot.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise cannot_listen(host, port, error) from error
    sock.setblocking(False)
    return sock


@final
class Listener:
    """Accepts connections, and hands them on.

    Those that it could not accept are counted as C{refused}.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: HubReactor,
        sock: socket.socket,
        accepted: Callable[[socket.socket, str, int], object],
        counts: Counts,
        limit: int,
        open_connections: Callable[[], int],
        most: int | None = None,
    ) -> None:
        """
        @param reactor: watches the socket.
        @param sock: listens, and does not block.
        @param accepted: called with each new socket, and the other side's address and
            port.
        @param counts: the port's.
        @param limit: the limit of descriptors: a connection more than it allows is
            closed at once.
        @param open_connections: how many there are now, of all ports that share it.
        @param most: how many there may be; C{None}: the share of all connections.
        """
        self._counts = counts
        self._most = connections_of(limit) if most is None else most
        self._highest = highest_descriptor(limit)
        self._open_connections = open_connections
        self._reactor = reactor
        self._socket = sock
        self._accepted = accepted
        self._stopped = False
        name = sock.getsockname()
        self._name = f"port {name[1]}" if isinstance(name, tuple) else "a socket"
        reactor.addReader(self)

    def fileno(self) -> int:
        """The descriptor that is readable when a connection waits."""
        return self._socket.fileno()

    def logPrefix(self) -> str:
        """How log lines begin."""
        return "listener"

    def doRead(self) -> None:
        """At least one connection waits to be accepted."""
        for _ in range(MAX_ACCEPTED):
            try:
                sock, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(error)
                    return
                continue  # that one went away before it was accepted
            refusal = self._refusal(sock.fileno())
            if refusal:
                sock.close()
                self._pause(refusal)
                return
            with suppress(OSError):  # not TCP, or gone already
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._accepted(sock, address[0], address[1])
            except OSError:
                sock.close()

    def _refusal(self, descriptor: int) -> str:
        """Why there is no room for a connection; empty if there is."""
        if self._open_connections() >= self._most:
            return f"there are {self._most}, as many as open files allow"
        if descriptor >= self._highest:
            return f"there are {self._highest} descriptors in use"
        return ""

    def _pause(self, reason: object) -> None:
        self._counts.refused += 1
        self._log.warn(
            "No connections accepted on {port} for a second: {reason}.",
            port=self._name,
            reason=reason,
        )
        self._reactor.removeReader(self)
        self._reactor.callLater(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if not self._stopped:
            self._reactor.addReader(self)

    def connectionLost(self, reason: object) -> None:
        """The reactor stops."""
        self.stop()

    def stop(self) -> None:
        """Accept no more connections; idempotent."""
        if not self._stopped:
            self._stopped = True
            self._reactor.removeReader(self)
            self._socket.close()

# -*- test-case-name: tests.remoting.test_server -*-
"""A server: one listening port that answers requests from a responder table.

With a hub, accepted connections go to the hub. Without one, the same connections run on
the reactor's own transports.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast, final

import attrs
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IListeningPort,
    IReactorTCP,
)
from twisted.internet.protocol import ServerFactory
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.interfaces import HubReactor
from rocketbroker.remoting.listener import (
    Listener,
    connections_of,
    descriptor_limit,
    listening_socket,
)
from rocketbroker.remoting.plain_port import listen_plain
from rocketbroker.remoting.protocol import RemotingProtocol
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.tls_transport import TlsDoor
from rocketbroker.remoting.turns import Turns

#: How long a stopping server waits for answers that are under way, and then again for
#: peers to take all bytes sent.
GRACE_SECONDS: Final = 3.0

#: Takes an accepted socket: with its port's connections, and the other side's address
#: and port.
HandOver: TypeAlias = Callable[[socket.socket, ConnectionGroup, str, int], object]

#: How often it looks.
_LOOK_SECONDS: Final = 0.05


@final
class _AcceptFactory(ServerFactory):
    """Makes connections on the reactor's transports."""

    noisy = False

    def __init__(self, group: ConnectionGroup) -> None:
        self._group = group

    def buildProtocol(self, addr: IAddress | None) -> RemotingProtocol | TlsDoor:
        """A connection was accepted."""
        group = self._group
        inner = RemotingProtocol(group)
        if group.tls is None:
            return inner
        return TlsDoor(inner, group.tls, group.clock, group.limits.idle_seconds)


@final
class RemotingServer:
    """A listening port and the connections that it accepted.

    @ivar group: its connections, with their limits and counters.
    @ivar turns: where to register for the end of turns.
    """

    _log = Logger()

    def __init__(
        self,
        reactor: HubReactor | IReactorTCP,
        options: RemotingServerOptions,
        table: ResponderTable,
        hub: Hub | Turns | None = None,
        limits: ConnectionLimits | None = None,
        hand_over: HandOver | None = None,
    ) -> None:
        """
        @param reactor: tells the time, calls later, watches sockets; without a hub it
            listens too.
        @param options: address, backlog, idle time, water marks.
        @param table: the responders of this port; may still be filled later.
        @param hub: serves the connections; or, where there is no epoll, the turns that
            a broker has registered with; or nothing.
        @param limits: instead of those in C{options}.
        @param hand_over: gets accepted sockets instead of the hub.
        """
        self._reactor = reactor
        self._options = options
        self._hub = hub if isinstance(hub, Hub) else None
        self._hand_over = hand_over
        self.turns = hub.turns if isinstance(hub, Hub) else hub or Turns()
        self.group = ConnectionGroup(
            cast(Any, reactor),
            table,
            limits or ConnectionLimits.of_server(options),
            self.turns,
        )
        self._listening: Listener | IListeningPort | None = None
        self._stopping = False
        self._timer: IDelayedCall | None = None

    def listen(self, port: int | None = None) -> int:
        """Accept connections from now on; also before the reactor runs.

        @param port: instead of the options'; 0 for any that is free.
        @return: the port.
        @raise ConfigurationError: one sentence, if the port cannot be had.
        """
        assert self._listening is None, "it listens already"
        options = self._options
        if port is None:
            port = options.listen_port
        host = options.bind_address
        if self._hub is None:
            self._listening, found = listen_plain(
                self._reactor,
                _AcceptFactory(self.group),
                (host, port),
                options.server_socket_backlog,
                self.group.counts,
                lambda: len(self.group.connections),
            )
            return found
        sock = listening_socket(host, port, options.server_socket_backlog)
        for option, size in (
            (socket.SO_SNDBUF, options.server_socket_snd_buf_size),
            (socket.SO_RCVBUF, options.server_socket_rcv_buf_size),
        ):
            if size > 0:  # inherited by accepted sockets
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        reactor = cast(HubReactor, self._reactor)
        limit = descriptor_limit()
        self.group.max_connections = connections_of(limit)
        self._listening = Listener(
            reactor,
            sock,
            self._accepted,
            self.group.counts,
            limit,
            self._hub.connection_count,
        )
        return int(sock.getsockname()[1])

    def configure(self, options: RemotingServerOptions) -> None:
        """Obey what may change while it runs: who may speak for others."""
        proxies = options.rocketbroker_proxy_protocol_from
        self.group.limits = attrs.evolve(self.group.limits, proxies=proxies)

    def _accepted(self, sock: socket.socket, host: str, port: int) -> None:
        assert self._hub is not None
        hand_over = self._hand_over or self._hub.adopt
        hand_over(sock, self.group, host, port)

    def stop(self) -> Deferred[None]:
        """Accept no more connections, let answers under way go out, close all.

        @return: fires when every connection is gone; those that take longer than the
            grace are cut off.
        """
        if not self._stopping:
            self._stopping = True
            if isinstance(self._listening, Listener):
                self._listening.stop()
            elif self._listening is not None:
                gone = maybeDeferred(self._listening.stopListening)
                gone.addErrback(self._not_stopped)
            self._wait_for_answers(0.0)
        return self.group.when_empty()

    def _not_stopped(self, failure: Failure) -> None:
        self._log.failure("Listening did not stop.", failure=failure)

    def _wait_for_answers(self, waited: float) -> None:
        """Close each connection when its answers are out, or the grace is over."""
        group = self.group
        answering = False
        for connection in list(group.connections):
            if connection.under_way and waited < GRACE_SECONDS:
                answering = True
            else:
                connection.close()
        if answering:
            waited += _LOOK_SECONDS
            self._timer = group.clock.callLater(
                _LOOK_SECONDS, self._wait_for_answers, waited
            )
        elif group.connections:
            self._timer = group.clock.callLater(GRACE_SECONDS, self._cut_off)
            group.when_empty().addCallback(self._stopped)
        else:
            self._stopped(None)

    def _cut_off(self) -> None:
        for connection in list(self.group.connections):
            connection.abort()

    def _stopped(self, _: None) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self.group.responses.stop()

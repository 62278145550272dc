# -*- test-case-name: tests.remoting.test_tls_port -*-
"""TLS at the ports of a server: who must speak it, and with what; handshakes.

A handshake costs a server a hundred times what a request does, and whoever reaches a
port can begin one. So the hub does each in the turns of its connection, which has its
budget of time there, and those that are not over are bounded in number and time: beyond
the number, the address that has most of them gives up its oldest.
"""

from __future__ import annotations

import ssl
from collections import Counter
from typing import Final, Protocol, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.remoting.addresses import PORT_BYTES
from rocketbroker.remoting.tls_socket import TlsSocket
from rocketbroker.remoting.tls_transport import HANDSHAKE_SECONDS
from rocketbroker.wire.tls_layer import TlsError

#: So many may be under way at once.
MAX_HANDSHAKES: Final = 512


class TlsContexts(Protocol):
    """What handshakes begin with."""

    def get(self) -> Deferred[ssl.SSLContext]:
        """The context of now; it may have to be made first.

        @return: fails with a ConfigurationError if there can be none.
        """


class ShakingConnection(Protocol):
    """A connection that begins to speak TLS."""

    peer_host: bytes
    closed: bool

    def failed_tls(self, error: TlsError) -> None:
        """It cannot be: end it."""

    def go_on_tls(self) -> None:
        """There is a context: read again."""


@final
class TlsPort:
    """TLS at the ports of one server.

    @ivar contexts: what it is spoken with.
    @ivar is_enforcing: whether all must speak it.
    @ivar shaking: the connections whose handshake is under way, the oldest first.
    @ivar opened: how many handshakes have ended well.
    """

    _log = Logger()

    def __init__(
        self, clock: IReactorTime, contexts: TlsContexts, is_enforcing: bool
    ) -> None:
        self.is_enforcing = is_enforcing
        self.shaking: dict[ShakingConnection, float] = {}
        self.opened = 0
        self._clock = clock
        self.contexts = contexts
        self._timer: IDelayedCall | None = None
        self._told = ""

    def begin(self, connection: ShakingConnection, sock: TlsSocket) -> None:
        """A client has begun a handshake."""
        shaking = self.shaking
        if len(shaking) >= MAX_HANDSHAKES:
            self._give_up()
        shaking[connection] = self._clock.seconds() + HANDSHAKE_SECONDS
        self.contexts.get().addCallbacks(
            self._have,
            self._have_none,
            callbackArgs=(connection, sock),
            errbackArgs=(connection,),
        )
        if self._timer is None:
            self._watch()

    def _have(
        self, context: ssl.SSLContext, connection: ShakingConnection, sock: TlsSocket
    ) -> None:
        if not connection.closed:
            sock.start(context)
            connection.go_on_tls()

    def _have_none(self, failure: Failure, connection: ShakingConnection) -> None:
        words = failure.getErrorMessage()
        if words != self._told:
            self._told = words
            self._log.error("No client can speak TLS: {words}", words=words)
        if not connection.closed:
            connection.failed_tls(TlsError("TLS: there is no certificate"))

    def get(self) -> Deferred[ssl.SSLContext]:
        """For connections that Twisted serves; see L{TlsContexts.get}."""
        return self.contexts.get()

    def opened_by(self, connection: ShakingConnection) -> None:
        """That handshake is over."""
        self.opened += 1
        self.left(connection)

    def left(self, connection: ShakingConnection) -> None:
        """That handshake is over, or the connection is gone."""
        self.shaking.pop(connection, None)
        if not self.shaking and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        """Of the address that has most of them, the oldest."""
        (most, _), *_ = Counter(
            each.peer_host[:-PORT_BYTES] for each in self.shaking
        ).most_common(1)
        oldest = next(
            each for each in self.shaking if each.peer_host[:-PORT_BYTES] == most
        )
        oldest.failed_tls(TlsError("TLS: too many handshakes are under way"))

    def _watch(self) -> None:
        first = next(iter(self.shaking.values()))
        delay = max(0.0, first - self._clock.seconds())
        self._timer = self._clock.callLater(delay, self._overdue)

    def _overdue(self) -> None:
        """End those that have had their time."""
        self._timer = None
        now = self._clock.seconds()
        for connection, latest in list(self.shaking.items()):
            if latest <= now:
                words = f"TLS: no handshake within {HANDSHAKE_SECONDS:.0f} s"
                connection.failed_tls(TlsError(words))
        if self.shaking and self._timer is None:
            self._watch()

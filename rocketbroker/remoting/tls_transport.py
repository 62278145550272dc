# -*- test-case-name: tests.remoting.test_tls_transport -*-
"""TLS between a transport of Twisted and the protocol on it.

To the transport it is a protocol, to that protocol a transport. The protocol hears of
its connection when the handshake is over.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final, cast, final
from typing import Protocol as Typed

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IProtocol,
    IPushProducer,
    IReactorTime,
)
from twisted.internet.protocol import Protocol, ServerFactory
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import classImplements

from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.wire.other_protocols import HANDSHAKE
from rocketbroker.wire.tls_layer import TlsError, TlsLayer

#: How long a handshake may take, as Netty's.
HANDSHAKE_SECONDS: Final = 10.0


class Contexts(Typed):
    """What handshakes begin with, and whether there must be one."""

    @property
    def is_enforcing(self) -> bool:
        """Whether all must speak TLS."""

    def get(self) -> Deferred[ssl.SSLContext]:
        """See L{rocketbroker.remoting.tls_port.TlsContexts.get}."""


@final
class TlsDoor(Protocol):
    """The first bytes of a connection to a server: whether its client speaks TLS.

    The hub has a way of its own. Ports that Twisted serves, and all where there is no
    epoll, have this one. The header of a proxy is read above it, without TLS only.
    """

    _log = Logger()

    def __init__(
        self,
        inner: IProtocol,
        port: Contexts,
        clock: IReactorTime,
        seconds: float,
        refusals: RefusalLog | None = None,
    ) -> None:
        """
        @param inner: the protocol above.
        @param seconds: how long a client may say nothing.
        @param refusals: logs why connections are closed; C{None}: each is logged.
        """
        self._inner: IProtocol = inner
        self._port = port
        self._clock = clock
        self._refusals = refusals
        self._first = b""
        self._is_open = self._is_lost = False
        self._timer: IDelayedCall | None = clock.callLater(seconds, self._abort)

    def _abort(self) -> None:
        self._timer = None
        cast(Any, self.transport).abortConnection()

    def _open(self, inner: IProtocol) -> None:
        """It is clear who speaks."""
        self._stop_timer()
        self._inner, self._is_open = inner, True
        first, self._first = self._first, b""
        inner.makeConnection(cast(Any, self.transport))
        inner.dataReceived(first)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def dataReceived(self, data: bytes) -> None:
        """Bytes came."""
        if self._is_open:
            self._inner.dataReceived(data)
            return
        is_first = not self._first
        self._first += data
        if not is_first:
            return  # there is no certificate yet
        if data[:1] == HANDSHAKE[:1]:
            cast(Any, self.transport).pauseProducing()
            self._port.get().addCallbacks(self._secure, self._refuse)
        elif self._port.is_enforcing:
            self._tell("no TLS, which is enforced here")
            self._stop_timer()
            self._abort()
        else:
            self._open(self._inner)

    def _secure(self, context: ssl.SSLContext) -> None:
        if not self._is_lost:
            cast(Any, self.transport).resumeProducing()
            layer, seconds = TlsLayer(context), HANDSHAKE_SECONDS
            self._open(
                TlsTransport(self._inner, layer, self._tell, self._clock, seconds)
            )

    def _tell(self, words: str) -> None:
        sentence = f"Closed a connection of {self._peer()}: {words}."
        if self._refusals is None:
            self._log.info("{sentence}", sentence=sentence)
        else:
            self._refusals.say(sentence)

    def _peer(self) -> str:
        return str(getattr(cast(Any, self.transport).getPeer(), "host", "somebody"))

    def _refuse(self, failure: Failure) -> None:
        words = failure.getErrorMessage()
        if self._refusals is None:
            self._log.error("No client can speak TLS: {words}", words=words)
        else:
            self._refusals.say(f"No client can speak TLS: {words}")
        if not self._is_lost:
            self._stop_timer()
            self._abort()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It is gone."""
        self._is_lost = True
        self._stop_timer()
        if self._is_open:
            self._inner.connectionLost(cast(Any, reason))


@final
class TlsTransport(Protocol):
    """One connection.

    @ivar disconnecting: whether it is closed as soon as all is sent.
    """

    def __init__(
        self,
        inner: IProtocol,
        layer: TlsLayer,
        refused: Callable[[str], object],
        clock: IReactorTime,
        seconds: float,
    ) -> None:
        """
        @param inner: the protocol above.
        @param layer: of this side.
        @param refused: called with why there will be no connection, instead of
            C{inner}.
        @param seconds: how long the handshake may take.
        """
        self._inner = inner
        self._layer = layer
        self._refused = refused
        self._is_made = self._has_ended = self.disconnecting = False
        self._timer: IDelayedCall | None = clock.callLater(
            seconds, self._fail, f"TLS: no handshake within {seconds:g} s"
        )

    # A protocol, to the transport.

    def connectionMade(self) -> None:
        """A client speaks first."""
        self._take(b"")

    def dataReceived(self, data: bytes) -> None:
        """Bytes came."""
        self._take(data)

    def _take(self, data: bytes) -> None:
        if self._has_ended:
            return
        layer = self._layer
        try:
            said = layer.receive(data)
        except TlsError as error:
            self._push()  # the words of the protocol for it
            self._fail(str(error))
            return
        self._push()
        if layer.is_open and not self._is_made:
            self._is_made = True
            self._stop_timer()
            self._inner.makeConnection(cast(Any, self))
        if said:
            self._inner.dataReceived(said)
        if layer.has_ended:
            self.loseConnection()

    def _push(self) -> None:
        data = self._layer.outgoing()
        if data:
            self._transport.write(data)

    def _fail(self, words: str) -> None:
        """Nothing more can be said."""
        self._end(words)
        self._transport.abortConnection()

    def _end(self, words: str) -> None:
        self._stop_timer()
        if not self._has_ended:
            self._has_ended = True
            if not self._is_made:
                self._refused(words)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It is gone."""
        words = "closed" if reason is None else reason.getErrorMessage()
        self._end(f"TLS: {words}")
        if self._is_made:
            self._inner.connectionLost(cast(Any, reason))

    # A transport, to the protocol.

    @property
    def _transport(self) -> Any:
        return self.transport

    def write(self, data: bytes) -> None:
        """Encrypt it and send."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._layer.send(view) :]
        except TlsError as error:
            self._fail(str(error))
            return
        self._push()

    def writeSequence(self, pieces: Iterable[bytes]) -> None:
        """Encrypt them and send."""
        self.write(b"".join(pieces))

    def peer_certificate(self) -> bytes | None:
        """See L{TlsLayer.peer_certificate}."""
        return self._layer.peer_certificate()

    def loseConnection(self) -> None:
        """Close it, when all is sent."""
        self.disconnecting = True
        self._transport.write(self._layer.close())
        self._transport.loseConnection()

    def abortConnection(self) -> None:
        """Close it at once."""
        self._transport.abortConnection()

    def getPeer(self) -> IAddress:
        """See the transport."""
        return cast(IAddress, self._transport.getPeer())

    def getHost(self) -> IAddress:
        """See the transport."""
        return cast(IAddress, self._transport.getHost())

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """See the transport."""
        self._transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        """See the transport."""
        self._transport.unregisterProducer()

    def stopProducing(self) -> None:
        """See the transport."""
        self._transport.stopProducing()

    def pauseProducing(self) -> None:
        """See the transport."""
        self._transport.pauseProducing()

    def resumeProducing(self) -> None:
        """See the transport."""
        self._transport.resumeProducing()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """See the transport."""
        if hasattr(self._transport, "setTcpNoDelay"):
            self._transport.setTcpNoDelay(enabled)


# HTTP's channel asks its transport to pause only if that says that it can.
classImplements(TlsTransport, IPushProducer)


@final
class TlsDoors(ServerFactory[Any]):
    """Puts a door before each protocol of a factory."""

    noisy = False

    def __init__(
        self, factory: Any, port: Contexts, clock: IReactorTime, seconds: float
    ) -> None:
        """
        @param factory: makes the protocols.
        @param seconds: see L{TlsDoor}.
        """
        self._factory = factory
        self._port = port
        self._clock = clock
        self._seconds = seconds
        self._refusals = RefusalLog(clock.seconds)

    def logPrefix(self) -> str:
        """The name of the port in Twisted's log lines."""
        prefix = getattr(self._factory, "logPrefix", None)
        return type(self._factory).__name__ if prefix is None else str(prefix())

    def startFactory(self) -> None:
        """The port listens."""
        self._factory.doStart()

    def stopFactory(self) -> None:
        """The port is closed."""
        self._factory.doStop()

    def buildProtocol(self, addr: IAddress | None) -> TlsDoor | None:
        """A connection was accepted; C{None}: it is not wanted."""
        inner = self._factory.buildProtocol(addr)
        if inner is None:
            return None
        port, seconds = self._port, self._seconds
        return TlsDoor(inner, port, self._clock, seconds, self._refusals)

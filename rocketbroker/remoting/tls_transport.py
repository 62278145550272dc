# -*- test-case-name: tests.remoting.test_tls_transport -*-
"""TLS between a transport of Twisted and the protocol on it.

To the transport it is a protocol, to that protocol a transport. The protocol hears of
its connection when the handshake is over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, final

from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IProtocol,
    IReactorTime,
)
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from rocketbroker.wire.tls_layer import TlsError, TlsLayer


@final
class TlsTransport(Protocol):
    """One connection."""

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
        self._is_made = self._has_ended = False
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

    def loseConnection(self) -> None:
        """Close it, when all is sent."""
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

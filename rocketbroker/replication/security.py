# -*- test-case-name: tests.replication.test_security -*-
"""The doors before replication: TLS, and the proof of a secret.

A master's port hears of a slave (L{rocketbroker.replication.master}) when both have
proved that they have the secret of haSecretFile, if there is one; before that nothing
of the log is sent. TLS lies below the proof. RocketMQ has neither, so that without the
settings its brokers are on either side.

The handshake goes over the transport, and the stream after it past the transport, by
the socket. Each side waits for the other's answer before it goes on, so that nothing
of the handshake is left to be sent by then.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import Any, Final, cast, final
from typing import Protocol as Typed

import attrs
from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from rocketbroker.remoting.refusal_log import AddressRefusals
from rocketbroker.remoting.tls_transport import (
    HANDSHAKE_SECONDS,
    Contexts,
    TlsTransport,
)
from rocketbroker.wire.ha_secret import (
    NUMBER_BYTES,
    MasterHandshake,
    NotProvedError,
    SlaveHandshake,
)
from rocketbroker.wire.tls_layer import TlsLayer

#: How long the master may take for its side of the proof.
PROOF_SECONDS: Final = 10.0


class Secret(Typed):
    """A secret that may be renewed."""

    @property
    def value(self) -> bytes:
        """The secret of now."""


def random_number() -> bytes:
    """A number that nobody can guess."""
    return os.urandom(NUMBER_BYTES)


@attrs.frozen(kw_only=True)
class HaSecurity:
    """What stands before replication, on both sides.

    @ivar secret: what both have to have; C{None}: nothing is proved.
    @ivar port_tls: what slaves speak TLS with; C{None}: they do not.
    @ivar client_tls: what this broker speaks TLS with to its master; C{None}: it does
        not.
    @ivar number: makes a number that nobody can guess.
    """

    secret: Secret | None = None
    port_tls: Contexts | None = None
    client_tls: Callable[[], ssl.SSLContext] | None = None
    number: Callable[[], bytes] = random_number

    @property
    def is_used_by_slave(self) -> bool:
        """Whether there is anything between a slave and its master."""
        return self.secret is not None or self.client_tls is not None


NO_SECURITY: Final = HaSecurity()


@final
class SecretDoor(Protocol):
    """A connection to the master's port that has not proved the secret yet."""

    def __init__(
        self, inner: IProtocol, handshake: MasterHandshake, refusals: AddressRefusals
    ) -> None:
        """
        @param inner: the protocol behind it.
        """
        self._inner = inner
        self._handshake = handshake
        self._refusals = refusals
        self._is_open = False

    def dataReceived(self, data: bytes) -> None:
        """Bytes came."""
        if self._is_open:
            self._inner.dataReceived(data)
            return
        transport, handshake = cast(Any, self.transport), self._handshake
        try:
            transport.write(handshake.receive(data))
        except NotProvedError as error:
            host = transport.getPeer().host
            self._refusals.say(
                host,
                f"{host} is sent nothing at the port of replication: {error}.",
            )
            transport.abortConnection()
            return
        if handshake.is_open:
            self._is_open = True
            self._inner.makeConnection(transport)
            if handshake.rest:
                self._inner.dataReceived(handshake.rest)

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It is gone."""
        if self._is_open:
            self._inner.connectionLost(cast(Any, reason))


@final
class SecuredLink(Protocol):
    """A slave's connection to its master, until both have proved the secret."""

    def __init__(
        self,
        handshake: SlaveHandshake | None,
        make: Callable[[], IProtocol | None],
        failed: Callable[[str], object],
        clock: IReactorTime,
    ) -> None:
        """
        @param handshake: C{None}: nothing is proved.
        @param make: makes the protocol behind it; C{None}: it is not wanted any more.
        @param failed: called with the reason if it comes to nothing.
        """
        self._handshake = handshake
        self._make = make
        self._failed = failed
        self._inner: IProtocol | None = None
        self._clock = clock
        self._problem = "it does not answer"
        self._timer: IDelayedCall | None = None

    def connectionMade(self) -> None:
        """The master is there."""
        self._timer = self._clock.callLater(PROOF_SECONDS, self._abort)
        if self._handshake is None:
            self._open()
        else:
            cast(Any, self.transport).write(self._handshake.first)

    def _open(self) -> None:
        self._stop_timer()
        self._inner = self._make()
        if self._inner is None:
            self._abort()
        else:
            self._inner.makeConnection(cast(Any, self.transport))

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _abort(self) -> None:
        self._timer = None
        cast(Any, self.transport).abortConnection()

    def dataReceived(self, data: bytes) -> None:
        """Bytes came."""
        if self._inner is not None:
            self._inner.dataReceived(data)
            return
        handshake = self._handshake
        assert handshake is not None
        try:
            answer = handshake.receive(data)
        except NotProvedError as error:
            self._problem = str(error)
            self._stop_timer()
            self._abort()
            return
        if answer:
            cast(Any, self.transport).write(answer)
            self._problem = "it does not believe this broker's secret (haSecretFile)"
        if handshake.is_open:
            self._open()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It is over."""
        self._stop_timer()
        if self._inner is not None:
            self._inner.connectionLost(cast(Any, reason))
        else:
            self._failed(self._problem)


def secured_link(
    security: HaSecurity,
    make: Callable[[], IProtocol | None],
    failed: Callable[[str], object],
    clock: IReactorTime,
) -> IProtocol:
    """The protocol of a slave's new connection to its master.

    @param make: see L{SecuredLink}.
    @param failed: the same.
    @raise ConfigurationError: there is no TLS; one sentence.
    """
    handshake = None
    if security.secret is not None:
        handshake = SlaveHandshake(security.secret.value, security.number())
    if security.client_tls is None:
        return SecuredLink(handshake, make, failed, clock)
    layer = TlsLayer(security.client_tls(), is_server=False)
    link = SecuredLink(handshake, make, failed, clock)
    return TlsTransport(link, layer, failed, clock, HANDSHAKE_SECONDS)

# -*- test-case-name: tests.client.test_runtimes -*-
"""The client on Twisted: with the reactor that it is given."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast, final

from twisted.internet import error
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import (
    IAddress,
    IConnector,
    IDelayedCall,
    IPushProducer,
    IReactorTCP,
    IReactorTime,
    ITCPTransport,
)
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from rocketbroker.client.runtime import Future, Link, LinkEvents
from rocketbroker.client.runtimes import machine
from rocketbroker.config.forks import Forked
from rocketbroker.config.machine import Identity, identity
from rocketbroker.errors import ConnectionLost

T = TypeVar("T")


@final
class _DeferredFuture(Generic[T]):
    """A future."""

    __slots__ = ("_deferred",)

    def __init__(self) -> None:
        self._deferred: Deferred[T] = Deferred()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._deferred.__await__()

    def done(self) -> bool:
        """See L{Future}."""
        return bool(self._deferred.called)

    def set_result(self, result: T, /) -> None:
        """See L{Future}."""
        self._deferred.callback(result)

    def set_exception(self, problem: Exception, /) -> None:
        """See L{Future}."""
        self._deferred.errback(problem)


@final
class _Timer:
    """A call that is to come."""

    __slots__ = ("_call",)

    def __init__(self, call: IDelayedCall) -> None:
        self._call = call

    def cancel(self) -> None:
        """See L{rocketbroker.client.runtime.Timer}."""
        if self._call.active():
            self._call.cancel()


@final
class _Task:
    """A coroutine that runs by itself."""

    __slots__ = ("_coroutine", "_running")

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._running: Deferred[None] | None = None

    def begin(self) -> None:
        """It is its turn."""
        self._running = Deferred.fromCoroutine(self._coroutine)
        self._running.addErrback(_pass_cancelled)

    def cancel(self) -> None:
        """See L{rocketbroker.client.runtime.Task}."""
        if self._running is not None:
            self._running.cancel()


def _pass_cancelled(failure: Failure) -> Failure | None:
    return None if isinstance(failure.value, CancelledError) else failure


@final
class TwistedRuntime:
    """See L{rocketbroker.client.runtime.Runtime}."""

    cancelled: type[BaseException] = CancelledError

    def __init__(self, reactor: IReactorTCP) -> None:
        """
        @param reactor: tells the time, too.
        """
        self._reactor = reactor
        self._time = cast(IReactorTime, reactor)

    def monotonic(self) -> float:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return self._time.seconds()

    def wall_ms(self) -> int:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return machine.wall_ms()

    def identity(self) -> Identity:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return identity()

    def watch_fork(self, one: Forked) -> None:
        """See L{rocketbroker.client.runtime.Runtime}."""
        machine.watch_fork(one)

    def call_later(
        self, seconds: float, callback: Callable[..., object], *args: Any
    ) -> _Timer:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return _Timer(self._time.callLater(max(seconds, 0.0), callback, *args))

    def future(self) -> Future[Any]:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return _DeferredFuture()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> _Task:
        """See L{rocketbroker.client.runtime.Runtime}."""
        task = _Task(coroutine)
        self._time.callLater(0, task.begin)
        return task

    async def sleep(self, seconds: float) -> None:
        """See L{rocketbroker.client.runtime.Runtime}."""
        future: _DeferredFuture[None] = _DeferredFuture()
        timer = self.call_later(seconds, future.set_result, None)
        try:
            await future
        finally:
            timer.cancel()

    async def connect(
        self, host: str, port: int, seconds: float, events: LinkEvents
    ) -> Link:
        """See L{rocketbroker.client.runtime.Runtime}."""
        made: Deferred[_SocketLink] = Deferred()
        factory = _LinkFactory(events, made, f"{host}:{port}")
        connector = self._reactor.connectTCP(host, port, factory, seconds)
        try:
            return await made
        except CancelledError:
            connector.disconnect()
            raise

    def watch_termination(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See L{rocketbroker.client.runtime.Runtime}: the reactor watches it."""
        return machine.nothing


@final
class _LinkFactory(ClientFactory):
    """One attempt to connect."""

    noisy = False

    def __init__(
        self, events: LinkEvents, made: Deferred[_SocketLink], address: str
    ) -> None:
        self._events = events
        self._made = made
        self._address = address

    def buildProtocol(self, addr: IAddress | None) -> _SocketLink:
        """It is connected."""
        return _SocketLink(self._events, self._made)

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        """It could not be connected."""
        if not self._made.called:
            words = f"cannot connect to {self._address}: {reason.getErrorMessage()}"
            self._made.errback(ConnectionLost(words))


@final
@implementer(IPushProducer)
class _SocketLink(Protocol):
    """One connection."""

    def __init__(self, events: LinkEvents, made: Deferred[_SocketLink]) -> None:
        self._events = events
        self._made = made

    def connectionMade(self) -> None:
        """It is there."""
        transport = cast(ITCPTransport, self.transport)
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        cast(Any, transport).registerProducer(self, True)
        if self._made.called:  # nobody waits for it any more
            transport.loseConnection()
        else:
            self._made.callback(self)

    def write(self, data: bytes) -> None:
        """See L{Link}."""
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """See L{Link}."""
        if self.transport is not None:
            cast(Any, self.transport).unregisterProducer()
            self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        """Bytes have come."""
        self._events.received(data)

    def pauseProducing(self) -> None:
        """The server takes less than we write."""
        self._events.congested(True)

    def resumeProducing(self) -> None:
        """It has caught up."""
        self._events.congested(False)

    def stopProducing(self) -> None:
        """The connection is about to be gone."""

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It is gone."""
        self.transport = None
        words = "the server closed it"
        if reason is not None and not isinstance(reason.value, error.ConnectionDone):
            words = reason.getErrorMessage()
        self._events.lost(words)

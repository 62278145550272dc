# -*- test-case-name: tests.client.test_runtimes -*-
"""The client on asyncio: in the caller's running loop, without a thread."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any, cast, final

from rocketbroker.client.runtime import Future, Link, LinkEvents
from rocketbroker.client.runtimes import machine
from rocketbroker.config.forks import Forked
from rocketbroker.config.machine import Identity, identity
from rocketbroker.errors import ConnectionLost


@final
class AsyncioRuntime:
    """See L{rocketbroker.client.runtime.Runtime}.

    It belongs to the loop that runs when it is first used.
    """

    cancelled: type[BaseException] = asyncio.CancelledError

    def __init__(self) -> None:
        self._bound: asyncio.AbstractEventLoop | None = None
        self._left: list[object] = []
        machine.watch_fork(self)

    def forked(self) -> None:
        """See L{Forked}: the loop is the parent's. It is kept, so that nothing of it is
        closed, nor told to the kernel, here."""
        self._left.append(self._bound)
        self._bound = None

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = self._bound
        if loop is None:
            loop = self._bound = asyncio.get_running_loop()
        return loop

    def monotonic(self) -> float:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return time.monotonic()

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
    ) -> asyncio.Handle:
        """See L{rocketbroker.client.runtime.Runtime}."""
        if seconds <= 0:
            return self._loop.call_soon(callback, *args)
        return self._loop.call_later(seconds, callback, *args)

    def future(self) -> Future[Any]:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return cast(Future[Any], self._loop.create_future())

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return self._loop.create_task(coroutine)

    async def sleep(self, seconds: float) -> None:
        """See L{rocketbroker.client.runtime.Runtime}."""
        await asyncio.sleep(seconds)

    async def connect(
        self, host: str, port: int, seconds: float, events: LinkEvents
    ) -> Link:
        """See L{rocketbroker.client.runtime.Runtime}."""
        try:
            async with asyncio.timeout(seconds):
                _, link = await self._loop.create_connection(
                    lambda: _SocketLink(events), host, port
                )
        except (OSError, UnicodeError) as problem:
            words = machine.reason(problem)
            raise ConnectionLost(
                f"cannot connect to {host}:{port}: {words}"
            ) from problem
        return link

    def watch_termination(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See L{rocketbroker.client.runtime.Runtime}."""
        loop = self._loop
        if not machine.may_watch_termination():
            return machine.nothing
        try:
            loop.add_signal_handler(signal.SIGTERM, callback)
        except NotImplementedError:
            # The event loops of Windows watch no signals; asyncio says so by this.
            return machine.nothing

        def watch_no_more() -> None:
            loop.remove_signal_handler(signal.SIGTERM)

        return watch_no_more


@final
class _SocketLink(asyncio.Protocol):
    """One connection."""

    def __init__(self, events: LinkEvents) -> None:
        self._events = events
        self._transport: asyncio.Transport | None = None

    def write(self, data: bytes) -> None:
        """See L{Link}."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """See L{Link}."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast(asyncio.Transport, transport)
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self._events.received(data)

    def pause_writing(self) -> None:
        """The server takes less than we write."""
        self._events.congested(True)

    def resume_writing(self) -> None:
        """It has caught up."""
        self._events.congested(False)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._transport = None
        if isinstance(exc, OSError):
            self._events.lost(machine.reason(exc))
        else:
            self._events.lost("the server closed it" if exc is None else str(exc))

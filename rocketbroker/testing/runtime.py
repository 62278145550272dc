# -*- test-case-name: tests.testing.test_runtime -*-
"""A runtime for clients in which a test is the clock and the network.

Nothing moves by itself: C{settle()} lets all happen that happens without time passing,
C{advance(seconds)} lets time pass::

    runtime = MemoryRuntime()
    runtime.servers["ns:9876"] = lambda link, command: answer(17)
    result = runtime.start(routes.view("T"))
    runtime.settle()
    result.value()

A server is a function of a link and a request. Answers that it gives go back at once;
with the link it can send more, later or unasked.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from itertools import count
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, final

from rocketbroker.client.runtime import (
    Future,
    Link,
    LinkEvents,
)
from rocketbroker.config.forks import Forked
from rocketbroker.config.machine import Identity
from rocketbroker.errors import ConnectionLost
from rocketbroker.wire.command import RESPONSE, Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode

T = TypeVar("T")

#: Calls after which a test that still has something to do goes round in circles.
MAX_CALLS: Final = 200_000

#: What a server does with a request: an answer, several, or none now. C{ConnectionLost}
#: raised: it hangs up. An answer without an opaque gets the request's; one that is no
#: response is a request of the server.
PuppetServer: TypeAlias = Callable[
    ["PuppetLink", Command], "Command | Sequence[Command] | None"
]


class Cancelled(BaseException):
    """What a cancelled task raises."""


@final
class MemoryFuture(Generic[T]):
    """A future of the memory runtime."""

    def __init__(self, runtime: MemoryRuntime) -> None:
        self._runtime = runtime
        self._result: list[T] = []
        self._problem: BaseException | None = None
        self._waiter: Callable[[], None] | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        if not self.done():
            yield self
        if self._problem is not None:
            raise self._problem
        return self._result[0]

    def done(self) -> bool:
        """See L{Future}."""
        return bool(self._result) or self._problem is not None

    def set_result(self, result: T, /) -> None:
        """See L{Future}."""
        assert not self.done(), "a future has one result"
        self._result.append(result)
        self._wake()

    def set_exception(self, problem: BaseException, /) -> None:
        """See L{Future}."""
        assert not self.done(), "a future has one result"
        self._problem = problem
        self._wake()

    def wait(self, waiter: Callable[[], None]) -> None:
        """Call C{waiter} in the turn after it has a result."""
        assert self._waiter is None, "a future has one waiter"
        self._waiter = waiter

    def _wake(self) -> None:
        if self._waiter is not None:
            self._runtime.call_later(0, self._waiter)


@final
class MemoryTask:
    """A coroutine that runs by itself."""

    def __init__(
        self, runtime: MemoryRuntime, coroutine: Coroutine[Any, Any, object]
    ) -> None:
        self._coroutine = coroutine
        self._awaited: MemoryFuture[Any] | None = None
        self._cancelling = False
        self._ended = False
        runtime.call_later(0, self._step)

    def cancel(self) -> None:
        """See L{rocketbroker.client.runtime.Task}."""
        if self._ended:
            return
        if self._awaited is None or self._awaited.done():
            self._cancelling = True
        else:
            self._awaited.set_exception(Cancelled())

    def _step(self) -> None:
        self._awaited = None
        try:
            if self._cancelling:
                self._cancelling = False
                awaited = self._coroutine.throw(Cancelled())
            else:
                awaited = self._coroutine.send(None)
        except StopIteration:
            self._ended = True
            return
        except Cancelled:
            self._ended = True
            return
        assert isinstance(awaited, MemoryFuture), f"{awaited!r} is no future of ours"
        self._awaited = awaited
        awaited.wait(self._step)
        if self._cancelling and not awaited.done():
            self._cancelling = False
            awaited.set_exception(Cancelled())


@final
class MemoryTimer:
    """A call that is to come."""

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._callback: Callable[..., object] | None = callback
        self._args = args

    def cancel(self) -> None:
        """See L{rocketbroker.client.runtime.Timer}."""
        self._callback = None

    def call(self) -> None:
        """It is time."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(*self._args)


@final
class PuppetLink:
    """One connection between the client and a server.

    @ivar address: the server's.
    @ivar is_open: whether neither side has closed it.
    @ivar requests: what the client has sent over it, its answers, too.
    @ivar at_end: called once it is closed, by whomever.
    """

    def __init__(
        self, runtime: MemoryRuntime, address: str, events: LinkEvents
    ) -> None:
        self._runtime = runtime
        self._events = events
        self._incoming = Connection()
        self._cut = False
        self.address = address
        self.is_open = True
        self.requests: list[Command] = []
        self.at_end: list[Callable[[], None]] = []

    def write(self, data: bytes) -> None:
        """See L{Link}."""
        if self.is_open:
            self._runtime.call_later(0, self._arrived, data)

    def close(self) -> None:
        """See L{Link}."""
        self._end("it was closed")

    # The server's side.

    def send(self, command: Command) -> None:
        """Send a request, or a late answer, to the client."""
        self.send_bytes(encode(command))

    def send_bytes(self, data: bytes) -> None:
        """Send anything to the client, in pieces if the runtime says so."""
        size = self._runtime.max_bytes or len(data) or 1
        for at in range(0, len(data), size):
            self._runtime.call_later(0, self._deliver, data[at : at + size])

    def congest(self, is_congested: bool) -> None:
        """Take nothing more from the client; or take it again."""
        self._events.congested(is_congested)

    def cut(self, why: str = "it was cut") -> None:
        """Close it, as a network or a server does; what is under way is lost."""
        self._cut = True
        self._end(why)

    def _end(self, why: str) -> None:
        if self.is_open:
            self.is_open = False
            self._runtime.links.remove(self)
            self._runtime.call_later(0, self._events.lost, why)
            for callback in self.at_end:
                self._runtime.call_later(0, callback)

    def _deliver(self, data: bytes) -> None:
        if self.is_open:
            self._events.received(data)

    def _arrived(self, data: bytes) -> None:
        for command in self._incoming.receive(data):
            self._serve(command)

    def _serve(self, command: Command) -> None:
        if self._cut:
            return
        self.requests.append(command)
        if command.is_response:
            return
        self._runtime.requests.append((self.address, command))
        server = self._runtime.servers.get(self.address)
        if server is None:
            self.cut("the server is gone")
            return
        try:
            answers = server(self, command)
        except ConnectionLost as problem:
            self.cut(str(problem))
            return
        if answers is None:
            return
        for answer in [answers] if isinstance(answers, Command) else answers:
            if answer.flag & RESPONSE and not answer.opaque:
                answer.opaque = command.opaque
            if not command.is_oneway or not answer.flag & RESPONSE:
                self.send(answer)


@final
class Outcome(Generic[T]):
    """What has become of a coroutine that a test has started."""

    def __init__(self, runtime: MemoryRuntime, coroutine: Coroutine[Any, Any, T]):
        self._results: list[T] = []
        self._problem: BaseException | None = None
        self._task = MemoryTask(runtime, self._run(coroutine))

    async def _run(self, coroutine: Coroutine[Any, Any, T]) -> None:
        try:
            self._results.append(await coroutine)
        except BaseException as problem:
            self._problem = problem

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return bool(self._results) or self._problem is not None

    def value(self) -> T:
        """Its result; what it raised is raised."""
        if self._problem is not None:
            raise self._problem
        assert self._results, "it has not ended"
        return self._results[0]

    def cancel(self) -> None:
        """Cancel it."""
        self._task.cancel()


@final
class MemoryRuntime:
    """See L{rocketbroker.client.runtime.Runtime}.

    @ivar servers: what answers, by C{host:port}; who is not here refuses connections.
    @ivar silent: addresses that do not even refuse: connecting times out.
    @ivar max_bytes: how many bytes arrive at once; None for all there are.
    @ivar links: all connections that are open.
    @ivar requests: all that servers have got, with the server's address.
    @ivar connects: the address of each attempt to connect.
    """

    cancelled: type[BaseException] = Cancelled

    def __init__(self, process_id: int = 7) -> None:
        self._now = 1000.0
        self._timers: list[tuple[float, int, MemoryTimer]] = []
        self._soon: deque[MemoryTimer] = deque()
        self._count = count()
        self._process_id = process_id
        self._terminations: list[Callable[[], None]] = []
        self._watching: list[Forked] = []
        self.servers: dict[str, PuppetServer] = {}
        self.silent: set[str] = set()
        self.max_bytes: int | None = None
        self.links: list[PuppetLink] = []
        self.requests: list[tuple[str, Command]] = []
        self.connects: list[str] = []

    # Runtime.

    def monotonic(self) -> float:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return self._now

    def wall_ms(self) -> int:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return 1_700_000_000_000 + int(self._now * 1000)

    def identity(self) -> Identity:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return Identity(bytes([10, 0, 0, 1]), self._process_id, next(self._count))

    def watch_fork(self, one: Forked) -> None:
        """See L{rocketbroker.client.runtime.Runtime}; C{fork} tells it."""
        self._watching.append(one)

    def call_later(
        self, seconds: float, callback: Callable[..., object], *args: Any
    ) -> MemoryTimer:
        """See L{rocketbroker.client.runtime.Runtime}."""
        timer = MemoryTimer(callback, args)
        if seconds <= 0:
            self._soon.append(timer)
        else:
            when = self._now + seconds
            heapq.heappush(self._timers, (when, next(self._count), timer))
        return timer

    def future(self) -> Future[Any]:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return MemoryFuture(self)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> MemoryTask:
        """See L{rocketbroker.client.runtime.Runtime}."""
        return MemoryTask(self, coroutine)

    async def sleep(self, seconds: float) -> None:
        """See L{rocketbroker.client.runtime.Runtime}."""
        future: MemoryFuture[None] = MemoryFuture(self)
        timer = self.call_later(seconds, future.set_result, None)
        try:
            await future
        finally:
            timer.cancel()

    async def connect(
        self, host: str, port: int, seconds: float, events: LinkEvents
    ) -> Link:
        """See L{rocketbroker.client.runtime.Runtime}."""
        address = f"{host}:{port}"
        self.connects.append(address)
        if address in self.silent:
            await self.sleep(seconds)
            raise ConnectionLost(f"cannot connect to {address}: no answer in time")
        await self.sleep(0)
        if address not in self.servers:
            raise ConnectionLost(f"cannot connect to {address}: nobody is there")
        link = PuppetLink(self, address, events)
        self.links.append(link)
        return cast(Link, link)

    def watch_termination(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See L{rocketbroker.client.runtime.Runtime}; C{terminate} calls it."""
        self._terminations.append(callback)
        return lambda: self._terminations.remove(callback)

    # For tests.

    def fork(self) -> None:
        """Be the child of a fork from now on."""
        for one in [*self._watching]:
            one.forked()

    def terminate(self) -> None:
        """Ask the process to end."""
        for callback in [*self._terminations]:
            callback()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Outcome[T]:
        """Run a coroutine beside all others."""
        return Outcome(self, coroutine)

    def finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that needs no time to pass; its result."""
        outcome = self.start(coroutine)
        self.settle()
        return outcome.value()

    def settle(self) -> None:
        """Let all happen that happens without time passing."""
        for _ in range(MAX_CALLS):
            if not self._soon:
                return
            self._soon.popleft().call()
        raise AssertionError("the runtime does not come to rest")

    def advance(self, seconds: float) -> None:
        """Let time pass, and all happen that happens until then."""
        end = self._now + seconds
        self.settle()
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            timer.call()
            self.settle()
        self._now = end
        self.settle()

    def links_to(self, address: str) -> list[PuppetLink]:
        """The open connections to a server."""
        return [link for link in self.links if link.address == address]

    def cut(self, address: str) -> None:
        """Cut all connections to a server."""
        for link in self.links_to(address):
            link.cut()

    def codes(self, address: str | None = None) -> list[int]:
        """The codes of the requests that one server, or all, have got."""
        return [
            command.code
            for where, command in self.requests
            if address is None or where == address
        ]

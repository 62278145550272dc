# -*- test-case-name: tests.client.test_runtimes -*-
"""The runtime, an interface: the little that the client needs of the world.

The coroutines of the client are plain C{async def}. They await nothing but futures that
a L{Runtime} made, so whatever drives the runtime drives them: the task of asyncio, a
Deferred of Twisted, the steps of a test. Nobody here knows which.

Three rules keep that true:

  - A future has one waiter. To wake several, there is a L{waits.Signal}.
  - Cancelling a task raises C{runtime.cancelled} where the task waits. What a coroutine
    has to undo stands in C{finally}. No one catches what is not a C{RocketbrokerError},
    but around the user's own code, where C{runtime.cancelled} is let through first.
  - Bytes arrive by calls, not by coroutines: a coroutine for each read would be one for
    each message.

Implementations: L{rocketbroker.client.runtimes.on_asyncio},
L{rocketbroker.client.runtimes.on_twisted}, and, for tests,
L{rocketbroker.testing.runtime}. They run one contract suite.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

from rocketbroker.config.forks import Forked
from rocketbroker.config.machine import Identity

T = TypeVar("T")


class Future(Protocol[T]):
    """A result that comes later, for one waiter."""

    def __await__(self) -> Generator[Any, Any, T]:
        """Wait for it."""

    def done(self) -> bool:
        """Whether it has a result or an error, or its waiter was cancelled."""

    def set_result(self, result: T, /) -> None:
        """Give the result; not to one that is done."""

    def set_exception(self, problem: Exception, /) -> None:
        """Let the waiter fail; not of one that is done."""


class Task(Protocol):
    """A coroutine that runs by itself."""

    def cancel(self) -> object:
        """Raise C{runtime.cancelled} where it waits; nothing if it has ended."""


class Timer(Protocol):
    """A call that is to come."""

    def cancel(self) -> object:
        """Do not call; nothing if it has been called, or was cancelled before."""


class Link(Protocol):
    """One connection, as the client writes to it."""

    def write(self, data: bytes) -> None:
        """Send; nothing once it is lost."""

    def close(self) -> None:
        """Close it. C{lost} is still called, in a later turn."""


class LinkEvents(Protocol):
    """One connection, as it is told what happens to it."""

    def received(self, data: bytes) -> None:
        """Bytes have arrived."""

    def congested(self, is_congested: bool) -> None:
        """So much waits to be sent that no more is to be written; or not any more."""

    def lost(self, why: str) -> None:
        """It is gone; called once, perhaps before C{connect} has returned."""


class Runtime(Protocol):
    """Clock, futures, tasks, connections.

    @ivar cancelled: what a cancelled task raises.
    """

    cancelled: type[BaseException]

    def monotonic(self) -> float:
        """Seconds that only ever go forward."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""

    def identity(self) -> Identity:
        """Who this process is; asked for once by each client."""

    def watch_fork(self, one: Forked) -> None:
        """Tell it in each child of a fork."""

    def call_later(
        self, seconds: float, callback: Callable[..., object], *args: Any
    ) -> Timer:
        """Call when that much time has passed; with 0, in the next turn."""

    def future(self) -> Future[Any]:
        """A future without a result."""

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> Task:
        """Run a coroutine, from the next turn on; it catches its errors itself."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def connect(
        self, host: str, port: int, seconds: float, events: LinkEvents
    ) -> Link:
        """Connect.

        @raise ConnectionLost: it could not be done in that time.
        """

    def watch_termination(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call when the process is asked to end, if that is ours to watch: in the main
        thread, and where nobody does it yet.

        @return: watches no more.
        """

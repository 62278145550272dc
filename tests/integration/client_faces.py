"""All three faces of the client, used as the one for asyncio.

A scenario is a coroutine that is written for L{rocketbroker.aio}. With another face it
has the objects of that face wrapped: what is a coroutine in C{aio} is awaited in the
same words, while a thread waits for it, or a Deferred is waited for. Names and
arguments are the face's own, so one that it lacks fails the scenario.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, wraps
from types import FunctionType
from typing import Any, Final, Protocol

from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.internet.defer import Deferred

from rocketbroker import aio, deferred, threads
from rocketbroker.client import transactions
from rocketbroker.client.send_stream import SendStream

#: What the classes of the other faces stand for, by their names.
PATTERNS: Final[dict[str, type]] = {
    kind.__name__: kind
    for kind in (
        aio.Session,
        aio.MessageStream,
        aio.ReceivedMessage,
        aio.LitePullConsumer,
        transactions.Transaction,
        SendStream,
    )
}
PATTERNS["generator"] = SendStream

#: How many calls may wait at once: of each scenario some.
THREADS: Final = 200


class Way(Protocol):
    """How a face is waited for.

    @ivar enter: the name of the method that enters a context.
    @ivar leave: of the one that leaves it.
    """

    enter: str
    leave: str

    def connect(self, names: str, **options: Any) -> Any:
        """A session."""

    async def call(
        self, function: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """Call a method that waits, and wait."""

    async def following(self, iterator: Any) -> Any:
        """What an iterator of the face gives next.

        @raise StopAsyncIteration: nothing more.
        """

    def listener(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[..., Any]:
        """A coroutine as the face takes listeners."""

    def close(self) -> None:
        """End what it runs with."""


class ByThreads:
    """C{rocketbroker.threads}: threads wait."""

    enter, leave = "__enter__", "__exit__"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(THREADS)

    def connect(self, names: str, **options: Any) -> threads.Session:
        """See L{Way}."""
        return threads.connect(names, **options)

    async def call(
        self, function: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """See L{Way}."""
        called = partial(function, *args, **options)
        return await self._loop.run_in_executor(self._pool, called)

    async def following(self, iterator: Any) -> Any:
        """See L{Way}."""
        found = await self.call(next, iterator, None)
        if found is None:
            raise StopAsyncIteration
        return found

    def listener(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[..., Any]:
        """See L{Way}."""

        async def there(message: Any) -> Any:
            return await function(message)

        def listen(message: Any) -> Any:
            running = asyncio.run_coroutine_threadsafe(there(message), self._loop)
            return running.result()

        return listen

    def close(self) -> None:
        """See L{Way}."""
        self._pool.shutdown(wait=False)


class ByDeferreds:
    """C{rocketbroker.deferred}: a reactor of Twisted's that runs in the same loop."""

    enter, leave = "__aenter__", "__aexit__"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reactor = AsyncioSelectorReactor(loop)

    def connect(self, names: str, **options: Any) -> deferred.Session:
        """See L{Way}."""
        return deferred.connect(self._reactor, names, **options)

    async def call(
        self, function: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """See L{Way}."""
        waits = function(*args, **options)
        if inspect.iscoroutine(waits):
            waits = Deferred.fromCoroutine(waits)
        assert isinstance(waits, Deferred)
        return await waits.asFuture(self._loop)

    async def following(self, iterator: Any) -> Any:
        """See L{Way}."""
        return await self.call(iterator.__anext__)

    def listener(self, function: Callable[[Any], Awaitable[Any]]) -> Callable[..., Any]:
        """See L{Way}."""

        def listen(message: Any) -> Deferred[Any]:
            running = asyncio.ensure_future(function(message), loop=self._loop)
            return Deferred.fromFuture(running)

        return listen

    def close(self) -> None:
        """See L{Way}."""
        self._reactor.removeAll()


class Awaited:
    """An object of a face, wrapped."""

    def __init__(self, found: Any, way: Way) -> None:
        self._found = found
        self._way = way
        self._pattern = PATTERNS[type(found).__name__]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._found, name)
        if inspect.iscoroutinefunction(getattr(self._pattern, name, None)):
            return partial(self._waiting, value)
        return partial(self._at_once, value) if inspect.ismethod(value) else value

    async def _waiting(
        self, function: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        return self._as(await self._way.call(function, *args, **options))

    def _at_once(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self._as(function(*args, **options))

    def _as(self, value: Any) -> Any:
        """What a scenario is given for it."""
        if isinstance(value, FunctionType):
            return partial(self._decorated, value)
        if isinstance(value, list):
            return [self._as(one) for one in value]
        return Awaited(value, self._way) if type(value).__name__ in PATTERNS else value

    def _decorated(
        self, decorate: Callable[..., Any], function: Callable[..., Any]
    ) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(message: Any) -> Any:
            return function(self._as(message))

        waits = inspect.iscoroutinefunction(function)
        decorate(self._way.listener(wrapped) if waits else wrapped)
        return function

    async def __aenter__(self) -> Awaited:
        await self._way.call(getattr(self._found, self._way.enter))
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._way.call(getattr(self._found, self._way.leave), *problem)

    def __aiter__(self) -> Awaited:
        return self

    async def __anext__(self) -> Any:
        return self._as(await self._way.following(self._found))


@contextmanager
def using(face: str) -> Iterator[Callable[..., Any]]:
    """What connects with a face, in the loop that runs.

    @param face: C{"aio"}, which is as it is, C{"threads"} or C{"deferred"}.
    """
    if face == "aio":
        yield aio.connect
        return
    ways: dict[str, Callable[[asyncio.AbstractEventLoop], Way]]
    ways = {"threads": ByThreads, "deferred": ByDeferreds}
    way = ways[face](asyncio.get_running_loop())
    try:
        yield lambda *args, **options: Awaited(way.connect(*args, **options), way)
    finally:
        way.close()

# -*- test-case-name: tests.client.test_send_stream -*-
"""A stream of sends: messages one after the other, several under way, results in order.

Messages are taken only as fast as they are stored, so their source may be endless. They
go out in their order, and so do those for one queue over one connection; a send that
failed is tried again by itself, and may then come after later ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias, final

from rocketbroker.client.runtime import Future, Runtime
from rocketbroker.client.waits import resolve
from rocketbroker.errors import ClientClosed
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult

#: How many sends of a stream are under way unless the user says otherwise.
IN_FLIGHT: Final = 64

#: Sends a message, and waits until it is stored.
Send: TypeAlias = Callable[[Message], Coroutine[Any, Any, SendResult]]


@final
class _Sending:
    """A message under way, and what has become of it."""

    __slots__ = ("problem", "result")

    def __init__(self) -> None:
        self.result: SendResult | None = None
        self.problem: Exception | None = None


@final
class SendStream:
    """The results of a stream of sends: an iterator, for one reader.

    Whatever fails is raised after the results of the messages before it, and ends the
    stream; what is under way then, or when nobody reads on, may be stored.
    """

    def __init__(
        self, runtime: Runtime, send: Send, messages: Iterable[Message], in_flight: int
    ) -> None:
        self._runtime = runtime
        self._send = send
        self._source: Iterator[Message] = iter(messages)
        self._in_flight = in_flight
        self._under_way: deque[_Sending] = deque()
        self._stored: deque[SendResult] = deque()
        self._waiter: Future[None] | None = None
        self._problem: Exception | None = None

    def __aiter__(self) -> SendStream:
        return self

    async def __anext__(self) -> SendResult:
        if not self._stored:
            self._stored.extend(await self.exchange(self.take()))
        if not self._stored:
            raise StopAsyncIteration
        return self._stored.popleft()

    def take(self) -> list[Message]:
        """The next messages, as many as may go out now.

        It may be called in another thread than the rest. What the source raises is
        kept until what came before is stored.
        """
        taken: list[Message] = []
        try:
            taken.extend(islice(self._source, self._in_flight - len(self._under_way)))
        except Exception as problem:
            self._end(problem)
        return taken

    async def exchange(self, messages: Iterable[Message]) -> list[SendResult]:
        """Send messages, and wait for the oldest that is under way.

        @return: its result and those after it that are there; empty at the end.
        """
        for message in messages:
            sending = _Sending()
            self._under_way.append(sending)
            self._runtime.spawn(self._run(sending, message))
        oldest = self._under_way[0] if self._under_way else None
        if oldest is not None and oldest.result is None and oldest.problem is None:
            self._waiter = self._runtime.future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        results = [*self._results()]
        if not results and self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        return results

    def _results(self) -> Iterator[SendResult]:
        while self._under_way:
            sending = self._under_way[0]
            if sending.problem is not None:
                self._under_way.clear()
                self._end(sending.problem)
            elif sending.result is None:
                return
            else:
                self._under_way.popleft()
                yield sending.result

    def _end(self, problem: Exception) -> None:
        self._source = iter(())
        self._problem = problem

    async def _run(self, sending: _Sending, message: Message) -> None:
        problem: Exception = ClientClosed("the session was closed meanwhile")
        try:
            sending.result = await self._send(message)
        except self._runtime.cancelled:
            raise
        except Exception as failure:
            problem = failure
        finally:
            if sending.result is None:
                sending.problem = problem
            under_way = self._under_way
            if self._waiter is not None and under_way and under_way[0] is sending:
                resolve(self._waiter)

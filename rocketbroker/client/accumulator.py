# -*- test-case-name: tests.client.test_accumulator -*-
"""Gathers messages that are sent one by one into batches.

One request for many messages costs a broker and us a fraction of one for each. Messages
of a topic that go to the same queue, or to any, are gathered for some milliseconds, or
until they are a batch; each send still gets a result of its own. What is gathered and
not stored yet is bounded; beyond that a message goes alone. RocketMQ: autoBatch;
C{docs/facts/client.md} 4.1 and 10.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias, final

from rocketbroker.client.runtime import Future, Runtime, Timer
from rocketbroker.client.settings import ProducerSettings
from rocketbroker.client.waits import Tasks, within
from rocketbroker.errors import ClientClosed, RequestTimeout, RocketbrokerError
from rocketbroker.records import names, properties
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import (
    DELAYS,
    OpenBatch,
    SendRequest,
    SendRequests,
    SendResult,
)
from rocketbroker.routing.topic_view import MessageQueue

#: Properties of messages that go alone: brokers do more with them than store them.
ALONE: Final = (
    *DELAYS,
    properties.TRANSACTION_PREPARED,
    properties.CORRELATION_ID,
    properties.PRIORITY,
)

#: Sends a request to a queue, or to any, within a time; what C{Producer.deliver} does.
Deliver: TypeAlias = Callable[
    [SendRequest, MessageQueue | None, float | None], Awaitable[SendResult]
]


class _Kind(NamedTuple):
    """What the messages of a batch have in common."""

    topic: str
    queue: MessageQueue | None
    timeout: float | None
    waits: str


@final
class _Gathered:
    """Messages of one kind.

    @ivar waiters: who waits for the result of each.
    """

    __slots__ = ("batch", "size", "timer", "waiters")

    def __init__(self, batch: OpenBatch, timer: Timer) -> None:
        self.batch = batch
        self.timer = timer
        self.waiters: list[Future[SendResult]] = []
        self.size = 0


@final
class Accumulator:
    """The accumulator of one producer.

    @ivar size: how many bytes of bodies are gathered and not stored yet.
    """

    def __init__(
        self,
        runtime: Runtime,
        requests: SendRequests,
        settings: ProducerSettings,
        deliver: Deliver,
    ) -> None:
        self._runtime = runtime
        self._requests = requests
        self._settings = settings
        self._deliver = deliver
        self._open: dict[_Kind, _Gathered] = {}
        self._tasks = Tasks(runtime)
        self.size = 0

    def gather(
        self, message: Message, queue: MessageQueue | None, timeout: float | None
    ) -> Future[SendResult] | None:
        """Add a message to a batch; None if it has to go alone.

        @param queue: where to; None for any.
        @return: its result.
        @raise MessageIllegal: it cannot be sent.
        """
        size = len(message.body)
        settings = self._settings
        own = message.properties
        if (
            size >= settings.accumulate_bytes
            or self.size + size > settings.accumulate_total_bytes
            or not self._tasks.open
            or names.is_retry_topic(message.topic)
            or any(name in own for name in ALONE)
        ):
            return None
        kind = _Kind(message.topic, queue, timeout, own[properties.WAIT])
        gathered = self._open.get(kind)
        if gathered is None:
            timer = self._runtime.call_later(
                settings.accumulate_seconds, self._send, kind
            )
            gathered = _Gathered(OpenBatch(self._requests), timer)
            self._open[kind] = gathered
        full = gathered.batch.take(message, settings.accumulate_bytes)
        if full is not None:
            self._spawn(kind, full, gathered)
        waiter: Future[SendResult] = self._runtime.future()
        gathered.waiters.append(waiter)
        gathered.size += size
        self.size += size
        if gathered.size >= settings.accumulate_bytes:
            self._send(kind)
        return waiter

    def _send(self, kind: _Kind) -> None:
        gathered = self._open.pop(kind)
        gathered.timer.cancel()
        request = gathered.batch.close()
        if request is not None:
            self._spawn(kind, request, gathered)

    def _spawn(self, kind: _Kind, request: SendRequest, gathered: _Gathered) -> None:
        """Send what is gathered."""
        waiters, gathered.waiters = gathered.waiters, []
        size, gathered.size = gathered.size, 0
        self._tasks.spawn(self._store(kind, request, waiters, size))

    async def _store(
        self,
        kind: _Kind,
        request: SendRequest,
        waiters: list[Future[SendResult]],
        size: int,
    ) -> None:
        problem: RocketbrokerError = ClientClosed("the session was closed meanwhile")
        try:
            result = await self._deliver(request, kind.queue, kind.timeout)
            for number, waiter in enumerate(waiters):
                if not waiter.done():
                    waiter.set_result(one_of(result, number))
        except RocketbrokerError as failure:
            problem = failure
        finally:
            self.size -= size
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(problem)

    async def close(self, seconds: float) -> None:
        """Send all, and wait until it is stored.

        @param seconds: for so long at most; what is left fails.
        """
        for kind in [*self._open]:
            self._send(kind)
        if len(self._tasks):
            with suppress(RequestTimeout):
                await within(self._runtime, seconds, self._tasks.all_ended())
        await self._tasks.end()


def one_of(result: SendResult, number: int) -> SendResult:
    """The result of one message of a batch.

    @param number: which, from 0.
    """
    ids = result.offset_ids
    return result._replace(
        message_ids=(result.message_ids[number],),
        offset_ids=(ids[number],) if len(ids) == len(result.message_ids) else ids,
        queue_offset=result.queue_offset + number,
    )

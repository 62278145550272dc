# -*- test-case-name: tests.broker.pop.test_peek -*-
"""Request 200052: the messages that a pop would get, without taking them.

Nothing is committed, and no check point is made. Messages of a retry topic come under
its own name.

C{docs/facts/transaction-timer-pop.md} C9; C{docs/facts/broker.md} 20.7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pop.pop_checks import MAX_MESSAGES, PopChecks, PopRoute
from rocketbroker.broker.pop.pop_request import MAX_BYTES, Source
from rocketbroker.broker.pop.pop_state import PopState
from rocketbroker.errors import InvalidParameter
from rocketbroker.records.names import is_retry_topic
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.reads import FOUND, NO_MESSAGE_IN_QUEUE
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.pull import (
    PeekMessageRequestHeader,
    PopMessageResponseHeader,
)

#: So many queues are looked at in one step: half a millisecond.
STEP_QUEUES: Final = 128


@final
class PeekResult:
    """What a peek has found.

    @ivar count: how many messages the records are. C{rest}: how many there are besides.
    """

    __slots__ = ("count", "records", "rest", "size")

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.count = self.size = self.rest = 0


@final
class PeekRequests:
    """The responder of request 200052."""

    def __init__(
        self,
        context: BrokerContext,
        topics: TopicTable,
        state: PopState,
        checks: PopChecks,
        dispatch: Callable[[], None],
    ) -> None:
        """
        @param dispatch: enters what was appended into the queues, now.
        """
        self._store = context.store
        self._checks = checks
        self._topics = topics
        self._retry_topics = state.retry_topics
        self._progress = state.progress
        self._dispatch = dispatch
        self._wall_ms = context.wall_ms
        self._in_thread: InThread = context.in_thread
        self._slices: ISlices = context.slices
        self._turn = 0

    def register(self, table: IResponderTable) -> None:
        """Answer on a port; not on the VIP port, as in RocketMQ."""
        table.register(RequestCode.PEEK_MESSAGE, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Hand out the next messages."""
        header = PeekMessageRequestHeader.complete(request.ext)
        if header.max_msg_nums > MAX_MESSAGES:
            raise InvalidParameter(f"more than {MAX_MESSAGES} messages are asked for")
        group, topic = header.consumer_group, header.topic
        route = self._checks.check(group, topic, header.queue_id, None, "")
        return Deferred.fromCoroutine(self._respond(connection, request, header, route))

    async def _respond(
        self,
        connection: IConnection,
        request: Command,
        header: PeekMessageRequestHeader,
        route: PopRoute,
    ) -> Command:
        """Look at the queues, some at each step."""
        self._dispatch()
        places: list[tuple[IQueue, int]] = []
        group, queue_of = header.consumer_group, self._store.queue
        cold = False

        def look() -> Iterator[None]:
            nonlocal cold
            for name, queue_id in self._sources(header, route):
                queue = queue_of(name, queue_id)
                offset = self._progress.next_offset((group, name, queue_id))
                offset = queue.min_offset if offset == NONE else offset
                places.append((queue, offset))
                cold = cold or self._store.is_cold(queue, offset)
                if len(places) % STEP_QUEUES == 0:
                    yield

        await soon(self._slices, connection, look())
        found = PeekResult()
        if cold:
            await self._in_thread(
                lambda: deque(self._read(places, header.max_msg_nums, found), 0)
            )
        else:
            reads = self._read(places, header.max_msg_nums, found)
            await soon(self._slices, connection, reads)
        return self._answer(found, request, route)

    def _sources(
        self, header: PeekMessageRequestHeader, route: PopRoute
    ) -> list[Source]:
        """The queues in the order in which they are looked at."""
        self._turn += 1
        group, topic, turn = header.consumer_group, header.topic, self._turn
        if header.queue_id >= 0:
            sources = [(topic, header.queue_id)]
        else:
            queues = route.read_queues
            sources = [(topic, (turn + n) % queues) for n in range(queues)]
        if not is_retry_topic(topic):
            retry = self._retry_topics.read(group, topic, turn)
            config = self._topics.config(retry)
            queues = config.read_queue_nums if config else 0
            sources += [(retry, (turn + n) % queues) for n in range(queues)]
        return sources

    def _read(
        self, places: list[tuple[IQueue, int]], most: int, found: PeekResult
    ) -> Iterator[None]:
        """I{Blocking if cold.} Read records, and count those that are left."""
        for number, (queue, offset) in enumerate(places, 1):
            if found.count < most and found.size < MAX_BYTES:
                left = MAX_BYTES - found.size
                result = self._store.read(queue, offset, most - found.count, left, None)
                found.records += result.copied()
                found.count += result.count
                found.size += result.size
                offset = result.next_offset
            found.rest += max(0, queue.max_offset - offset)
            if number % STEP_QUEUES == 0:
                yield

    def _answer(self, found: PeekResult, request: Command, route: PopRoute) -> Command:
        records, count, rest = found.records, found.count, found.rest
        route.counts.messages += count
        route.counts.bytes += sum(map(len, records))
        header = PopMessageResponseHeader(
            pop_time=self._wall_ms(), invisible_time=0, revive_qid=0, rest_num=rest
        )
        code = ResponseCode.SUCCESS if count else ResponseCode.PULL_NOT_FOUND
        remark = FOUND if count else NO_MESSAGE_IN_QUEUE
        body = b"".join(records)
        return response_to(request, code, remark, header.to_ext(), body)

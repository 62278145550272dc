# -*- test-case-name: tests.broker.pop.test_peek -*-
"""Request 200052: the messages that a pop would get, without taking them.

Nothing is committed, and no check point is made. Messages of a retry topic come under
its own name.

C{docs/facts/transaction-timer-pop.md} C9; C{docs/facts/broker.md} 20.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.metadata.offsets import NONE
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pop.pop_checks import MAX_MESSAGES, PopChecks, PopRoute
from rocketbroker.broker.pop.pop_request import MAX_BYTES
from rocketbroker.broker.pop.progress import PopProgress
from rocketbroker.broker.pop.retry_topics import RetryTopics
from rocketbroker.errors import InvalidParameter
from rocketbroker.records.names import is_retry_topic
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.store.reads import FOUND, NO_MESSAGE_IN_QUEUE
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.pull import (
    PeekMessageRequestHeader,
    PopMessageResponseHeader,
)


@final
class Peeking:
    """Answers the request."""

    def __init__(
        self,
        store: IStore,
        checks: PopChecks,
        topics: TopicTable,
        retry_topics: RetryTopics,
        progress: PopProgress,
        dispatch: Callable[[], None],
        wall_ms: Callable[[], int],
        in_thread: InThread,
    ) -> None:
        self._store = store
        self._checks = checks
        self._topics = topics
        self._retry_topics = retry_topics
        self._progress = progress
        self._dispatch = dispatch
        self._wall_ms = wall_ms
        self._in_thread = in_thread
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
        self._dispatch()
        places = self._places(header, route)
        reads = [(queue, offset) for queue, offset in places]
        if any(self._store.is_cold(queue, offset) for queue, offset in reads):
            done = self._in_thread(lambda: self._read(reads, header.max_msg_nums))
        else:
            done = succeed(self._read(reads, header.max_msg_nums))
        answer: Deferred[Command | None] = done.addCallback(
            self._answer, request, route
        )
        return answer

    def _places(
        self, header: PeekMessageRequestHeader, route: PopRoute
    ) -> list[tuple[IQueue, int]]:
        """The queues in the order in which they are looked at, and where."""
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
        found = []
        for name, queue_id in sources:
            queue = self._store.queue(name, queue_id)
            offset = self._progress.next_offset((group, name, queue_id))
            found.append((queue, queue.min_offset if offset == NONE else offset))
        return found

    def _read(
        self, places: list[tuple[IQueue, int]], most: int
    ) -> tuple[list[bytes], int, int]:
        """I{Blocking if cold.} Records, how many they are, and how many are left."""
        records: list[bytes] = []
        count = size = rest = 0
        for queue, offset in places:
            if count < most and size < MAX_BYTES:
                left = MAX_BYTES - size
                result = self._store.read(queue, offset, most - count, left, None)
                records += result.copied()
                count += result.count
                size += result.size
                offset = result.next_offset
            rest += max(0, queue.max_offset - offset)
        return records, count, rest

    def _answer(
        self, found: tuple[list[bytes], int, int], request: Command, route: PopRoute
    ) -> Command:
        records, count, rest = found
        route.counts.messages += count
        route.counts.bytes += sum(map(len, records))
        header = PopMessageResponseHeader(
            pop_time=self._wall_ms(), invisible_time=0, revive_qid=0, rest_num=rest
        )
        code = ResponseCode.SUCCESS if count else ResponseCode.PULL_NOT_FOUND
        remark = FOUND if count else NO_MESSAGE_IN_QUEUE
        body = b"".join(records)
        return response_to(request, code, remark, header.to_ext(), body)

# -*- test-case-name: tests.broker.admin.test_message_queries -*-
"""Requests about single messages, and about the ends of queues.

12 messages by key, 29 offset by time, 30 max offset, 31 min offset, 32 store time of
the oldest message, 33 a message by its offset id. Reads that may wait for the disk run
in a thread.

A queue or topic that does not exist has the offsets 0 and no time, as in RocketMQ;
unlike there, the question does not create it.

Rules: docs/facts/broker.md 14; docs/facts/admin.md; docs/facts/store.md 9 and 10."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.storage.store_scheduler import MAX_INDEXED
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import SystemFailure
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import IQueue, IStore, KeyResult
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    SearchOffsetRequestHeader,
    ViewMessageRequestHeader,
)

#: The field that tells a question for a unique key from one for a key.
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"

#: How many steps of the index may go before the answer. One is enough but for an index
#: that is built again after a crash; of that a question does not see the end.
MAX_STEPS: Final = 4


@final
class MessageQueries:
    """Answers requests 12 and 29 to 33."""

    def __init__(
        self,
        store: IStore,
        topics: TopicTable,
        dispatch: Callable[[], None],
        in_thread: InThread,
        admin_in_thread: InThread,
        max_unique: int,
    ) -> None:
        """
        @param in_thread: runs what clients ask for.
        @param admin_in_thread: runs what administrators ask for.
        @param max_unique: how many messages are looked for by a unique key.
        @param dispatch: enters all appended messages into the queues, now.
        """
        self._store = store
        self._topics = topics
        self._dispatch = dispatch
        self._in_thread = in_thread
        self._admin_in_thread = admin_in_thread
        self._max_unique = max_unique

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._max_unique = settings.store.default_query_max_num

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.QUERY_MESSAGE, self.query)
        table.register(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, self.search_offset)
        table.register(RequestCode.GET_MAX_OFFSET, self.max_offset)
        table.register(RequestCode.GET_MIN_OFFSET, self.min_offset)
        table.register(RequestCode.GET_EARLIEST_MSG_STORETIME, self.earliest_time)
        table.register(RequestCode.VIEW_MESSAGE_BY_ID, self.view_message)

    def _queue(self, topic: str, queue_id: int) -> IQueue | None:
        """The queue if the topic has it; none is made for one that it has not.

        A topic that was given fewer queues still has what is in the others, and whoever
        looks for messages that nobody can pull any more asks for their ends.
        """
        config = self._topics.config(topic)
        if config is None:
            return None
        self._dispatch()
        if 0 <= queue_id < max(config.read_queue_nums, config.write_queue_nums):
            return self._store.queue(topic, queue_id)
        for queue in self._store.queues():
            if (queue.topic, queue.queue_id) == (topic, queue_id):
                return queue
        return None

    def query(self, connection: IConnection, request: Command) -> Answer:
        """The messages with a key or unique key (12)."""
        header = QueryMessageRequestHeader.complete(request.ext, ("topic", "key"))
        ext = request.ext or {}
        most = header.max_num
        if ext.get(UNIQUE_KEY_QUERY, "").lower() == "true":
            most = self._max_unique
        self._dispatch()
        store = self._store

        def find() -> KeyResult:
            with suppress(OSError):
                # Messages that were just sent are found, too; if not, the others are.
                for _ in range(MAX_STEPS):
                    if not store.build_index(MAX_INDEXED):
                        break
            return store.find_by_key(
                header.topic,
                header.key,
                most,
                header.begin_timestamp,
                header.end_timestamp,
            )

        return self._in_thread(find).addCallback(found_answer)

    def max_offset(self, connection: IConnection, request: Command) -> Answer:
        """Where the queue ends (30)."""
        header = GetMaxOffsetRequestHeader.complete(request.ext)
        queue = self._queue(header.topic, header.queue_id)
        return offset_answer(0 if queue is None else queue.max_offset)

    def min_offset(self, connection: IConnection, request: Command) -> Answer:
        """Where the queue begins (31)."""
        header = GetMinOffsetRequestHeader.complete(request.ext)
        queue = self._queue(header.topic, header.queue_id)
        return offset_answer(0 if queue is None else queue.reported_min_offset)

    def search_offset(self, connection: IConnection, request: Command) -> Answer:
        """The first offset stored at or after a time, or the last before it (29)."""
        header = SearchOffsetRequestHeader.complete(request.ext)
        queue = self._queue(header.topic, header.queue_id)
        if queue is None:
            return offset_answer(0)
        store, ms = self._store, header.timestamp
        upper = header.boundary_type == "UPPER"
        found = self._admin_in_thread(lambda: store.offset_by_time(queue, ms, upper))
        return found.addCallback(offset_answer)

    def earliest_time(self, connection: IConnection, request: Command) -> Answer:
        """When the queue's first message was stored, -1 without one (32)."""
        header = GetEarliestMsgStoretimeRequestHeader.complete(request.ext)
        queue = self._queue(header.topic, header.queue_id)
        if queue is None or queue.min_offset >= queue.max_offset:
            return time_answer(-1)
        store, offset = self._store, queue.min_offset
        found = self._admin_in_thread(lambda: store.store_time(queue, offset))
        return found.addCallback(time_answer)

    def view_message(self, connection: IConnection, request: Command) -> Answer:
        """The record at a physical offset (33)."""
        position = ViewMessageRequestHeader.complete(request.ext).offset
        store = self._store
        found = self._in_thread(lambda: store.record_at(position))
        return found.addCallback(record_answer, position)


def offset_answer(offset: int) -> Command:
    """An answer with an offset."""
    return Command(0, {"offset": str(offset)})


def found_answer(result: KeyResult) -> Command:
    """An answer with the messages that were found by a key, if there are any."""
    ext = QueryMessageResponseHeader(
        index_last_update_timestamp=result.index_ms,
        index_last_update_phyoffset=result.index_position,
    ).to_ext()
    if not result.records:
        return Command(
            ResponseCode.QUERY_NOT_FOUND,
            ext,
            remark="can not find message, maybe time range not correct",
        )
    return Command(0, ext, b"".join(result.records))


def time_answer(ms: int) -> Command:
    """An answer with a time."""
    return Command(0, {"timestamp": str(ms)})


def record_answer(record: bytes | None, position: int) -> Command:
    """An answer with a record, if there is one.

    @raise SystemFailure: there is no such message.
    """
    if record is None:
        raise SystemFailure(f"can not find message by the offset, {position}")
    return Command(0, body=record)

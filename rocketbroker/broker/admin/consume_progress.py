# -*- test-case-name: tests.broker.admin.test_consume_progress -*-
"""The progress of groups: request 208 in offsets, 303 in times.

The times at which messages were stored are read in a thread.

Rules: docs/facts/admin.md 2.2 and 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.errors import TopicNotExist
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.admin import (
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)


@final
class ConsumeProgress:
    """Answers requests 208 and 303."""

    def __init__(
        self,
        store: IStore,
        broker_name: str,
        topics: TopicTable,
        offsets: OffsetTable,
        consumers: ConsumerRegistry,
        taken_tps: Callable[[str, str], float],
        dispatch: Callable[[], None],
        wall_ms: Callable[[], int],
        in_thread: InThread,
    ) -> None:
        """
        @param taken_tps: how many messages of a topic a group has got a second, in the
            last minute.
        @param dispatch: enters all appended messages into the queues, now.
        """
        self._store = store
        self._broker_name = broker_name
        self._topics = topics
        self._offsets = offsets
        self._consumers = consumers
        self._taken_tps = taken_tps
        self._dispatch = dispatch
        self._wall_ms = wall_ms
        self._in_thread = in_thread

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.GET_CONSUME_STATS, self.statistics)
        table.register(RequestCode.QUERY_CONSUME_TIME_SPAN, self.times)

    def statistics(self, connection: IConnection, request: Command) -> Answer:
        """Request 208: by queue, where it ends and where the group is in it."""
        header = GetConsumeStatsRequestHeader.complete(request.ext)
        group = header.consumer_group
        names = self._asked(header)
        self._dispatch()
        queues = [queue for name in names for queue in self._queues(name, group)]
        tps = sum(self._taken_tps(group, name) for name in names)
        return self._in_thread(lambda: dict(map(self._entry, queues))).addCallback(
            lambda table: with_body(request, {"consumeTps": tps, "offsetTable": table})
        )

    def _asked(self, header: GetConsumeStatsRequestHeader) -> list[str]:
        """The topics that an answer is about: those listed, the one, or all.

        One that the group is not subscribed to any more while it is online is left out,
        but where a list asks for it.
        """
        group = header.consumer_group
        listed = [name for name in (header.topic_list or "").split(";") if name]
        if listed:
            names = list(dict.fromkeys(listed))
        else:
            topic = header.topic
            names = [topic] if topic else self._offsets.topics_of(group)
            online = self._consumers.group(group)
            if online is not None and online.subscriptions:
                names = [name for name in names if name in online.subscriptions]
        return [name for name in names if self._topics.config(name) is not None]

    def _queues(self, topic: str, group: str) -> list[tuple[IQueue, int, int]]:
        """The queues of a topic, each with the group's offsets in it."""
        config = self._topics.config(topic)
        assert config is not None
        found = []
        for number in range(config.read_queue_nums):
            committed = max(0, self._offsets.query(group, topic, number))
            pulled = self._offsets.pull_offset(group, topic, number)
            queue = self._store.queue(topic, number)
            found.append((queue, committed, max(committed, pulled)))
        return found

    def _entry(
        self, place: tuple[IQueue, int, int]
    ) -> tuple[MessageQueue, dict[str, int]]:
        """I{Blocking.} One queue of request 208."""
        queue, committed, pulled = place
        at = self._store.store_time(queue, committed - 1) if committed > 0 else 0
        return self._key(queue), {
            "brokerOffset": max(0, queue.max_offset),
            "consumerOffset": committed,
            "lastTimestamp": max(0, at),
            "pullOffset": pulled,
        }

    def _key(self, queue: IQueue) -> MessageQueue:
        return MessageQueue(queue.topic, self._broker_name, queue.queue_id)

    def times(self, connection: IConnection, request: Command) -> Answer:
        """Request 303: by queue, when its messages were stored, and the group's."""
        header = QueryConsumeTimeSpanRequestHeader.from_ext(request.ext)
        config = self._topics.config(header.topic)
        if config is None:
            raise TopicNotExist(f"topic[{header.topic}] not exist")
        self._dispatch()
        places = [
            (
                self._store.queue(header.topic, number),
                self._offsets.query(header.group, header.topic, number),
            )
            for number in range(config.write_queue_nums)
        ]
        now = self._wall_ms()
        return self._in_thread(
            lambda: [self._span(queue, offset, now) for queue, offset in places]
        ).addCallback(lambda spans: with_body(request, {"consumeTimeSpanSet": spans}))

    def _span(self, queue: IQueue, committed: int, now: int) -> dict[str, object]:
        """I{Blocking.} One queue of request 303; -1 is no time.

        @ivar committed: the group's offset; negative if it has none.
        """
        store, least, most = self._store, queue.min_offset, queue.max_offset
        begin = store.store_time(queue, least) if least < most else -1
        end = store.store_time(queue, most - 1) if least < most else -1
        consumed = store.store_time(queue, committed - 1) if committed > 0 else begin
        delay = 0
        if max(committed, least) < most:
            delay = max(0, now - store.store_time(queue, max(committed, least)))
        return {
            "consumeTimeStamp": consumed,
            "delayTime": delay,
            "maxTimeStamp": end,
            "messageQueue": self._key(queue),
            "minTimeStamp": begin,
        }

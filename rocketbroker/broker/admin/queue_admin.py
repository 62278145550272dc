# -*- test-case-name: tests.broker.admin.test_queue_admin -*-
"""The entries of a consume queue (321); and the requests about queues and tables in
RocksDB (354, 355), answered as by a broker that has none.

RocketMQ compares queues in files and in RocksDB in the background, and logs what comes
of it; whoever asks is told at once that it is under way. Without RocksDB the log says
so, and an export has nothing to do.

Rules: docs/facts/admin.md 2.2 and 2.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from rocketbroker.broker.admin.queue_tables import list_of
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.sql_filters import Filters
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.errors import SystemFailure
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.headers.admin import (
    CheckRocksdbCqWriteProgressRequestHeader,
    ExportRocksDBConfigToJsonRequestHeader,
    QueryConsumeQueueRequestHeader,
)

#: No answer has more entries: they are 200 KB, written in some milliseconds. Whoever
#: wants the next asks with a higher index.
MAX_ENTRIES: Final = 2000

#: The state of a comparison: the values of RocketMQ's CheckStatus are 0 good, 1 not
#: good, 2 under way, 3 failed.
UNDER_WAY: Final = 2

#: The tables that RocketMQ can keep in RocksDB.
TABLES: Final = ("topics", "subscriptionGroups", "consumerOffsets")


@final
class QueueAdmin:
    """Answers requests 321, 354 and 355."""

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        topics: TopicTable,
        consumers: ConsumerRegistry,
        filters: Filters,
        dispatch: Callable[[], None],
        in_thread: InThread,
    ) -> None:
        """
        @param dispatch: enters all appended messages into the queues, now.
        """
        self._store = store
        self._topics = topics
        self._consumers = consumers
        self._filters = filters
        self._dispatch = dispatch
        self._in_thread = in_thread

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.QUERY_CONSUME_QUEUE, self.entries)
        table.register(RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, self.compare)
        table.register(RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON, self.export)

    def entries(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 321: entries of a queue, and what a group wants of the topic.

        @raise SystemFailure: there is no such queue.
        """
        header = QueryConsumeQueueRequestHeader.from_ext(request.ext)
        topic, number, index = header.topic or "", header.queue_id, header.index
        name = f"{number}@{topic}"
        config = self._topics.config(topic)
        if config is None or not (
            0 <= number < max(config.read_queue_nums, config.write_queue_nums)
        ):
            raise SystemFailure(f"{name} is not exist!")
        self._dispatch()
        queue = self._store.queue(topic, number)
        least, most = queue.min_offset, queue.max_offset
        if not least <= index < most:
            remark = f"Index {index} of {name} is not exist!"
            return succeed(response_to(request, remark=remark))
        value: dict[str, object] = {"maxQueueIndex": most, "minQueueIndex": least}
        if header.consumer_group is not None:
            value.update(self._wanted(header.consumer_group, topic))
        count = min(header.count, MAX_ENTRIES, most - index)
        return self._in_thread(lambda: self._read(queue, index, count)).addCallback(
            lambda found: with_body(request, {**value, "queueData": list_of(found)})
        )

    def _wanted(self, group: str, topic: str) -> dict[str, object]:
        """The subscription of a group to a topic, and its filter by properties."""
        found = self._consumers.subscription(group, topic)
        if found is None:
            return {"filterData": f"{group}@{topic} is not online!"}
        kept = self._filters.get(topic, group)
        return {
            "filterData": dumps(
                None if kept is None else self._filters.filter_json(kept)
            ).decode(),
            "subscriptionData": found.to_json(),
        }

    def _read(self, queue: IQueue, index: int, count: int) -> list[str]:
        """I{Blocking.} The texts of entries of a queue."""
        found: list[str] = []
        while len(found) < count:
            entries = self._store.entries(queue, index + len(found), count - len(found))
            if not entries:
                break
            for position, size, code in entries:
                found.append(
                    f'{{"eval":false,"physicOffset":{position},'
                    f'"physicSize":{size},"tagsCode":{code}}}'
                )
        return found

    def compare(self, connection: IConnection, request: Command) -> Command:
        """Request 354: the queues in files with those in RocksDB, of which there are
        none."""
        header = CheckRocksdbCqWriteProgressRequestHeader.from_ext(request.ext)
        self._log.info(
            "{peer} asks how queues in RocksDB compare, of topic {topic!r:.300}: there "
            "are none, all queues are in files",
            peer=connection.who,
            topic=header.topic,
        )
        return with_body(request, {"checkStatus": UNDER_WAY})

    def export(self, connection: IConnection, request: Command) -> Command:
        """Request 355: the tables in RocksDB to their files, where all of them are.

        @raise SystemFailure: one that nobody knows.
        """
        header = ExportRocksDBConfigToJsonRequestHeader.complete(request.ext)
        known = [table.lower() for table in TABLES]
        for name in header.config_type.split(";"):
            if name and name.lower() not in known:
                raise SystemFailure(f"Unknown config type: {name[:100]}")
        return response_to(request, remark="export done.")

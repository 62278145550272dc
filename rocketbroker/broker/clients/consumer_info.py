# -*- test-case-name: tests.broker.clients.test_consumer_info -*-
"""Members of a group and its offsets, for consumers: requests 38, 14, 15.

Rules: docs/facts/broker.md 16.1."""

from __future__ import annotations

from typing import final

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.errors import (
    InvalidParameter,
    QueryNotFound,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.client import GetConsumerListByGroupRequestHeader
from rocketbroker.wire.headers.pull import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)


@final
class ConsumerInfo:
    """Answers for the members of groups."""

    def __init__(
        self,
        topics: TopicTable,
        groups: GroupTable,
        offsets: OffsetTable,
        consumers: ConsumerRegistry,
        store: IStore,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._consumers = consumers
        self._store = store

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self.list_members)
        table.register(RequestCode.QUERY_CONSUMER_OFFSET, self.query_offset)
        table.register(RequestCode.UPDATE_CONSUMER_OFFSET, self.update_offset)

    def list_members(self, connection: IConnection, request: Command) -> Command:
        """Request 38: the client ids of a group.

        @raise SystemFailure: it has no members.
        """
        header = GetConsumerListByGroupRequestHeader.from_ext(request.ext)
        group = self._consumers.group(header.consumer_group)
        if group is None:
            raise SystemFailure(f"no consumer for this group, {header.consumer_group}")
        self._consumers.rebalances(group, connection)
        return response_to(request, body=group.member_list())

    def query_offset(self, connection: IConnection, request: Command) -> Command:
        """Request 14: where a group goes on in a queue."""
        header = QueryConsumerOffsetRequestHeader.complete(request.ext)
        group, topic = header.consumer_group, header.topic
        queue_id = header.queue_id
        offset = self._offsets.query(group, topic, queue_id)
        if offset < 0:
            if header.set_zero_if_not_found is False:
                raise QueryNotFound(
                    "Not found, do not set to zero, maybe this group boot first"
                )
            if not self._starts_at_zero(topic, queue_id):
                raise QueryNotFound(
                    "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                )
            offset = 0
        return response_to(
            request, ext=QueryConsumerOffsetResponseHeader(offset=offset).to_ext()
        )

    def _starts_at_zero(self, topic: str, queue_id: int) -> bool:
        """Whether a group without an offset begins at the start of the queue.

        It does while the first message is still in memory, and (unlike RocketMQ
        since 5.0) in a queue that has none yet: the client would ask for the greatest
        offset next, and skip what was stored in between.
        """
        config = self._topics.config(topic)
        if config is None or not 0 <= queue_id < config.read_queue_nums:
            return False
        queue = self._store.queue(topic, queue_id)
        if queue.next_offset == 0:
            return True
        return queue.min_offset <= 0 and not self._store.is_cold(queue, 0)

    def update_offset(self, connection: IConnection, request: Command) -> Command:
        """Request 15: how far a group has come in a queue."""
        header = UpdateConsumerOffsetRequestHeader.from_ext(request.ext)
        group, topic = header.consumer_group, header.topic
        if self._groups.config(group) is None:
            raise SubscriptionGroupNotExist(f"Group {group} not exist!")
        if self._topics.config(topic) is None:
            raise TopicNotExist(f"Topic {topic} not exist!")
        for key in header.lacking(request.ext):
            word = "Offset" if key == "commitOffset" else key[0].upper() + key[1:]
            raise InvalidParameter(f"{word} is null, topic is {topic}")
        if self._offsets.has_reset(group, topic, header.queue_id):
            return response_to(request, remark="Offset has been previously reset")
        if self._offsets.query(group, topic, header.queue_id) == NONE:
            self._limit(topic, header.queue_id)
        self._offsets.commit(group, topic, header.queue_id, header.commit_offset)
        return response_to(request)

    def _limit(self, topic: str, queue_id: int) -> None:
        """Offsets are kept for queues there are, or any client could fill the memory.

        @raise InvalidParameter: no such queue.
        """
        config = self._topics.config(topic)
        assert config is not None
        most = max(config.read_queue_nums, config.write_queue_nums)
        if not 0 <= queue_id < most:
            raise InvalidParameter(f"queueId {queue_id} is not one of topic {topic}")

# -*- test-case-name: tests.broker.admin.test_clone_offsets -*-
"""Offsets of one group from those of others: clone (314), correction (308).

Unlike RocketMQ's, request 314 without a topic clones all topics, and request 308 leaves
out the groups in its filter instead of deleting their offsets.

Rules: docs/facts/admin.md 2.2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.errors import SubscriptionGroupNotExist
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import IConnection, IResponderTable, ISlices
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.admin import (
    CloneGroupOffsetRequestHeader,
    QueryCorrectionOffsetHeader,
)

#: How many offsets are copied or compared in one step: a quarter of a millisecond.
STEP_OFFSETS: Final = 256

#: The answer of 308 for a queue in which the compared group is behind all others.
NO_CORRECTION: Final = (1 << 63) - 1


@final
class CloneOffsets:
    """Answers requests 308 and 314."""

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        topics: TopicTable,
        groups: GroupTable,
        offsets: OffsetTable,
        consumers: ConsumerRegistry,
        slices: ISlices,
    ) -> None:
        self._slices = slices
        self._store = store
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._consumers = consumers

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.CLONE_GROUP_OFFSET, self.clone)
        table.register(RequestCode.QUERY_CORRECTION_OFFSET, self.correction)

    def clone(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 314: let a group go on where another one is.

        A topic that the other group is not subscribed to any more while it is online
        is left out, unless the request says that the group is offline.
        """
        header = CloneGroupOffsetRequestHeader.complete(request.ext)
        source, target = header.src_group, header.dest_group
        if self._groups.find(target) is None:
            raise SubscriptionGroupNotExist(f"Group {target} not exist!")
        topic = header.topic
        names = [topic] if topic else self._offsets.topics_of(source)
        online = self._consumers.group(source)
        if online is not None and online.subscriptions and not header.offline:
            names = [name for name in names if name in online.subscriptions]
        names = [name for name in names if self._topics.config(name) is not None]
        done = soon(self._slices, connection, self._copied(source, target, names))

        def answer(_: None) -> Command:
            self._log.info(
                "{peer} copied the offsets of group {source!r:.300} to group "
                "{group!r:.300} in the topics {topics:.1000}",
                peer=connection.who,
                source=source,
                group=target,
                topics=", ".join(names) or "(none)",
            )
            return response_to(request)

        return done.addCallback(answer)

    def _copied(self, source: str, target: str, names: list[str]) -> Iterator[None]:
        """Copy the offsets in these topics, some at each step."""
        count = 0
        for name in names:
            for queue_id, offset in self._offsets.queues(source, name).items():
                self._offsets.commit(target, name, queue_id, offset)
                count += 1
                if count % STEP_OFFSETS == 0:
                    yield

    def correction(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 308: by queue, how far the group is that is the least far.

        Offsets of messages that are gone do not count.
        """
        header = QueryCorrectionOffsetHeader.complete(request.ext, ("compareGroup",))
        topic = header.topic
        left_out = set((header.filter_groups or "").split(","))
        groups = [
            group for group in self._offsets.groups_of(topic) if group not in left_out
        ]
        least: dict[int, int] = {}
        done = soon(self._slices, connection, self._least(topic, groups, least))

        def answer(_: None) -> Command:
            compared = self._offsets.queues(header.compare_group, topic)
            found = {
                queue_id: NO_CORRECTION
                if queue_id in compared and offset > compared[queue_id]
                else offset
                for queue_id, offset in least.items()
            }
            return with_body(request, {"correctionOffsets": found})

        return done.addCallback(answer)

    def _least(
        self, topic: str, groups: list[str], least: dict[int, int]
    ) -> Iterator[None]:
        """Find the least offset in each queue, some groups' queues at each step.

        @param least: gets them.
        """
        bounds: dict[int, int] = {}
        count = 0
        for group in groups:
            for queue_id, offset in self._offsets.queues(group, topic).items():
                if queue_id not in bounds:
                    bounds[queue_id] = self._min_offset(topic, queue_id)
                if offset >= bounds[queue_id]:
                    least[queue_id] = min(offset, least.get(queue_id, offset))
                count += 1
                if count % STEP_OFFSETS == 0:
                    yield

    def _min_offset(self, topic: str, queue_id: int) -> int:
        config = self._topics.config(topic)
        if config is None:
            return 0
        if not 0 <= queue_id < max(config.read_queue_nums, config.write_queue_nums):
            return 0
        return self._store.queue(topic, queue_id).min_offset

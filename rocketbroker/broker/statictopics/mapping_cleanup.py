# -*- test-case-name: tests.broker.statictopics.test_mapping_cleanup -*-
"""The removal of what mappings of static topics do not need any more.

In the hours of deleteWhen, as files are removed:

  - Of a queue that is led here, the first item goes when its messages are gone; the
    broker that had them says so.
  - A queue that was led here, and has moved on from the broker that it moved to, goes
    when its leader of now has it at the same epoch: nobody asks for it here.

C{docs/facts/broker.md} 23.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.registration.name_server_api import successful
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.broker.statictopics.other_brokers import OtherBrokers
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.hours import parse_hours
from rocketbroker.errors import RocketbrokerError
from rocketbroker.routing.static_topics import leading_brokers
from rocketbroker.wire.bodies.mappings import TopicQueueMappingDetail
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.topics import TopicConfigAndQueueMapping
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fields import object_of

if TYPE_CHECKING:
    from rocketbroker.wire.bodies.statistics import TopicStatsTable


@final
class MappingCleanup:
    """Looks at one static topic after the other.

    @ivar removed_items: how many parts of queues went.
    @ivar removed_queues: how many queues went.
    """

    _log = Logger()

    def __init__(
        self,
        mappings: QueueMappings,
        others: OtherBrokers,
        routes: RouteCache,
        settings: BrokerSettings,
        wall_ms: Callable[[], int],
        hour_of: Callable[[int], int],
    ) -> None:
        """
        @param wall_ms: the time of day.
        @param hour_of: which hour of the day such a time is.
        """
        self.removed_items = 0
        self.removed_queues = 0
        self._mappings = mappings
        self._others = others
        self._routes = routes
        self._wall_ms = wall_ms
        self._hour_of = hour_of
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._hours = parse_hours(settings.store.delete_when)

    def look(self) -> Deferred[None]:
        """Clean all mappings, if it is the hour for it."""
        is_time = self._hour_of(self._wall_ms()) in self._hours
        if not self._mappings.details or not is_time:
            return succeed(None)
        return Deferred.fromCoroutine(self._clean())

    async def _clean(self) -> None:
        for topic in list(self._mappings.details):
            for find in (self._items_gone, self._queues_gone):
                detail = self._mappings.details.get(topic)
                if detail is None:
                    break
                try:
                    cleaned = await find(detail)
                except RocketbrokerError as error:
                    self._log.warn(
                        "The mapping of topic {topic} is not cleaned now: {error}",
                        topic=topic,
                        error=error,
                    )
                    continue
                # An operator may have changed it meanwhile.
                if cleaned != detail and self._mappings.details.get(topic) is detail:
                    self._note(detail, cleaned)
                    self._mappings.replace(cleaned)

    def _note(
        self, before: TopicQueueMappingDetail, after: TopicQueueMappingDetail
    ) -> None:
        for number, items in before.hosted_queues.items():
            left = after.hosted_queues.get(number)
            if left is None:
                self.removed_queues += 1
            else:
                self.removed_items += len(items) - len(left)
        self._log.info(
            "The mapping of topic {topic} is cleaned: {before} is {after} now.",
            topic=before.topic,
            before=before.to_json(),
            after=after.to_json(),
        )

    async def _items_gone(
        self, detail: TopicQueueMappingDetail
    ) -> TopicQueueMappingDetail:
        """A mapping without first items whose messages are gone.

        @raise RocketbrokerError: a broker does not answer.
        """
        queues = dict(detail.hosted_queues)
        tables: dict[str, TopicStatsTable] = {}
        for number, items in detail.hosted_queues.items():
            if len(items) < 2 or not detail.leads(number) or not items[1].is_decided:
                continue
            first = items[0]
            table = tables.get(first.bname)
            if table is None:
                table = tables[first.bname] = await self._statistics(
                    detail.topic, first.bname
                )
            key = MessageQueue(detail.topic, first.bname, first.queue_id)
            found = table.offset_table.get(key)
            if found is not None and found.max_offset in (found.min_offset, 0):
                queues[number] = items[1:]
        return attrs.evolve(detail, hosted_queues=queues)

    async def _statistics(self, topic: str, name: str) -> TopicStatsTable:
        from rocketbroker.wire.bodies.statistics import TopicStatsTable

        code = RequestCode.GET_TOPIC_STATS_INFO
        answer = await self._others.ask(topic, name, code, {"topic": topic})
        return object_of(successful(answer).body, TopicStatsTable.from_json)

    async def _queues_gone(
        self, detail: TopicQueueMappingDetail
    ) -> TopicQueueMappingDetail:
        """A mapping without queues whose readers do not come here any more.

        @raise RocketbrokerError: a broker does not answer.
        """
        queues = dict(detail.hosted_queues)
        led = {
            number: items[-1].bname
            for number, items in queues.items()
            if items and not detail.leads(number)
        }
        leaders = await self._leaders(detail.topic) if led else {}
        known: dict[str, TopicQueueMappingDetail | None] = {}
        for number, noted in led.items():
            leader = leaders.get(number)
            if leader is None or leader == noted:
                continue
            if leader not in known:
                known[leader] = await self._mapping(detail.topic, leader)
            theirs = known[leader]
            if (
                theirs is not None
                and (theirs.total_queues, theirs.epoch)
                == (detail.total_queues, detail.epoch)
                and theirs.bname == leader
                and theirs.leads(number)
            ):
                del queues[number]
        return attrs.evolve(detail, hosted_queues=queues)

    async def _leaders(self, topic: str) -> dict[int, str]:
        """Which broker leads which queue, as name servers know."""
        self._routes.forget(topic)
        route = await self._routes.route(topic)
        infos = {} if route is None else route.topic_queue_mapping_by_broker or {}
        return leading_brokers(infos)

    async def _mapping(self, topic: str, name: str) -> TopicQueueMappingDetail | None:
        code, ext = RequestCode.GET_TOPIC_CONFIG, {"topic": topic}
        answer = successful(await self._others.ask(topic, name, code, ext, lo=True))
        return object_of(answer.body, TopicConfigAndQueueMapping.from_json).mapping

# -*- test-case-name: tests.nameserver.test_routes -*-
"""Requests of clients and operators: routes, clusters, lists of topics.

Requests: C{docs/facts/namesrv.md} 10.1; the two forms of a route's JSON:
C{docs/facts/remoting.md} 16.2 and 16.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

import attrs

from rocketbroker.errors import SystemFailure, TopicNotExist
from rocketbroker.nameserver.keyvalues import ORDER_TOPIC_CONFIG, KeyValues
from rocketbroker.nameserver.settings import RunningSettings
from rocketbroker.remoting.interfaces import IConnection, IResponderTable, Responder
from rocketbroker.routing import lookup
from rocketbroker.routing.table import RouteTable
from rocketbroker.routing.zones import in_zone
from rocketbroker.wire.bodies.routes import (
    BrokerMemberGroup,
    GetBrokerMemberGroupResponseBody,
)
from rocketbroker.wire.bodies.topics import TopicList
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import dumps, dumps_standard
from rocketbroker.wire.headers.namesrv import (
    GetBrokerMemberGroupRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
)

#: The ordinal of V4_9_4: from it on clients read standard JSON.
STANDARD_JSON_VERSION: Final = 401

#: The page that RocketMQ names to clients that ask for an unknown topic.
_FAQ: Final = (
    "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)


def _topic_list(
    request: Command, topics: Sequence[str], address: str | None = None
) -> Command:
    """A TopicList as the answer."""
    answer = TopicList(topic_list=list(topics), broker_addr=address)
    return response_to(request, body=dumps(answer))


@final
@attrs.define(eq=False)
class Routes:
    """Answers questions to the table.

    @ivar table: the routes.
    @ivar found: how many routes were answered.
    @ivar not_found: how many requested routes do not exist.
    """

    table: RouteTable
    _settings: RunningSettings
    _keyvalues: KeyValues
    _now_ms: Callable[[], int]
    _started_ms: int = attrs.field(init=False)
    found: int = attrs.field(init=False, default=0)
    not_found: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._started_ms = self._now_ms()

    def register(self, table: IResponderTable) -> None:
        """Answer requests 105, 106, 901, 206, 224, 304 and 311 to 313."""
        table.register(RequestCode.GET_ROUTEINFO_BY_TOPIC, self.route)
        table.register(RequestCode.GET_BROKER_CLUSTER_INFO, self.clusters)
        table.register(RequestCode.GET_BROKER_MEMBER_GROUP, self.members)
        table.register(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, self.all_topics)
        table.register(RequestCode.GET_TOPICS_BY_CLUSTER, self.topics_of_cluster)
        table.register(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, self.system_names)
        for code, query in (
            (RequestCode.GET_UNIT_TOPIC_LIST, lookup.unit_topics),
            (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, lookup.unit_subscription_topics),
            (
                RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
                lookup.only_unit_subscription_topics,
            ),
        ):
            table.register(code, self._lister(query))

    @property
    def is_ready(self) -> bool:
        """Whether routes are answered; after a start, brokers may register first."""
        options = self._settings.options
        wait_ms = options.wait_seconds_for_service * 1000
        return not options.need_wait_for_service or (
            self._now_ms() - self._started_ms >= wait_ms
        )

    def route(self, connection: IConnection, request: Command) -> Command:
        """The route of a topic (105)."""
        if not self.is_ready:
            raise SystemFailure("name server not ready")
        options = self._settings.options
        ext = request.ext or {}
        header = GetRouteInfoRequestHeader.from_ext(ext)
        topic = ext.get("topic")
        found = lookup.route(
            self.table, topic or "", acting_master=options.support_acting_master
        )
        if found is None:
            self.not_found += 1
            raise TopicNotExist(
                "No topic route info in name server for the topic: "
                f"{'null' if topic is None else topic}{_FAQ}"
            )
        self.found += 1
        if options.order_message_enable:
            ordered = self._keyvalues.namespace(ORDER_TOPIC_CONFIG) or {}
            found = attrs.evolve(found, order_topic_conf=ordered.get(header.topic))
        zone = ext.get("__ZONE_NAME", "")
        if ext.get("__ZONE_MODE", "").lower() == "true" and zone.strip():
            body = dumps(in_zone(found, zone))
        elif (
            request.version >= STANDARD_JSON_VERSION or header.accept_standard_json_only
        ):
            body = dumps_standard(found)
        else:
            body = dumps(found)
        return response_to(request, body=body)

    def clusters(self, connection: IConnection, request: Command) -> Command:
        """All brokers (106)."""
        return response_to(request, body=dumps(lookup.cluster_info(self.table)))

    def members(self, connection: IConnection, request: Command) -> Command:
        """The brokers that share a name (901); the cluster is only repeated."""
        header = GetBrokerMemberGroupRequestHeader.from_ext(request.ext)
        group = BrokerMemberGroup(
            cluster=header.cluster_name,
            broker_name=header.broker_name,
            broker_addrs=lookup.members(self.table, header.broker_name),
        )
        answer = GetBrokerMemberGroupResponseBody(broker_member_group=group)
        return response_to(request, body=dumps(answer))

    def all_topics(self, connection: IConnection, request: Command) -> Command:
        """All topics (206)."""
        if not self._settings.options.enable_all_topic_list:
            raise SystemFailure("disable")
        return _topic_list(request, list(self.table.topics))

    def topics_of_cluster(self, connection: IConnection, request: Command) -> Command:
        """The topics of a cluster (224)."""
        self._check_lists()
        header = GetTopicsByClusterRequestHeader.from_ext(request.ext)
        return _topic_list(
            request, lookup.topics_of_cluster(self.table, header.cluster)
        )

    def system_names(self, connection: IConnection, request: Command) -> Command:
        """The names of clusters and brokers (304)."""
        names, address = lookup.system_names(self.table)
        return _topic_list(request, names, address)

    def _lister(self, query: Callable[[RouteTable], list[str]]) -> Responder:
        """A responder for one of the lists by flag (311, 312, 313)."""

        def answer(connection: IConnection, request: Command) -> Command:
            self._check_lists()
            return _topic_list(request, query(self.table))

        return answer

    def _check_lists(self) -> None:
        if not self._settings.options.enable_topic_list:
            raise SystemFailure("disable")

# -*- test-case-name: tests.nameserver.test_routes -*-
"""Requests of clients and operators: routes, clusters, lists of topics.

Requests: C{docs/facts/namesrv.md} 10.1; the two forms of a route's JSON:
C{docs/facts/remoting.md} 16.2 and 16.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

import attrs

from rocketbroker.errors import FAQ, SystemFailure, TopicNotExist
from rocketbroker.nameserver.keyvalues import ORDER_TOPIC_CONFIG, KeyValues
from rocketbroker.nameserver.settings import RunningSettings
from rocketbroker.remoting.cooperative_tasks import done, result_of
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
    Responder,
)
from rocketbroker.routing import lookup
from rocketbroker.routing.table import RouteTable
from rocketbroker.routing.zones import in_zone
from rocketbroker.wire.bodies.routes import (
    BrokerData,
    BrokerMemberGroup,
    ClusterInfo,
    GetBrokerMemberGroupResponseBody,
)
from rocketbroker.wire.bodies.topics import TopicList
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.namesrv import (
    GetBrokerMemberGroupRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
)
from rocketbroker.wire.json_writer import dumping, dumps, dumps_standard
from rocketbroker.wire.steps import Steps

#: The ordinal of V4_9_4: from it on clients read standard JSON.
STANDARD_JSON_VERSION: Final = 401

#: Routes of up to so many brokers, and lists of topics where there are no more, are
#: answered in one step: it takes two milliseconds.
FEW_BROKERS: Final = 64
FEW_TOPICS: Final = 1000

#: How an IPv4 address begins at a port that listens to IPv6, too.
MAPPED: Final = "::ffff:"


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
    _slices: ISlices
    _started_ms: int = attrs.field(init=False)
    found: int = attrs.field(init=False, default=0)
    not_found: int = attrs.field(init=False, default=0)
    _here: frozenset[str] = attrs.field(init=False, default=frozenset())

    def __attrs_post_init__(self) -> None:
        self._started_ms = self._now_ms()

    def follow_askers(self, addresses: Iterable[str]) -> None:
        """Tell each asker that brokers are where it found this name server.

        They are on the same machine, which may have several addresses, other ones
        tomorrow, and none that all can reach. Who asks by IPv6 is told what they
        registered, and so are brokers themselves: they compare it with their own.

        @param addresses: what these brokers register.
        """
        self._here = frozenset(addresses)

    def _tell(self, connection: IConnection, brokers: Iterable[BrokerData]) -> None:
        """Put the asker's address in the place of those registered."""
        if not self._here or self.table.of_channel(connection) is not None:
            return
        host = connection.local_host().removeprefix(MAPPED)
        if not host or ":" in host:
            return
        for broker in brokers:
            addresses = broker.broker_addrs
            for number, address in addresses.items():
                if address in self._here:
                    addresses[number] = f"{host}:{address.rpartition(':')[2]}"

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

    def route(self, connection: IConnection, request: Command) -> Answer:
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
                f"{'null' if topic is None else topic}{FAQ}"
            )
        self.found += 1
        self._tell(connection, found.broker_datas)
        if options.order_message_enable:
            ordered = self._keyvalues.namespace(ORDER_TOPIC_CONFIG)
            found = attrs.evolve(found, order_topic_conf=ordered.get(header.topic))
        zone = ext.get("__ZONE_NAME", "")
        standard = False
        if ext.get("__ZONE_MODE", "").lower() == "true" and zone.strip():
            found = in_zone(found, zone)
        else:
            standard = request.version >= STANDARD_JSON_VERSION or bool(
                header.accept_standard_json_only
            )
        shown = found
        few = len(shown.queue_datas) <= FEW_BROKERS and not shown.filter_server_table
        return self._answer(connection, request, lambda: shown, few, standard)

    def clusters(self, connection: IConnection, request: Command) -> Answer:
        """All brokers (106)."""
        few = len(self.table.groups) <= FEW_BROKERS

        def info() -> ClusterInfo:
            found = lookup.cluster_info(self.table)
            self._tell(connection, found.broker_addr_table.values())
            return found

        return self._answer(connection, request, info, few)

    def members(self, connection: IConnection, request: Command) -> Answer:
        """The brokers that share a name (901); the cluster is only repeated."""
        header = GetBrokerMemberGroupRequestHeader.from_ext(request.ext)
        found = BrokerData(
            cluster=header.cluster_name,
            broker_name=header.broker_name,
            broker_addrs=lookup.members(self.table, header.broker_name),
        )
        self._tell(connection, [found])
        group = BrokerMemberGroup(
            cluster=found.cluster,
            broker_name=found.broker_name,
            broker_addrs=found.broker_addrs,
        )
        answer = GetBrokerMemberGroupResponseBody(broker_member_group=group)
        return response_to(request, body=dumps(answer))

    def all_topics(self, connection: IConnection, request: Command) -> Answer:
        """All topics (206)."""
        if not self._settings.options.enable_all_topic_list:
            raise SystemFailure("disable")
        return self._answer(
            connection,
            request,
            lambda: TopicList(topic_list=list(self.table.topics)),
            len(self.table.topics) <= FEW_TOPICS,
        )

    def topics_of_cluster(self, connection: IConnection, request: Command) -> Answer:
        """The topics of a cluster (224)."""
        self._check_lists()
        header = GetTopicsByClusterRequestHeader.from_ext(request.ext)
        found = lookup.topics_of_cluster(self.table, header.cluster)
        return self._topics(connection, request, found)

    def system_names(self, connection: IConnection, request: Command) -> Answer:
        """The names of clusters and brokers (304)."""
        names, address = lookup.system_names(self.table)
        few = len(names) <= FEW_TOPICS
        answer = TopicList(topic_list=names, broker_addr=address)
        return self._answer(connection, request, lambda: answer, few)

    def _lister(self, query: Callable[[RouteTable], Steps[list[str]]]) -> Responder:
        """A responder for one of the lists by flag (311, 312, 313)."""

        def answer(connection: IConnection, request: Command) -> Answer:
            self._check_lists()
            return self._topics(connection, request, query(self.table))

        return answer

    def _topics(
        self, connection: IConnection, request: Command, found: Steps[list[str]]
    ) -> Answer:
        """A list of topics as the answer."""

        def answered() -> Steps[Command]:
            topics = yield from found
            answer = TopicList(topic_list=topics)
            return (yield from _written(request, lambda: answer))

        few = len(self.table.topics) <= FEW_TOPICS
        return done(self._slices, connection, answered(), few)

    def _answer(
        self,
        connection: IConnection,
        request: Command,
        value: Callable[[], object],
        few: bool,
        standard: bool = False,
    ) -> Answer:
        """The answer with such a body, at once if it says little.

        @param value: makes the body when its turn has come.
        @param standard: whether it is standard JSON.
        """
        if few:
            # The usual case, without the cost of steps.
            return response_to(
                request, body=dumps_standard(value()) if standard else dumps(value())
            )
        steps = _written(request, value, standard)
        return result_of(self._slices, connection, steps)

    def _check_lists(self) -> None:
        if not self._settings.options.enable_topic_list:
            raise SystemFailure("disable")


def _written(
    request: Command, value: Callable[[], object], standard: bool = False
) -> Steps[Command]:
    """The answer with such a body."""
    body = yield from dumping(value(), standard)
    return response_to(request, body=body)

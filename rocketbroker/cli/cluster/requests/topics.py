# -*- test-case-name: tests.cli.cluster.verbs.test_topic -*-
"""Requests about topics: 17, 21, 202, 206, 215, 216, 300, 351, and 102 for their order.

See C{docs/facts/admin.md} 2.1 and 5.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.errors import (
    QueryNotFound,
    RequestCodeNotSupported,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records import names
from rocketbroker.wire.bodies.statistics import TopicStatsTable
from rocketbroker.wire.bodies.topics import (
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fields import Fields, object_of
from rocketbroker.wire.headers.admin import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rocketbroker.wire.headers.namesrv import (
    DeleteKVConfigRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
)

#: Where name servers keep the queues of ordered topics.
ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"

#: How many topics are asked for at once.
IN_FLIGHT: Final = 64

#: Of L{kind_of}: what people do not ask for.
HIDDEN_KINDS: Final = ("system", "retry", "dlq")

#: The attribute with the type of a topic's messages.
MESSAGE_TYPE: Final = "message.type"


def all_configs(cluster: Cluster, broker: Broker) -> dict[str, TopicConfig]:
    """The settings of all topics on a broker."""
    table = cluster.read(
        broker.address,
        RequestCode.GET_ALL_TOPIC_CONFIG,
        TopicConfigAndMappingSerializeWrapper.from_json,
    )
    return table.topic_config_table


def config_of(cluster: Cluster, broker: Broker, topic: str) -> TopicConfig | None:
    """The settings of a topic on a broker; None if it does not have it."""
    header = GetTopicConfigRequestHeader(topic=topic)
    try:
        return cluster.read(
            broker.address,
            RequestCode.GET_TOPIC_CONFIG,
            TopicConfig.from_json,
            header,
        )
    except TopicNotExist:
        return None
    except RequestCodeNotSupported:  # before 5.0
        return all_configs(cluster, broker).get(topic)


def put(
    cluster: Cluster,
    broker: Broker,
    config: TopicConfig,
    changes: Mapping[str, str | None] = {},
) -> None:
    """Create a topic, or change it.

    @param config: its settings, but for the attributes.
    @param changes: attributes to set, and those to remove as None.
    @raise InvalidParameter: the broker does not take that name or these settings.
    """
    attributes = ",".join(
        f"-{name}" if value is None else f"+{name}={value}"
        for name, value in changes.items()
    )
    header = CreateTopicRequestHeader(
        topic=config.topic_name,
        default_topic=names.AUTO_CREATE_TOPIC,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type,
        topic_sys_flag=config.topic_sys_flag,
        order=config.order,
        attributes=attributes or None,
    )
    cluster.ask(broker.address, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def delete(cluster: Cluster, broker: Broker, topic: str) -> None:
    """Delete a topic with its messages from a broker.

    RocketMQ 5 without timers deletes it, and then fails without a word.
    """
    header = DeleteTopicRequestHeader(topic=topic)
    try:
        cluster.ask(broker.address, RequestCode.DELETE_TOPIC_IN_BROKER, header)
    except SystemFailure as problem:
        if problem.remark or config_of(cluster, broker, topic) is not None:
            raise


def forget(
    cluster: Cluster, name_server: str, topic: str, cluster_name: str | None = None
) -> None:
    """Let a name server forget a topic, before brokers tell it.

    @param cluster_name: on the brokers of one cluster; else everywhere, with its order.
    """
    cluster.ask(
        name_server,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster_name),
    )
    if cluster_name is None:
        header = DeleteKVConfigRequestHeader(namespace=ORDER_NAMESPACE, key=topic)
        with contextlib.suppress(QueryNotFound):
            cluster.ask(name_server, RequestCode.DELETE_KV_CONFIG, header)


def statistics(cluster: Cluster, broker: Broker, topic: str) -> TopicStatsTable:
    """The queues of a topic on a broker: offsets and last times.

    @raise TopicNotExist: the broker does not have it.
    """
    return cluster.read(
        broker.address,
        RequestCode.GET_TOPIC_STATS_INFO,
        TopicStatsTable.from_json,
        GetTopicStatsInfoRequestHeader(topic=topic),
    )


def statistics_of(
    cluster: Cluster, broker: Broker, names: Iterable[str]
) -> Iterator[tuple[str, TopicStatsTable]]:
    """The queues of many topics on a broker, with some requests under way at a time.

    A topic that the broker does not have, or does not tell, is left out.
    """
    client = cluster.client
    connection = client.connections.to(broker.address)
    code = RequestCode.GET_TOPIC_STATS_INFO
    left = [*names]
    while left:
        some, left = left[:IN_FLIGHT], left[IN_FLIGHT:]
        tickets = [
            connection.submit(
                Command(code, GetTopicStatsInfoRequestHeader(topic=name).to_ext()),
                client.settings.seconds,
                hold=True,
            )
            for name in some
        ]
        for name, ticket in zip(some, tickets, strict=True):
            answer = connection.collect(ticket)
            if answer.code == ResponseCode.SUCCESS:
                yield name, object_of(answer.body, TopicStatsTable.from_json)


def groups_of(cluster: Cluster, broker: Broker, topic: str) -> list[str]:
    """The groups that consume a topic, or have, on a broker; sorted.

    RocketMQ 5.3.3 names the topic itself among them, which is left out.
    """
    found = cluster.read(
        broker.address,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
        lambda body: Fields(body, "a list of groups").strings("groupList"),
        QueryTopicConsumeByWhoRequestHeader(topic=topic),
    )
    return sorted({*found} - {topic})


def kind_of(topic: str, own_names: set[str], config: TopicConfig | None) -> str:
    """What a topic is for: C{system}, C{retry}, C{dlq}, or the type of its messages.

    @param own_names: of clusters and brokers: each has a topic of its name.
    """
    if names.is_retry_topic(topic):
        return "retry"
    if names.is_dlq_topic(topic):
        return "dlq"
    is_reply = topic.removesuffix(names.REPLY_SUFFIX) in own_names
    if names.is_system_topic(topic) or topic in own_names or is_reply:
        return "system"
    kind = config.attributes.get(MESSAGE_TYPE, "") if config else ""
    return kind.lower() or "normal"


def own_names(cluster: Cluster) -> set[str]:
    """The names of clusters and brokers."""
    info = cluster.info()
    return {*info.cluster_addr_table, *info.broker_addr_table}

# -*- test-case-name: tests.cli.cluster.verbs.test_static_topic -*-
"""Requests about static topics: 351 with C{lo}, 513, and 202 for where queues end.

See C{docs/facts/admin.md} 2.1 and 6.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.requests.topics import statistics
from rocketbroker.errors import TopicNotExist
from rocketbroker.records.names import AUTO_CREATE_TOPIC
from rocketbroker.routing.static_plan import StaticPlan, mapping_of
from rocketbroker.wire.bodies.topics import TopicConfigAndQueueMapping
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.admin import (
    CreateTopicRequestHeader,
    GetTopicConfigRequestHeader,
)


def table_of(
    cluster: Cluster, masters: Iterable[Broker], topic: str
) -> dict[str, TopicConfigAndQueueMapping]:
    """What these brokers have of a topic, by name; those without it are left out."""
    found = {}
    header = GetTopicConfigRequestHeader(topic=topic, lo=True)
    for master in masters:
        try:
            found[master.name] = cluster.read(
                master.address,
                RequestCode.GET_TOPIC_CONFIG,
                TopicConfigAndQueueMapping.from_json,
                header,
            )
        except TopicNotExist:
            continue
    return found


def tell(cluster: Cluster, master: Broker, wanted: TopicConfigAndQueueMapping) -> None:
    """Give a broker its part of a static topic.

    @raise SystemFailure: it has a newer one.
    """
    config = wanted.config
    header = CreateTopicRequestHeader(
        topic=config.topic_name,
        default_topic=AUTO_CREATE_TOPIC,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type,
        topic_sys_flag=config.topic_sys_flag,
        order=config.order,
        force=False,
    )
    code = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
    cluster.ask(master.address, code, header, mapping_of(wanted).to_json())


def carry_out(cluster: Cluster, masters: dict[str, Broker], plan: StaticPlan) -> None:
    """Tell all brokers of a plan, in an order in which no message is lost.

    The takers can be written before the givers refuse to be; where the takers' queues
    begin is decided when the givers' have ended.

    @param masters: by name, all that the plan is about.
    """
    topic = next(iter(plan.brokers.values())).config.topic_name
    for name in (*plan.takers, *plan.givers):
        tell(cluster, masters[name], plan.brokers[name])
    ends = {
        (queue.broker_name, queue.queue_id): offsets.max_offset
        for name in plan.givers
        for queue, offsets in statistics(
            cluster, masters[name], topic
        ).offset_table.items()
    }
    plan = plan.decided(ends)
    for name in dict.fromkeys((*plan.takers, *plan.brokers)):
        tell(cluster, masters[name], plan.brokers[name])

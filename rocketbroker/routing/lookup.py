# -*- test-case-name: tests.routing.test_lookup -*-
"""Questions to the route table: C{docs/facts/namesrv.md} 8, 9 and 10.

Answers are copies: a responder that changes them does not change the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from rocketbroker.routing.registration import MASTER, Group
from rocketbroker.routing.table import WRITE, RouteTable, few_at_a_time
from rocketbroker.wire.bodies.routes import (
    BrokerData,
    ClusterInfo,
    QueueData,
    TopicRouteData,
)
from rocketbroker.wire.steps import Steps

#: Topics by which brokers of older releases ask for the true members of their group.
MEMBER_TOPIC_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"

#: Bits of topicSysFlag.
UNIT: Final = 1
UNIT_SUBSCRIPTION: Final = 2


def broker_data(group: Group) -> BrokerData:
    """A group as routes show it."""
    return BrokerData(
        cluster=group.cluster,
        broker_name=group.name,
        broker_addrs=dict(group.addresses),
        zone_name=group.zone,
        enable_acting_master=group.acting_master,
    )


def route(
    table: RouteTable, topic: str, acting_master: bool = False
) -> TopicRouteData | None:
    """Where a topic is.

    @param acting_master: whether a slave is shown as master where its group allows it
        and has none (setting supportActingMaster).
    @return: None if no broker has it.
    """
    groups = table.groups
    there = {
        name: queues
        for name, queues in table.topics.get(topic, {}).items()
        if name in groups
    }
    if not there:
        return None
    for name, queues in there.items():
        if groups[name].is_losing_write:
            there[name] = attrs.evolve(queues, perm=queues.perm & ~WRITE)
    brokers = [broker_data(groups[name]) for name in there]
    filters: dict[str, list[str]] = {}
    if table.filter_servers:
        for broker in brokers:
            for address in broker.broker_addrs.values():
                servers = table.filter_servers.get((broker.cluster, address))
                if servers is not None:
                    filters[address] = list(servers)
    if acting_master and not topic.startswith(MEMBER_TOPIC_PREFIX):
        for broker in brokers:
            _let_slave_act(broker, there[broker.broker_name])
    mappings = table.mappings.get(topic)
    return TopicRouteData(
        queue_datas=list(there.values()),
        broker_datas=brokers,
        filter_server_table=filters,
        topic_queue_mapping_by_broker=None if mappings is None else dict(mappings),
    )


def _let_slave_act(broker: BrokerData, queues: QueueData) -> None:
    """Show the least slave of a group without master as its master.

    Only if the queues cannot be written: that the master is gone is known by now.
    """
    addresses = broker.broker_addrs
    if (
        addresses
        and MASTER not in addresses
        and broker.enable_acting_master
        and not queues.perm & WRITE
    ):
        addresses[MASTER] = addresses.pop(min(addresses))


def cluster_info(table: RouteTable) -> ClusterInfo:
    """All brokers and clusters."""
    return ClusterInfo(
        broker_addr_table={
            name: broker_data(group) for name, group in table.groups.items()
        },
        cluster_addr_table={
            cluster: list(names) for cluster, names in table.clusters.items()
        },
    )


def members(table: RouteTable, name: str) -> dict[int, str]:
    """The true ids and addresses of a group, none if it is not known."""
    group = table.groups.get(name)
    return {} if group is None else dict(group.addresses)


def topics_of_cluster(table: RouteTable, cluster: str) -> Steps[list[str]]:
    """The topics of which a cluster's brokers have something."""
    names = table.clusters.get(cluster, {}).keys()
    return _topics(table, lambda there: not names.isdisjoint(there))


def system_names(table: RouteTable) -> tuple[list[str], str | None]:
    """The names of all clusters and brokers, and the address of some broker.

    Each is also a topic on the brokers.
    """
    names = dict.fromkeys(table.clusters)
    for brokers in table.clusters.values():
        names.update(brokers)
    for group in table.groups.values():
        for address in group.addresses.values():
            return list(names), address
    return list(names), None


def _topics(
    table: RouteTable, matches: Callable[[Mapping[str, QueueData]], bool]
) -> Steps[list[str]]:
    """The topics whose queues match."""
    found: list[str] = []
    for some in few_at_a_time(list(table.topics)):
        for topic in some:
            there = table.topics.get(topic)
            if there and matches(there):
                found.append(topic)
        yield
    return found


def _flagged(table: RouteTable, matches: Callable[[int], bool]) -> Steps[list[str]]:
    """Topics whose first broker's flag matches."""
    return _topics(
        table, lambda there: matches(next(iter(there.values())).topic_sys_flag)
    )


def unit_topics(table: RouteTable) -> Steps[list[str]]:
    """Topics of units."""
    return _flagged(table, lambda flag: bool(flag & UNIT))


def unit_subscription_topics(table: RouteTable) -> Steps[list[str]]:
    """Topics with subscriptions of units."""
    return _flagged(table, lambda flag: bool(flag & UNIT_SUBSCRIPTION))


def only_unit_subscription_topics(table: RouteTable) -> Steps[list[str]]:
    """Topics with subscriptions of units that are not themselves of a unit."""
    return _flagged(
        table, lambda flag: bool(flag & UNIT_SUBSCRIPTION) and not flag & UNIT
    )

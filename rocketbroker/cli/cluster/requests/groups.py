# -*- test-case-name: tests.cli.cluster.verbs.test_group -*-
"""Requests about consumer groups: 200, 201, 203, 207, 208, 222, 307, 317.

See C{docs/facts/admin.md} 2.2, 2.3 and 5. Request 352 is not used: a broker that makes
groups by itself makes the one that is asked for.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.errors import BrokerError, SystemFailure
from rocketbroker.wire.bodies.clients import ConsumerConnection
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.statistics import ConsumeStats
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.fields import Fields, read_long
from rocketbroker.wire.headers.admin import (
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    ResetOffsetRequestHeader,
)

#: How long a broker may take to tell where all groups are.
ALL_SECONDS: Final = 50.0


def all_configs(cluster: Cluster, broker: Broker) -> dict[str, SubscriptionGroupConfig]:
    """The settings of all groups on a broker."""
    return cluster.read(
        broker.address,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        lambda body: Fields(body, "a table of groups").table(
            "subscriptionGroupTable", SubscriptionGroupConfig.from_json
        ),
    )


def put(cluster: Cluster, broker: Broker, config: SubscriptionGroupConfig) -> None:
    """Create a group, or change it."""
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    cluster.ask(broker.address, code, body=config)


def delete(cluster: Cluster, broker: Broker, group: str, clean_offset: bool) -> None:
    """Delete a group; one that is not there, too, succeeds.

    @param clean_offset: with its offsets; brokers of 4.9 have another name for it.
    """
    header = DeleteSubscriptionGroupRequestHeader(
        group_name=group, clean_offset=clean_offset
    )
    extra = {"removeOffset": "true"} if clean_offset else {}
    code = RequestCode.DELETE_SUBSCRIPTIONGROUP
    cluster.ask(broker.address, code, header, extra=extra)


def members(cluster: Cluster, broker: Broker, group: str) -> ConsumerConnection | None:
    """The connected members of a group; None if there are none."""
    try:
        return cluster.read(
            broker.address,
            RequestCode.GET_CONSUMER_CONNECTION_LIST,
            ConsumerConnection.from_json,
            GetConsumerConnectionListRequestHeader(consumer_group=group),
        )
    except BrokerError as problem:
        if problem.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return None
        raise


def progress(
    cluster: Cluster, broker: Broker, group: str, topic: str | None = None
) -> ConsumeStats:
    """Where a group is in the queues of one topic, or of all that it consumes.

    Empty for a group that is not there.
    """
    return cluster.read(
        broker.address,
        RequestCode.GET_CONSUME_STATS,
        ConsumeStats.from_json,
        GetConsumeStatsRequestHeader(consumer_group=group, topic=topic),
    )


def all_progress(cluster: Cluster, broker: Broker) -> dict[str, list[ConsumeStats]]:
    """Where all groups are in the queues that they consume on a broker (317); that may
    take as long as RocketMQ's tool lets it."""

    def read(body: object) -> dict[str, list[ConsumeStats]]:
        found: dict[str, list[ConsumeStats]] = {}
        for table in Fields(body, "the progress of all groups").items(
            "consumeStatsList"
        ):
            fields = Fields(table, "the progress of a group")
            assert isinstance(table, dict)
            for group in map(str, table):
                found[group] = fields.beans(group, ConsumeStats.from_json)
        return found

    header = GetConsumeStatsInBrokerHeader(is_order=False)
    code = RequestCode.GET_BROKER_CONSUME_STATS
    return cluster.read(broker.address, code, read, header, ALL_SECONDS)


def running_info(
    cluster: Cluster,
    broker: Broker,
    group: str,
    client_id: str,
    jstack: bool = False,
) -> Fields:
    """What a member says about itself; the broker passes the question on.

    @param jstack: with the stacks of its threads.
    @raise SystemFailure: it is not connected to that broker, or too old.
    """
    header = GetConsumerRunningInfoRequestHeader(
        consumer_group=group, client_id=client_id, jstack_enable=jstack
    )
    return cluster.read(
        broker.address,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        lambda body: Fields(body, "what a consumer says"),
        header,
    )


def queues_of_member(
    cluster: Cluster, broker: Broker, group: str, client_id: str
) -> list[MessageQueue]:
    """The queues that a member consumes; none if it does not say.

    @raise RequestTimeout: it does not answer: the broker waits for it for 10 s.
    """
    try:
        info = running_info(cluster, broker, group, client_id)
    except BrokerError:
        return []
    tables = (info.members("mqTable"), info.members("mqPopTable"))
    return [MessageQueue.from_json(key) for table in tables for key in table]


def reset(
    cluster: Cluster,
    broker: Broker,
    group: str,
    topic: str,
    timestamp: int,
    queue_id: int = -1,
    offset: int | None = None,
) -> dict[MessageQueue, int] | None:
    """Let a group go on elsewhere, with its members online or not.

    @param timestamp: at the first message stored then or later, in ms; -1: at the end.
    @param queue_id: in one queue; -1 in all.
    @param offset: with C{queue_id}, at that offset.
    @return: where, by queue; None if the broker tells only members, and there are none,
        or a queue has no offset of the group yet: before 5.0, or with
        C{useServerSideResetOffset=false} (C{docs/facts/broker.md} 21, 220). Then the
        offsets can be committed, and members told by another reset.
    @raise SubscriptionGroupNotExist: there is no such group.
    """
    header = ResetOffsetRequestHeader(
        group=group,
        topic=topic,
        queue_id=queue_id,
        offset=-1 if offset is None else offset,
        timestamp=timestamp,
        is_force=True,
    )
    code = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    try:
        table = cluster.read(
            broker.address,
            code,
            lambda body: Fields(body, "offsets after a reset").members("offsetTable"),
            header,
        )
    except SystemFailure as problem:
        if "not online" in problem.remark or "not exist" in problem.remark:
            return None
        raise
    except BrokerError as problem:
        if problem.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return None
        raise
    return {MessageQueue.from_json(key): read_long(n) for key, n in table.items()}

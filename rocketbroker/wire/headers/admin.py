# -*- test-case-name: tests.wire.headers.test_headers -*-
"""Headers of the administration of topics, groups and clients.

Codes 17, 18, 21, 26, 202 to 223, 300 to 321, 343 to 355. Fields:
C{docs/facts/remoting.md} 20.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.errors import SystemFailure
from rocketbroker.wire.headers.header import (
    Header,
    Int,
    Long,
    RpcRequestHeader,
    TopicRequestHeader,
)

#: The topic filter types that Java knows by name.
TOPIC_FILTER_TYPES: Final = ("SINGLE_TAG", "MULTI_TAG")


class CreateTopicRequestHeader(TopicRequestHeader, kw_only=True):
    """UPDATE_AND_CREATE_TOPIC (17), UPDATE_AND_CREATE_STATIC_TOPIC (513)."""

    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    topic_sys_flag: Int | None = None
    order: bool
    attributes: str | None = None
    force: bool | None = None

    def check(self) -> None:
        """Refuse a filter type that has no name."""
        if self.topic_filter_type not in TOPIC_FILTER_TYPES:
            raise SystemFailure(
                f"topicFilterType = [{self.topic_filter_type[:100]}] value invalid"
            )


class GetBrokerConfigResponseHeader(Header, kw_only=True):
    """The answer to GET_BROKER_CONFIG (26)."""

    version: str


class GetTopicStatsInfoRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_TOPIC_STATS_INFO (202)."""

    topic: str


class GetConsumerConnectionListRequestHeader(RpcRequestHeader, kw_only=True):
    """GET_CONSUMER_CONNECTION_LIST (203)."""

    consumer_group: str


class GetProducerConnectionListRequestHeader(RpcRequestHeader, kw_only=True):
    """GET_PRODUCER_CONNECTION_LIST (204)."""

    producer_group: str


class DeleteSubscriptionGroupRequestHeader(RpcRequestHeader, kw_only=True):
    """DELETE_SUBSCRIPTIONGROUP (207)."""

    group_name: str
    clean_offset: bool = False


class GetConsumeStatsRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_CONSUME_STATS (208); the list is separated by semicolons."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class DeleteTopicRequestHeader(TopicRequestHeader, kw_only=True):
    """DELETE_TOPIC_IN_BROKER (215)."""

    topic: str


class ResetOffsetRequestHeader(TopicRequestHeader, kw_only=True):
    """RESET_CONSUMER_CLIENT_OFFSET (220), INVOKE_BROKER_TO_RESET_OFFSET (222)."""

    group: str
    topic: str
    queue_id: Int = -1
    offset: Long | None = None
    timestamp: Long
    is_force: bool


class GetConsumerStatusRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_CONSUMER_STATUS_FROM_CLIENT (221), ..._TO_GET_CONSUMER_STATUS (223)."""

    topic: str
    group: str
    client_addr: str | None = None


class QueryTopicConsumeByWhoRequestHeader(TopicRequestHeader, kw_only=True):
    """QUERY_TOPIC_CONSUME_BY_WHO (300)."""

    topic: str


class QueryConsumeTimeSpanRequestHeader(TopicRequestHeader, kw_only=True):
    """QUERY_CONSUME_TIME_SPAN (303)."""

    topic: str
    group: str


class GetConsumerRunningInfoRequestHeader(RpcRequestHeader, kw_only=True):
    """GET_CONSUMER_RUNNING_INFO (307)."""

    consumer_group: str
    client_id: str
    jstack_enable: bool | None = None


class QueryCorrectionOffsetHeader(TopicRequestHeader, kw_only=True):
    """QUERY_CORRECTION_OFFSET (308); the list is separated by commas."""

    filter_groups: str | None = None
    compare_group: str
    topic: str


class ConsumeMessageDirectlyResultRequestHeader(TopicRequestHeader, kw_only=True):
    """CONSUME_MESSAGE_DIRECTLY (309)."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None


class CloneGroupOffsetRequestHeader(RpcRequestHeader, kw_only=True):
    """CLONE_GROUP_OFFSET (314)."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class GetConsumeStatsInBrokerHeader(Header, kw_only=True):
    """GET_BROKER_CONSUME_STATS (317)."""

    is_order: bool


class QueryConsumeQueueRequestHeader(TopicRequestHeader, kw_only=True):
    """QUERY_CONSUME_QUEUE (321)."""

    topic: str | None = None
    queue_id: Int = 0
    index: Long = 0
    count: Int = 0
    consumer_group: str | None = None


class ResumeCheckHalfMessageRequestHeader(Header, kw_only=True):
    """RESUME_CHECK_HALF_MESSAGE (323); the id is that of a place in the log."""

    topic: str | None = None
    msg_id: str | None = None


class QueryTopicsByConsumerRequestHeader(RpcRequestHeader, kw_only=True):
    """QUERY_TOPICS_BY_CONSUMER (343)."""

    group: str


class QuerySubscriptionByConsumerRequestHeader(TopicRequestHeader, kw_only=True):
    """QUERY_SUBSCRIPTION_BY_CONSUMER (345)."""

    group: str
    topic: str | None = None


class UpdateGroupForbiddenRequestHeader(TopicRequestHeader, kw_only=True):
    """UPDATE_AND_GET_GROUP_FORBIDDEN (353).

    @ivar readable: C{None} asks, and changes nothing.
    """

    group: str
    topic: str
    readable: bool | None = None


class ViewBrokerStatsDataRequestHeader(Header, kw_only=True):
    """VIEW_BROKER_STATS_DATA (315)."""

    stats_name: str
    stats_key: str


class CheckRocksdbCqWriteProgressRequestHeader(Header, kw_only=True):
    """CHECK_ROCKSDB_CQ_WRITE_PROGRESS (354)."""

    topic: str
    check_store_time: Long = 0


class ExportRocksDBConfigToJsonRequestHeader(Header, kw_only=True):
    """EXPORT_ROCKSDB_CONFIG_TO_JSON (355); the list is separated by semicolons."""

    config_type: str


class GetTopicConfigRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_TOPIC_CONFIG (351)."""

    topic: str


class GetSubscriptionGroupConfigRequestHeader(RpcRequestHeader, kw_only=True):
    """GET_SUBSCRIPTIONGROUP_CONFIG (352)."""

    group: str

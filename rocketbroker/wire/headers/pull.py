# -*- test-case-name: tests.wire.headers.test_headers -*-
"""Headers of pulling, popping, looking up, and of offsets.

Codes 11, 361; 12, 33; 14, 15; 29 to 32; 200050 to 200055. Fields:
C{docs/facts/remoting.md} 20.
"""

from __future__ import annotations

from typing import ClassVar, Final

from rocketbroker.wire.headers.header import (
    Boundary,
    Header,
    Int,
    Long,
    TopicRequestHeader,
)

# Bits of C{sys_flag} of a pull.
COMMIT: Final = 1
SUSPEND: Final = 2
SUBSCRIPTION: Final = 4


class PullMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """PULL_MESSAGE (11), LITE_PULL_MESSAGE (361)."""

    fast: ClassVar[bool] = True

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int
    commit_offset: Long
    suspend_timeout_millis: Long
    subscription: str | None = None
    sub_version: Long
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    request_source: Int | None = None
    proxy_froward_client_id: str | None = None


class PullMessageResponseHeader(Header, kw_only=True):
    """The answer to PULL_MESSAGE (11), whatever its code."""

    fast: ClassVar[bool] = True

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None


class QueryMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """QUERY_MESSAGE (12); the field C{_UNIQUE_KEY_QUERY} travels beside it."""

    topic: str
    key: str
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long


class QueryMessageResponseHeader(Header, kw_only=True):
    """The answer to QUERY_MESSAGE (12)."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


class ViewMessageRequestHeader(Header, kw_only=True):
    """VIEW_MESSAGE_BY_ID (33)."""

    topic: str | None = None
    offset: Long


class QueryConsumerOffsetRequestHeader(TopicRequestHeader, kw_only=True):
    """QUERY_CONSUMER_OFFSET (14)."""

    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: bool | None = None


class QueryConsumerOffsetResponseHeader(Header, kw_only=True):
    """The answer to QUERY_CONSUMER_OFFSET (14)."""

    offset: Long


class UpdateConsumerOffsetRequestHeader(TopicRequestHeader, kw_only=True):
    """UPDATE_CONSUMER_OFFSET (15)."""

    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long


class SearchOffsetRequestHeader(TopicRequestHeader, kw_only=True):
    """SEARCH_OFFSET_BY_TIMESTAMP (29)."""

    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: Boundary = "LOWER"


class GetMaxOffsetRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_MAX_OFFSET (30).

    @ivar committed: the end of the dispatched messages; false: of the stored ones.
    """

    topic: str
    queue_id: Int
    committed: bool = True


class GetMinOffsetRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_MIN_OFFSET (31)."""

    topic: str
    queue_id: Int


class GetEarliestMsgStoretimeRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_EARLIEST_MSG_STORETIME (32)."""

    topic: str
    queue_id: Int


class PopMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """POP_MESSAGE (200050)."""

    consumer_group: str
    topic: str
    queue_id: Int
    max_msg_nums: Int
    invisible_time: Long
    poll_time: Long
    born_time: Long
    init_mode: Int
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None


class PopMessageResponseHeader(Header, kw_only=True):
    """The answer to POP_MESSAGE (200050) and PEEK_MESSAGE (200052)."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """ACK_MESSAGE (200051)."""

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long


class PeekMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """PEEK_MESSAGE (200052)."""

    topic: str
    queue_id: Int
    max_msg_nums: Int
    consumer_group: str


class ChangeInvisibleTimeRequestHeader(TopicRequestHeader, kw_only=True):
    """CHANGE_MESSAGE_INVISIBLETIME (200053)."""

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    invisible_time: Long


class ChangeInvisibleTimeResponseHeader(Header, kw_only=True):
    """The answer to CHANGE_MESSAGE_INVISIBLETIME (200053)."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int


class NotificationRequestHeader(TopicRequestHeader, kw_only=True):
    """NOTIFICATION (200054)."""

    consumer_group: str
    topic: str
    queue_id: Int
    poll_time: Long
    born_time: Long
    order: bool | None = None
    attempt_id: str | None = None


class NotificationResponseHeader(Header, kw_only=True):
    """The answer to NOTIFICATION (200054)."""

    has_msg: bool
    polling_full: bool


class PollingInfoRequestHeader(TopicRequestHeader, kw_only=True):
    """POLLING_INFO (200055)."""

    consumer_group: str
    topic: str
    queue_id: Int


class PollingInfoResponseHeader(Header, kw_only=True):
    """The answer to POLLING_INFO (200055)."""

    polling_num: Int

# -*- test-case-name: tests.wire.headers.test_headers -*-
"""Headers of sending: 10, 310, 320, 36, 37, 39, 323 to 326, 370.

Fields: C{docs/facts/remoting.md} 5.1 and 20.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from rocketbroker.errors import SystemFailure
from rocketbroker.wire.headers.header import (
    Int,
    Long,
    RpcRequestHeader,
    TopicRequestHeader,
)

#: The outcomes of a transaction (EndTransactionRequestHeader.commit_or_rollback).
TRANSACTION_UNKNOWN: Final = 0
TRANSACTION_COMMIT: Final = 8
TRANSACTION_ROLLBACK: Final = 12


class SendMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """SEND_MESSAGE (10), SEND_REPLY_MESSAGE (324)."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool | None = None
    batch: bool | None = None
    max_reconsume_times: Int | None = None


class RecallMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """RECALL_MESSAGE (370)."""

    producer_group: str | None = None
    topic: str
    recall_handle: str


class SendMessageRequestHeaderV2(
    TopicRequestHeader,
    kw_only=True,
    rename={
        "producer_group": "a",
        "topic": "b",
        "default_topic": "c",
        "default_topic_queue_nums": "d",
        "queue_id": "e",
        "sys_flag": "f",
        "born_timestamp": "g",
        "flag": "h",
        "properties": "i",
        "reconsume_times": "j",
        "unit_mode": "k",
        "max_reconsume_times": "l",
        "batch": "m",
        "broker_name": "n",
    },
):
    """SEND_MESSAGE_V2 (310), SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE_V2 (325).

    The same as L{SendMessageRequestHeader} under names of one letter, for speed; there
    is no C{o}.
    """

    fast: ClassVar[bool] = True

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int | None = None
    batch: bool | None = None
    broker_name: str | None = None

    def to_v1(self) -> SendMessageRequestHeader:
        """The same under the long names; the broker's name becomes C{bname}."""
        fields = msgspec.structs.asdict(self)
        fields["bname"] = fields.pop("broker_name")
        return SendMessageRequestHeader(**fields)


class ReplyMessageRequestHeader(TopicRequestHeader, kw_only=True):
    """PUSH_REPLY_MESSAGE_TO_CLIENT (326), from the broker."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool | None = None
    born_host: str
    store_host: str
    store_timestamp: Long


class ConsumerSendMsgBackRequestHeader(RpcRequestHeader, kw_only=True):
    """CONSUMER_SEND_MSG_BACK (36)."""

    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = None
    max_reconsume_times: Int | None = None


class EndTransactionRequestHeader(RpcRequestHeader, kw_only=True):
    """END_TRANSACTION (37), always oneway."""

    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: Int
    from_transaction_check: bool | None = None
    msg_id: str
    transaction_id: str | None = None

    def check(self) -> None:
        """Refuse any outcome but the three that there are."""
        if self.commit_or_rollback not in (
            TRANSACTION_UNKNOWN,
            TRANSACTION_COMMIT,
            TRANSACTION_ROLLBACK,
        ):
            raise SystemFailure(
                f"commitOrRollback is none of 0, 8, 12: {self.commit_or_rollback}"
            )


class CheckTransactionStateRequestHeader(RpcRequestHeader, kw_only=True):
    """CHECK_TRANSACTION_STATE (39), from the broker, oneway."""

    topic: str | None = None
    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None

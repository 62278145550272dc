# -*- test-case-name: tests.wire.bodies.test_groups -*-
"""The settings of a consumer group, in bodies and files.

The shape: C{docs/facts/broker.md} 11.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Self

import attrs
import msgspec

from rocketbroker.wire.fields import MAX_KEPT_DEPTH, Fields, Int32, Int64
from rocketbroker.wire.json_reader import depth_of
from rocketbroker.wire.json_writer import dumps, member_text

#: The retry policy of a new group.
CUSTOMIZED: Final[Mapping[object, object]] = {"type": "CUSTOMIZED"}


def _customized() -> dict[object, object]:
    return {**CUSTOMIZED}


class _WrittenGroup(
    msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, gc=False
):
    """A group exactly as brokers write it: tables have twenty thousand of them."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    group_retry_policy: dict[object, object]
    broker_id: Int64 = 0
    which_broker_when_consume_slowly: Int64 = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: Int32 = 0
    consume_timeout_minute: Int32 = 15
    attributes: dict[str, str] = {}


@attrs.frozen(kw_only=True)
class SubscriptionGroupConfig:
    """The settings of one group; the defaults are Java's.

    @ivar group_retry_policy: as it was read.
    @ivar subscription_data_set: as it was read; None if there is none.
    """

    group_name: str = ""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: dict[object, object] = attrs.field(factory=_customized)
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: list[object] | None = None
    attributes: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no group.
        """
        try:
            written = msgspec.convert(value, _WrittenGroup)
        except msgspec.ValidationError:
            return cls._from_fields(Fields(value, "a group"))
        if depth_of(written.group_retry_policy) > MAX_KEPT_DEPTH:
            return cls._from_fields(Fields(value, "a group"))
        return cls(**msgspec.structs.asdict(written))

    @classmethod
    def _from_fields(cls, fields: Fields) -> Self:
        """Read what stands there in another form, as leniently as RocketMQ does."""
        subscriptions = fields.kept("subscriptionDataSet")
        policy = fields.kept("groupRetryPolicy")
        return cls(
            group_name=fields.text("groupName") or "",
            consume_enable=fields.boolean("consumeEnable", True),
            consume_from_min_enable=fields.boolean("consumeFromMinEnable", True),
            consume_broadcast_enable=fields.boolean("consumeBroadcastEnable", True),
            consume_message_orderly=fields.boolean("consumeMessageOrderly"),
            retry_queue_nums=fields.integer("retryQueueNums", 1),
            retry_max_times=fields.integer("retryMaxTimes", 16),
            group_retry_policy=policy if isinstance(policy, dict) else _customized(),
            broker_id=fields.integer("brokerId", bits=64),
            which_broker_when_consume_slowly=fields.integer(
                "whichBrokerWhenConsumeSlowly", 1, bits=64
            ),
            notify_consumer_ids_changed_enable=fields.boolean(
                "notifyConsumerIdsChangedEnable", True
            ),
            group_sys_flag=fields.integer("groupSysFlag"),
            consume_timeout_minute=fields.integer("consumeTimeoutMinute", 15),
            subscription_data_set=(
                subscriptions if isinstance(subscriptions, list) else None
            ),
            attributes=fields.texts("attributes"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "attributes": self.attributes,
            "brokerId": self.broker_id,
            "consumeBroadcastEnable": self.consume_broadcast_enable,
            "consumeEnable": self.consume_enable,
            "consumeFromMinEnable": self.consume_from_min_enable,
            "consumeMessageOrderly": self.consume_message_orderly,
            "consumeTimeoutMinute": self.consume_timeout_minute,
            "groupName": self.group_name,
            "groupRetryPolicy": self.group_retry_policy,
            "groupSysFlag": self.group_sys_flag,
            "notifyConsumerIdsChangedEnable": self.notify_consumer_ids_changed_enable,
            "retryMaxTimes": self.retry_max_times,
            "retryQueueNums": self.retry_queue_nums,
            "subscriptionDataSet": self.subscription_data_set,
            "whichBrokerWhenConsumeSlowly": self.which_broker_when_consume_slowly,
        }

    @cached_property
    def member(self) -> str:
        """The group as a member of the JSON object of all groups; made once."""
        if self.subscription_data_set is None and self.group_retry_policy == CUSTOMIZED:
            return member_text(self.group_name, self.to_json())
        # These are kept as they were read, and may hold anything.
        return dumps({self.group_name: self}).decode()[1:-1]

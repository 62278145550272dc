# -*- test-case-name: tests.wire.bodies.test_groups -*-
"""Consumer groups as bodies and files: settings, members, offsets.

Shapes: the broker's sheet, sections 11.8 and 26; the remoting sheet, section 16.7.
"""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.fields import Fields, read_long


def _customized() -> dict[object, object]:
    return {"type": "CUSTOMIZED"}


@attrs.frozen(kw_only=True)
class SubscriptionGroupConfig:
    """What a broker knows of one group; the defaults are Java's.

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
        fields = Fields(value, "a group")
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
        """The JSON form."""
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


def _forbidden(value: object) -> dict[str, int]:
    return Fields({"topics": value}, "forbidden topics").table("topics", read_long)


@attrs.frozen(kw_only=True)
class SubscriptionGroupWrapper:
    """A table of groups: C{subscriptionGroup.json} and the answer of 201.

    @ivar forbidden_table: of a group, topic to bits; bit 2 forbids pulling.
    """

    subscription_group_table: dict[str, SubscriptionGroupConfig] = attrs.field(
        factory=dict
    )
    forbidden_table: dict[str, dict[str, int]] = attrs.field(factory=dict)
    data_version: DataVersion = attrs.field(factory=DataVersion)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such table.
        """
        fields = Fields(value, "a table of groups")
        return cls(
            subscription_group_table=fields.table(
                "subscriptionGroupTable", SubscriptionGroupConfig.from_json
            ),
            forbidden_table=fields.table("forbiddenTable", _forbidden),
            data_version=DataVersion.from_json(fields.value("dataVersion")),
        )

    def to_json(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "dataVersion": self.data_version,
            "forbiddenTable": self.forbidden_table,
            "subscriptionGroupTable": self.subscription_group_table,
        }


@attrs.frozen(kw_only=True)
class GetConsumerListByGroupResponseBody:
    """The answer of 38: the client ids of a group's members."""

    consumer_id_list: list[str] = attrs.field(factory=list)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such list.
        """
        fields = Fields(value, "a list of consumers")
        return cls(consumer_id_list=fields.strings("consumerIdList"))

    def to_json(self) -> dict[str, object]:
        """The JSON form."""
        return {"consumerIdList": self.consumer_id_list}


def _offsets(value: object) -> dict[int, int]:
    return Fields({"queues": value}, "offsets").numbered("queues", read_long)


@attrs.frozen(kw_only=True)
class ConsumerOffsetSerializeWrapper:
    """Committed offsets: C{consumerOffset.json} and the answer of 43.

    @ivar offset_table: C{topic@group} to queue to offset.
    @ivar data_version: None if it is not told.
    """

    offset_table: dict[str, dict[int, int]] = attrs.field(factory=dict)
    data_version: DataVersion | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such table.
        """
        fields = Fields(value, "a table of offsets")
        version = fields.value("dataVersion")
        return cls(
            offset_table=fields.table("offsetTable", _offsets),
            data_version=None if version is None else DataVersion.from_json(version),
        )

    def to_json(self) -> dict[str, object]:
        """The JSON form."""
        return {"dataVersion": self.data_version, "offsetTable": self.offset_table}

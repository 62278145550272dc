# -*- test-case-name: tests.wire.bodies.test_routes -*-
"""Routes of topics, and brokers: answers of name servers.

Shapes: C{docs/facts/namesrv.md} 11. C{dumps} writes RocketMQ's own form of
them, C{dumps_standard} the standard one.
"""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.fields import Fields, read_text, read_texts


@attrs.frozen(kw_only=True)
class QueueData:
    """The queues of a topic at one broker name.

    @ivar perm: bits: 4 read, 2 write, 1 inherit, 8 priority.
    """

    broker_name: str
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "queue data")
        return cls(
            broker_name=fields.text("brokerName") or "",
            read_queue_nums=fields.integer("readQueueNums"),
            write_queue_nums=fields.integer("writeQueueNums"),
            perm=fields.integer("perm"),
            topic_sys_flag=fields.integer("topicSysFlag"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "brokerName": self.broker_name,
            "perm": self.perm,
            "readQueueNums": self.read_queue_nums,
            "topicSysFlag": self.topic_sys_flag,
            "writeQueueNums": self.write_queue_nums,
        }


@attrs.frozen(kw_only=True)
class BrokerData:
    """The addresses of the brokers that share a name.

    @ivar broker_addrs: broker id to address; 0 is the master.
    """

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = attrs.field(factory=dict)
    zone_name: str | None = None
    enable_acting_master: bool = False

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "broker data")
        return cls(
            cluster=fields.text("cluster") or "",
            broker_name=fields.text("brokerName") or "",
            broker_addrs=fields.numbered("brokerAddrs", read_text),
            zone_name=fields.text("zoneName"),
            enable_acting_master=fields.boolean("enableActingMaster"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "brokerAddrs": self.broker_addrs,
            "brokerName": self.broker_name,
            "cluster": self.cluster,
            "enableActingMaster": self.enable_acting_master,
            "zoneName": self.zone_name,
        }


@attrs.frozen(kw_only=True)
class TopicRouteData:
    """The answer of 105 and the body of 217.

    @ivar order_topic_conf: of an ordered topic, C{broker:queues;broker:queues}.
    @ivar filter_server_table: addresses of filter servers by broker address.
    """

    queue_datas: list[QueueData] = attrs.field(factory=list)
    broker_datas: list[BrokerData] = attrs.field(factory=list)
    filter_server_table: dict[str, list[str]] = attrs.field(factory=dict)
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, TopicQueueMappingInfo] | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no route.
        """
        fields = Fields(value, "a route")
        mappings = None
        if fields.value("topicQueueMappingByBroker") is not None:
            mappings = fields.table(
                "topicQueueMappingByBroker", TopicQueueMappingInfo.from_json
            )
        return cls(
            queue_datas=fields.beans("queueDatas", QueueData.from_json),
            broker_datas=fields.beans("brokerDatas", BrokerData.from_json),
            filter_server_table=fields.table("filterServerTable", read_texts),
            order_topic_conf=fields.text("orderTopicConf"),
            topic_queue_mapping_by_broker=mappings,
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "brokerDatas": self.broker_datas,
            "filterServerTable": self.filter_server_table,
            "orderTopicConf": self.order_topic_conf,
            "queueDatas": self.queue_datas,
            "topicQueueMappingByBroker": self.topic_queue_mapping_by_broker,
        }


@attrs.frozen(kw_only=True)
class ClusterInfo:
    """The answer of 106: brokers by name, broker names by cluster."""

    broker_addr_table: dict[str, BrokerData] = attrs.field(factory=dict)
    cluster_addr_table: dict[str, list[str]] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "cluster info")
        return cls(
            broker_addr_table=fields.table("brokerAddrTable", BrokerData.from_json),
            cluster_addr_table=fields.table("clusterAddrTable", read_texts),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "brokerAddrTable": self.broker_addr_table,
            "clusterAddrTable": self.cluster_addr_table,
        }


@attrs.frozen(kw_only=True)
class BrokerMemberGroup:
    """The brokers that share a name, as they see themselves."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a member group")
        return cls(
            cluster=fields.text("cluster") or "",
            broker_name=fields.text("brokerName") or "",
            broker_addrs=fields.numbered("brokerAddrs", read_text),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "brokerAddrs": self.broker_addrs,
            "brokerName": self.broker_name,
            "cluster": self.cluster,
        }


@attrs.frozen(kw_only=True)
class GetBrokerMemberGroupResponseBody:
    """The answer of 901."""

    broker_member_group: BrokerMemberGroup

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "an answer with a member group")
        group = BrokerMemberGroup.from_json(fields.value("brokerMemberGroup"))
        return cls(broker_member_group=group)

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"brokerMemberGroup": self.broker_member_group}

# -*- test-case-name: tests.wire.headers.test_headers -*-
"""Headers to name servers and between brokers: 100 to 105, 205 to 224, 322 to 908.

Fields: C{docs/facts/remoting.md} 20.
"""

from __future__ import annotations

from rocketbroker.wire.headers.header import Header, Int, Long, TopicRequestHeader


class PutKVConfigRequestHeader(Header, kw_only=True):
    """PUT_KV_CONFIG (100)."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(Header, kw_only=True):
    """GET_KV_CONFIG (101)."""

    namespace: str
    key: str


class GetKVConfigResponseHeader(Header, kw_only=True):
    """The answer to GET_KV_CONFIG (101)."""

    value: str | None = None


class DeleteKVConfigRequestHeader(Header, kw_only=True):
    """DELETE_KV_CONFIG (102)."""

    namespace: str
    key: str


class RegisterBrokerRequestHeader(Header, kw_only=True):
    """REGISTER_BROKER (103).

    @ivar body_crc32: CRC-32 of the body without its top bit; 0: not to be checked.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int = 0


class RegisterBrokerResponseHeader(Header, kw_only=True):
    """The answer to REGISTER_BROKER (103); filled for slaves only."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnRegisterBrokerRequestHeader(Header, kw_only=True):
    """UNREGISTER_BROKER (104)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class GetRouteInfoRequestHeader(TopicRequestHeader, kw_only=True):
    """GET_ROUTEINFO_BY_TOPIC (105)."""

    topic: str
    accept_standard_json_only: bool | None = None


class WipeWritePermOfBrokerRequestHeader(Header, kw_only=True):
    """WIPE_WRITE_PERM_OF_BROKER (205)."""

    broker_name: str


class WipeWritePermOfBrokerResponseHeader(Header, kw_only=True):
    """The answer to WIPE_WRITE_PERM_OF_BROKER (205)."""

    wipe_topic_count: Int


class AddWritePermOfBrokerRequestHeader(Header, kw_only=True):
    """ADD_WRITE_PERM_OF_BROKER (327)."""

    broker_name: str


class AddWritePermOfBrokerResponseHeader(Header, kw_only=True):
    """The answer to ADD_WRITE_PERM_OF_BROKER (327)."""

    add_topic_count: Int


class DeleteTopicFromNamesrvRequestHeader(TopicRequestHeader, kw_only=True):
    """DELETE_TOPIC_IN_NAMESRV (216)."""

    topic: str
    cluster_name: str | None = None


class RegisterTopicRequestHeader(TopicRequestHeader, kw_only=True):
    """REGISTER_TOPIC_IN_NAMESRV (217)."""

    topic: str


class GetKVListByNamespaceRequestHeader(Header, kw_only=True):
    """GET_KVLIST_BY_NAMESPACE (219)."""

    namespace: str


class GetTopicsByClusterRequestHeader(Header, kw_only=True):
    """GET_TOPICS_BY_CLUSTER (224)."""

    cluster: str


class QueryDataVersionRequestHeader(Header, kw_only=True):
    """QUERY_DATA_VERSION (322)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class QueryDataVersionResponseHeader(Header, kw_only=True):
    """The answer to QUERY_DATA_VERSION (322)."""

    changed: bool


class GetBrokerMemberGroupRequestHeader(Header, kw_only=True):
    """GET_BROKER_MEMBER_GROUP (901)."""

    cluster_name: str
    broker_name: str


class BrokerHeartbeatRequestHeader(Header, kw_only=True):
    """BROKER_HEARTBEAT (904); the time-out's name lacks two letters on the wire."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_mills: Long | None = None
    election_priority: Int | None = None


class NotifyMinBrokerIdChangeRequestHeader(Header, kw_only=True):
    """NOTIFY_MIN_BROKER_ID_CHANGE (905), from the name server, oneway."""

    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


class ExchangeHAInfoRequestHeader(Header, kw_only=True):
    """EXCHANGE_BROKER_HA_INFO (906), between brokers; empty: asks for the other's."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


class ExchangeHAInfoResponseHeader(Header, kw_only=True):
    """The answer to EXCHANGE_BROKER_HA_INFO (906); filled by a master only."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


class ResetMasterFlushOffsetHeader(Header, kw_only=True):
    """RESET_MASTER_FLUSH_OFFSET (908), to a slave."""

    master_flush_offset: Long

# -*- test-case-name: tests.routing.test_table -*-
"""The values that go into the route table and come out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, final

import attrs

from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig, WrittenTopic

#: Silence after which a broker is gone that did not say another time, in ms.
BROKER_EXPIRES_MS: Final = 120_000

#: The broker id of a master.
MASTER: Final = 0

#: A topic as it was read: of either form, only what routes say is used.
RegisteredTopic: TypeAlias = TopicConfig | WrittenTopic

#: The key of a live broker: its cluster and its address.
BrokerKey: TypeAlias = tuple[str, str]


@final
@attrs.frozen(kw_only=True)
class Registration:
    """A broker and its topics, as it registers them (request 103).

    @ivar cluster: its cluster.
    @ivar name: the name that it shares with its slaves or its master.
    @ivar broker_id: 0 for the master.
    @ivar address: where clients find it.
    @ivar ha_address: where slaves find it.
    @ivar zone: its zone, None if it has none.
    @ivar timeout_ms: after which silence it is gone, None: the usual.
    @ivar acting_master: whether a slave of its group may act as master; None is a
        third state: the sender is too old to say.
    @ivar data_version: the version of C{topics}.
    @ivar topics: its topics, by name.
    @ivar mappings: its share of static topics, by topic.
    @ivar filter_servers: addresses; None leaves the known ones unchanged.
    @ivar channel: its connection; compared by identity.
    """

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str | None = None
    zone: str | None = None
    timeout_ms: int | None = None
    acting_master: bool | None = None
    data_version: DataVersion
    topics: Mapping[str, RegisteredTopic]
    mappings: Mapping[str, TopicQueueMappingInfo] = attrs.Factory(dict)
    filter_servers: Sequence[str] | None = ()
    channel: object = None


@final
@attrs.frozen(kw_only=True)
class MinBrokerChange:
    """The least broker id of a group is another one now (request 905).

    @ivar name: the group's broker name.
    @ivar broker_id: the least id.
    @ivar address: whose that is.
    @ivar offline_address: of the broker that left, None if one came.
    @ivar ha_address: where the new one replicates from, None if one left.
    @ivar recipients: the addresses of the brokers to notify.
    """

    name: str
    broker_id: int
    address: str
    offline_address: str | None
    ha_address: str | None
    recipients: Sequence[str]


@final
@attrs.frozen(kw_only=True)
class Registered:
    """A registration was accepted.

    @ivar master_address: for a slave, its living master.
    @ivar ha_address: where that one replicates from.
    @ivar change: whom to tell, if the least id of the group has changed.
    @ivar rival: the address of another live broker with the same name and id.
    """

    rival: str | None = None
    master_address: str | None = None
    ha_address: str | None = None
    change: MinBrokerChange | None = None


@final
@attrs.frozen(kw_only=True)
class Unregistration:
    """The removal of a broker: it unregistered, or it was lost.

    @ivar broker_id: None if the sender did not say.
    """

    cluster: str
    name: str
    address: str
    broker_id: int | None


@final
@attrs.define(kw_only=True, eq=False)
class LiveBroker:
    """A live broker.

    @ivar updated_ms: when it last registered or sent a heartbeat.
    @ivar timeout_ms: after which silence it is gone.
    @ivar data_version: of the topics it registered last.
    @ivar channel: the connection of its last registration.
    @ivar ha_address: where slaves find it.
    """

    updated_ms: int
    timeout_ms: int
    data_version: DataVersion
    channel: object
    ha_address: str | None


@final
@attrs.define(kw_only=True, eq=False)
class Group:
    """The brokers that share a name: a master and its slaves.

    @ivar cluster: of the first broker that registered the name.
    @ivar addresses: by broker id.
    @ivar is_losing_write: whether its topics are losing the permission to write.
    """

    cluster: str
    name: str
    addresses: dict[int, str] = attrs.Factory(dict)
    zone: str | None = None
    acting_master: bool = False
    is_losing_write: bool = False

"""Registrations for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocketbroker.routing.registration import (
    Registered,
    Registration,
    Unregistration,
)
from rocketbroker.routing.table import RouteTable
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig
from rocketbroker.wire.steps import finished


def topics(*names: str, perm: int = 6, flag: int = 0) -> dict[str, TopicConfig]:
    """Topics of eight queues."""
    return {
        name: TopicConfig(
            topic_name=name,
            read_queue_nums=8,
            write_queue_nums=8,
            perm=perm,
            topic_sys_flag=flag,
        )
        for name in names
    }


def registration(
    name: str = "b1",
    broker_id: int = 0,
    address: str = "",
    *,
    cluster: str = "c1",
    has: Mapping[str, TopicConfig] | None = None,
    counter: int = 1,
    state: int = 0,
    acting: bool | None = False,
    zone: str | None = None,
    timeout_ms: int | None = None,
    filters: Sequence[str] | None = (),
    mappings: Mapping[str, TopicQueueMappingInfo] | None = None,
    channel: object = None,
) -> Registration:
    """What a broker says; by default a master with topics T1 and T2."""
    return Registration(
        cluster=cluster,
        name=name,
        broker_id=broker_id,
        address=address or f"{name}-{broker_id}:1",
        ha_address=f"{name}-{broker_id}:2",
        zone=zone,
        timeout_ms=timeout_ms,
        acting_master=acting,
        data_version=DataVersion(state_version=state, timestamp=7, counter=counter),
        topics=topics("T1", "T2") if has is None else has,
        mappings=mappings or {},
        filter_servers=filters,
        channel=channel,
    )


def registered(
    table: RouteTable, new: Registration, now_ms: int = 0, drop_missing: bool = False
) -> Registered:
    """Register, which must be accepted."""
    result = finished(table.registering(new, now_ms, drop_missing))
    assert result is not None
    return result


def leaving(
    name: str = "b1",
    broker_id: int | None = 0,
    address: str = "",
    cluster: str = "c1",
) -> Unregistration:
    """A broker that goes."""
    return Unregistration(
        cluster=cluster,
        name=name,
        address=address or f"{name}-{broker_id}:1",
        broker_id=broker_id,
    )

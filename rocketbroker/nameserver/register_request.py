# -*- test-case-name: tests.nameserver.test_register_request -*-
"""The content of request 103, in each of the forms of its body.

  - From version 37 on: topics, static topics and filter servers, plain or compressed.
  - Before: topics only.
  - No body at all: no topics, version zero.

C{docs/facts/namesrv.md} 10.2, 11.3 and 11.4.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from rocketbroker.errors import RemoteProtocolError, SystemFailure
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.routing.registration import Registration
from rocketbroker.wire.bodies.registration import (
    STEP_BYTES,
    Contents,
    inflating,
    reading,
)
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.namesrv import RegisterBrokerRequestHeader
from rocketbroker.wire.steps import Steps

#: The first version whose bodies have filter servers.
WITH_FILTER_SERVERS: Final = 37

#: Without these a registration makes no sense.
_NEEDED: Final = ("brokerName", "brokerAddr", "clusterName", "brokerId")


def _contents(request: Command, compressed: bool) -> Steps[Contents]:
    """The body, in any of its forms.

    @raise RemoteProtocolError: it has none of them.
    """
    if not request.body:
        return Contents(
            data_version=DataVersion(),
            topics={},
            filter_servers=None if request.version < WITH_FILTER_SERVERS else (),
        )
    if request.version < WITH_FILTER_SERVERS:
        return (yield from reading(request.body, only_topics=True))
    if compressed:
        return Contents.of((yield from inflating(request.body, request.version)))
    return (yield from reading(request.body))


def is_short(request: Command) -> bool:
    """Whether a registration is read in one step."""
    compressed = RegisterBrokerRequestHeader.from_ext(request.ext).compressed
    return len(request.body) <= STEP_BYTES and not compressed


def registration(connection: IConnection, request: Command) -> Steps[Registration]:
    """The registration in a request, read in steps.

    @raise SystemFailure: it makes no sense.
    """
    lacking = set(_NEEDED).intersection(
        RegisterBrokerRequestHeader.lacking(request.ext)
    )
    if lacking:
        raise SystemFailure(f"The registration lacks {', '.join(sorted(lacking))}.")
    ext = request.ext or {}
    header = RegisterBrokerRequestHeader.from_ext(ext)
    if header.body_crc32 and header.body_crc32 != crc32(request.body) & 0x7FFFFFFF:
        raise SystemFailure("crc32 not match")
    try:
        contents = yield from _contents(request, header.compressed)
    except RemoteProtocolError as error:
        raise SystemFailure(f"Failed to decode RegisterBrokerBody: {error}.") from error
    return Registration(
        cluster=header.cluster_name,
        name=header.broker_name,
        broker_id=header.broker_id,
        address=header.broker_addr,
        ha_address=header.ha_server_addr or None,
        zone=ext.get("__ZONE_NAME"),
        timeout_ms=header.heartbeat_timeout_millis,
        acting_master=header.enable_acting_master,
        data_version=contents.data_version,
        topics=contents.topics,
        mappings=contents.mappings,
        filter_servers=contents.filter_servers,
        channel=connection,
    )

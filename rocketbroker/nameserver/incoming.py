# -*- test-case-name: tests.nameserver.test_incoming -*-
"""The content of request 103, in each of the forms of its body.

  - From version 37 on: topics, static topics and filter servers, plain or compressed.
  - Before: topics only.
  - No body at all: no topics, version zero.

C{docs/facts/namesrv.md} 10.2, 11.3 and 11.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

import attrs

from rocketbroker.errors import RemoteProtocolError, SystemFailure
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.routing.registration import RegisteredTopic, Registration
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.registration import PlainRegistration, RegisterBrokerBody
from rocketbroker.wire.bodies.topics import (
    DataVersion,
    TopicConfigSerializeWrapper,
)
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import MAX_LENIENT_BODY, loads
from rocketbroker.wire.headers.namesrv import RegisterBrokerRequestHeader

#: The first version whose bodies have filter servers.
WITH_FILTER_SERVERS: Final = 37

#: Without these a registration makes no sense.
_NEEDED: Final = ("brokerName", "brokerAddr", "clusterName", "brokerId")


@attrs.frozen(kw_only=True)
class _Contents:
    """The body.

    @ivar filter_servers: None leaves the known ones unchanged.
    """

    data_version: DataVersion
    topics: Mapping[str, RegisteredTopic]
    mappings: Mapping[str, TopicQueueMappingInfo] = attrs.Factory(dict)
    filter_servers: Sequence[str] | None = None

    @classmethod
    def of(
        cls, body: RegisterBrokerBody, filter_servers: Sequence[str] | None
    ) -> _Contents:
        """From the forms since version 37."""
        wrapper = body.topic_config_serialize_wrapper
        return cls(
            data_version=wrapper.data_version,
            topics=wrapper.topic_config_table,
            mappings=wrapper.topic_queue_mapping_info_map,
            filter_servers=filter_servers,
        )


def _contents(request: Command, compressed: bool) -> _Contents:
    """The body, in any of its forms.

    @raise RemoteProtocolError: it has none of them.
    """
    if request.version < WITH_FILTER_SERVERS:
        old = TopicConfigSerializeWrapper()
        if request.body:
            value = loads(request.body, MAX_LENIENT_BODY)
            old = TopicConfigSerializeWrapper.from_json(value)
        return _Contents(data_version=old.data_version, topics=old.topic_config_table)
    if not request.body:
        return _Contents.of(RegisterBrokerBody(), ())
    if compressed:
        body = RegisterBrokerBody.decode(request.body, True, request.version)
        return _Contents.of(body, body.filter_server_list)
    plain = PlainRegistration.read(request.body)
    if plain is not None:
        return _Contents(
            data_version=plain.version,
            topics=plain.topics,
            filter_servers=plain.filter_servers,
        )
    value = loads(request.body, MAX_LENIENT_BODY)
    body = RegisterBrokerBody.from_json(value)
    null = isinstance(value, dict) and value.get("filterServerList", ()) is None
    return _Contents.of(body, None if null else body.filter_server_list)


def registration(connection: IConnection, request: Command) -> Registration:
    """The registration in a request.

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
        contents = _contents(request, header.compressed)
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

"""Messages, requests and stored records for tests of the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketbroker.proxy.messages_pb2 import (
    Address,
    AddressScheme,
    Endpoints,
    Message,
    MessageType,
    Resource,
    SystemProperties,
)
from rocketbroker.records import hosts, properties, record

HOST = hosts.encode("10.0.0.9", 10911)

#: How the clients of these tests know the proxy.
ENDPOINTS = Endpoints(
    scheme=AddressScheme.IPv4, addresses=[Address(host="1.2.3.4", port=30081)]
)


def outgoing(topic: str = "T", body: bytes = b"hello", **system: Any) -> Message:
    """A message to be sent.

    @param system: its system properties.
    """
    given = {"message_id": "01ID", "message_type": MessageType.NORMAL, **system}
    user = given.pop("user", {})
    return Message(
        topic=Resource(name=topic),
        body=body,
        user_properties=user,
        system_properties=SystemProperties(**given),
    )


def stored(
    kept: Mapping[str, str] | None = None,
    body: bytes = b"hello",
    topic: str = "T",
    sys_flag: int = 0,
    reconsume_times: int = 0,
) -> record.StoredMessage:
    """A message as brokers store it: queue 3, offset 7, position 4096.

    @param kept: its properties.
    """
    data = record.encode(
        topic.encode(),
        body,
        properties.encode(dict(kept or {})),
        queue_id=3,
        queue_offset=7,
        position=4096,
        born_ms=5,
        born_host=HOST,
        store_ms=1500,
        store_host=HOST,
        sys_flag=sys_flag,
        reconsume_times=reconsume_times,
    )
    return record.decode(data)

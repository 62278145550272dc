# -*- test-case-name: tests.cli.cluster.verbs.test_clients -*-
"""Requests about connected producers: 204, 328. Those about consumers are with groups.

See C{docs/facts/admin.md} 2.3.
"""

from __future__ import annotations

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.errors import SystemFailure
from rocketbroker.wire.bodies.clients import (
    ClientConnection,
    ProducerConnection,
    ProducerTableInfo,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.admin import GetProducerConnectionListRequestHeader
from rocketbroker.wire.versions import version_name


def client_row(client: ClientConnection) -> dict[str, object]:
    """A connected client."""
    return {
        "client": client.client_id,
        "address": client.client_addr,
        "language": client.language,
        "version": version_name(client.version),
    }


def producers(cluster: Cluster, broker: Broker) -> dict[str, list[ClientConnection]]:
    """All producers that are connected to a broker, by group.

    @raise RequestCodeNotSupported: the broker cannot tell.
    """
    table = cluster.read(
        broker.address, RequestCode.GET_ALL_PRODUCER_INFO, ProducerTableInfo.from_json
    )
    return table.data


def producers_of(
    cluster: Cluster, broker: Broker, group: str
) -> list[ClientConnection]:
    """The connected producers of a group; none if it has none there."""
    try:
        found = cluster.read(
            broker.address,
            RequestCode.GET_PRODUCER_CONNECTION_LIST,
            ProducerConnection.from_json,
            GetProducerConnectionListRequestHeader(producer_group=group),
        )
    except SystemFailure as problem:
        if "not exist" in problem.remark:
            return []
        raise
    return found.connection_set

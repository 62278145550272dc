# -*- test-case-name: tests.wire.headers.test_headers -*-
"""Headers between a client and its broker beside messages: 34, 35, 38, 40 to 42.

Fields: C{docs/facts/remoting.md} 20.
"""

from __future__ import annotations

from rocketbroker.wire.headers.header import RpcRequestHeader


class UnregisterClientRequestHeader(
    RpcRequestHeader,
    kw_only=True,
    rename={
        "client_id": "clientID",
        "producer_group": "producerGroup",
        "consumer_group": "consumerGroup",
    },
):
    """UNREGISTER_CLIENT (35)."""

    client_id: str
    producer_group: str | None = None
    consumer_group: str | None = None


class GetConsumerListByGroupRequestHeader(RpcRequestHeader, kw_only=True):
    """GET_CONSUMER_LIST_BY_GROUP (38)."""

    consumer_group: str


class NotifyConsumerIdsChangedRequestHeader(RpcRequestHeader, kw_only=True):
    """NOTIFY_CONSUMER_IDS_CHANGED (40), from the broker, oneway."""

    consumer_group: str

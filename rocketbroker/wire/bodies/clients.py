# -*- test-case-name: tests.wire.bodies.test_clients -*-
"""Connected clients: the answers of 203, 204 and 328.

Shapes: C{docs/facts/admin.md} 3.
"""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.wire.bodies.heartbeats import (
    CONSUME_FROM,
    CONSUME_TYPES,
    MESSAGE_MODELS,
    SubscriptionData,
)
from rocketbroker.wire.codes import LANGUAGES
from rocketbroker.wire.fields import Fields


@attrs.frozen(kw_only=True)
class ClientConnection:
    """One connection of a client.

    @ivar client_addr: C{host:port}, as the broker sees it.
    @ivar version: a number, see C{docs/facts/remoting.md} 22.
    """

    client_id: str = ""
    client_addr: str = ""
    language: str | None = None
    version: int = 0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it; in 328 the address has another name, and a slash before it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a connection")
        address = fields.text("clientAddr") or fields.text("remoteIP") or ""
        return cls(
            client_id=fields.text("clientId") or "",
            client_addr=address.removeprefix("/"),
            language=fields.choice("language", LANGUAGES),
            version=fields.integer("version"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "clientAddr": self.client_addr,
            "clientId": self.client_id,
            "language": self.language,
            "version": self.version,
        }


@attrs.frozen(kw_only=True)
class ConsumerConnection:
    """The members of a group that one broker knows, and what they consume."""

    connection_set: list[ClientConnection] = attrs.field(factory=list)
    subscription_table: dict[str, SubscriptionData] = attrs.field(factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "the connections of a group")
        return cls(
            connection_set=fields.beans("connectionSet", ClientConnection.from_json),
            subscription_table=fields.table(
                "subscriptionTable", SubscriptionData.from_json
            ),
            consume_type=fields.choice("consumeType", CONSUME_TYPES),
            message_model=fields.choice("messageModel", MESSAGE_MODELS),
            consume_from_where=fields.choice("consumeFromWhere", CONSUME_FROM),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "connectionSet": self.connection_set,
            "consumeFromWhere": self.consume_from_where,
            "consumeType": self.consume_type,
            "messageModel": self.message_model,
            "subscriptionTable": self.subscription_table,
        }


@attrs.frozen(kw_only=True)
class ProducerConnection:
    """The connections of a producer group that one broker knows."""

    connection_set: list[ClientConnection] = attrs.field(factory=list)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "the connections of producers")
        return cls(
            connection_set=fields.beans("connectionSet", ClientConnection.from_json)
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"connectionSet": self.connection_set}


@attrs.frozen(kw_only=True)
class ProducerTableInfo:
    """All producer groups that one broker knows."""

    data: dict[str, list[ClientConnection]] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a table of producers")
        groups = Fields(fields.members("data"), "a table of producers")
        return cls(
            data={
                str(name): groups.beans(str(name), ClientConnection.from_json)
                for name in fields.members("data")
            }
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"data": self.data}

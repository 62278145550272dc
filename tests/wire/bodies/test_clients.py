"""The answers of 203, 204 and 328."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.clients import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
    ProducerTableInfo,
)
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.fields import object_of

CONNECTION = b'{"clientAddr":"ip:1","clientId":"id","language":"JAVA","version":477}'
MEMBER = ClientConnection(
    client_id="id", client_addr="ip:1", language="JAVA", version=477
)


class ClientsTests(SynchronousTestCase):
    """In and out, as docs/facts/admin.md 3 has them."""

    def test_consumers(self) -> None:
        """Members, subscriptions, and how the group consumes."""
        text = (
            b'{"connectionSet":[' + CONNECTION + b'],"consumeFromWhere":"CONSUME_FROM_'
            b'LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING'
            b'","subscriptionTable":{"T":{"classFilterMode":false,"codeSet":[],"express'
            b'ionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],"topic":"T"}}}'
        )
        found = object_of(text, ConsumerConnection.from_json)
        self.assertEqual(found.connection_set, [MEMBER])
        self.assertEqual(found.message_model, "CLUSTERING")
        self.assertEqual(found.subscription_table["T"].sub_string, "*")
        self.assertEqual(dumps(found), text)

    def test_producers(self) -> None:
        """A list of connections."""
        text = b'{"connectionSet":[' + CONNECTION + b"]}"
        found = object_of(text, ProducerConnection.from_json)
        self.assertEqual(found.connection_set, [MEMBER])
        self.assertEqual(dumps(found), text)

    def test_allProducers(self) -> None:
        """By group; the address has another name there."""
        text = (
            b'{"data":{"PG":[{"clientId":"id","language":"JAVA","lastUpdateTimestamp":1'
            b',"remoteIP":"/ip:1","version":477}],"None":null}}'
        )
        found = object_of(text, ProducerTableInfo.from_json)
        self.assertEqual(found.data, {"PG": [MEMBER], "None": []})

    def test_wrong(self) -> None:
        """What is no such thing is refused."""
        wrong: list[object] = [[], {"connectionSet": 5}, {"connectionSet": [5]}]
        for value in wrong:
            self.assertRaises(RemoteProtocolError, ProducerConnection.from_json, value)
        self.assertRaises(RemoteProtocolError, ProducerTableInfo.from_json, {"data": 5})

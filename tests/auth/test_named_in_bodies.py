"""Names in bodies."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.named_in_bodies import consumers, locked
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    SubscriptionData,
)
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.fastjson import dumps


class NamesTests(SynchronousTestCase):
    """Groups and topics."""

    def test_heartbeat(self) -> None:
        """Each group comes with its topics; producers are not named."""
        consumer = ConsumerData(
            group_name="G",
            subscription_data_set=[
                SubscriptionData(topic="T"),
                SubscriptionData(topic="%RETRY%G"),
            ],
        )
        beat = HeartbeatData(
            client_id="c", consumer_data_set=[consumer, ConsumerData(group_name="H")]
        )
        expected = [("G", ["T", "%RETRY%G"]), ("H", [])]
        self.assertEqual(consumers(dumps(beat)), expected)
        self.assertEqual(consumers(memoryview(dumps(beat))), expected)

    def test_otherForms(self) -> None:
        """Other clients' JSON is read as leniently as by the broker."""
        body = b"{consumerDataSet:[{groupName:'G',subscriptionDataSet:[{topic:'T'}]}]}"
        self.assertEqual(consumers(body), [("G", ["T"])])
        self.assertEqual(consumers(b"{}"), [])

    def test_locks(self) -> None:
        """The group, and the topic of each queue."""
        queues = [MessageQueue("T", "b", 0), MessageQueue("U", "b", 0)]
        body = LockBatchBody(client_id="c", consumer_group="G", mq_set=queues)
        self.assertEqual(locked(dumps(body)), ("G", ["T", "U"]))

    def test_noSuchBodies(self) -> None:
        """What is neither is the peer's mistake."""
        for body in (b"", b"[]", b"x"):
            self.assertRaises(RemoteProtocolError, consumers, body)
            self.assertRaises(RemoteProtocolError, locked, body)

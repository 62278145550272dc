"""Heartbeats of the second version."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.membership import fingerprint
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)
from tests.client.cluster import ClientCluster

SUPPORTED = {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "false"}


class HeartbeatTests(SynchronousTestCase):
    """One member, and what a broker hears of it."""

    def cluster(self, **settings: bool) -> ClientCluster:
        """A broker of RocketMQ 5."""
        cluster = ClientCluster("b1", **settings)
        cluster.broker().heartbeat_answer = dict(SUPPORTED)
        return cluster

    def test_fingerprintIsJavas(self) -> None:
        """The example of the fact sheet, whoever sends it and whenever it was made."""
        for me, version in (("", 0), ("10.0.0.9@1", 1700000000000)):
            wanted = SubscriptionData(
                topic="T1", sub_string="*", sub_version=version, tags_set=[]
            )
            data = HeartbeatData(
                client_id=me,
                producer_data_set=[ProducerData(group_name="PG")],
                consumer_data_set=[
                    ConsumerData(group_name="G1", subscription_data_set=[wanted])
                ],
            )
            self.assertEqual(fingerprint(data), -889169914)

    def test_laterHeartbeatsLeaveSubscriptionsOut(self) -> None:
        """Once the broker has said that it keeps them."""
        cluster = self.cluster(heartbeat_v2=True)
        cluster.started()
        cluster.runtime.advance(65.0)
        first, *_, last = cluster.broker().heartbeats
        self.assertFalse(first.without_sub)
        self.assertEqual(len(first.consumer_data_set[0].subscription_data_set), 2)
        self.assertTrue(last.without_sub)
        self.assertEqual(last.consumer_data_set[0].subscription_data_set, [])
        self.assertEqual(last.heartbeat_fingerprint, first.heartbeat_fingerprint)
        self.assertNotEqual(last.heartbeat_fingerprint, 0)

    def test_brokerThatHeardOtherwiseGetsAllAgain(self) -> None:
        """It says so when another member has another fingerprint."""
        cluster = self.cluster(heartbeat_v2=True)
        cluster.broker().heartbeat_answer["IS_SUB_CHANGE"] = "true"
        cluster.started()
        cluster.runtime.advance(65.0)
        self.assertFalse(any(one.without_sub for one in cluster.broker().heartbeats))

    def test_olderBrokerGetsAll(self) -> None:
        """It says nothing of a second version."""
        cluster = self.cluster(heartbeat_v2=True)
        cluster.broker().heartbeat_answer.clear()
        cluster.started()
        cluster.runtime.advance(65.0)
        self.assertFalse(any(one.without_sub for one in cluster.broker().heartbeats))

    def test_brokerThatBeginsAnewGetsAll(self) -> None:
        """What it had kept is gone."""
        cluster = self.cluster(heartbeat_v2=True)
        cluster.started()
        cluster.runtime.advance(65.0)
        cluster.cluster.stop("b1")
        cluster.runtime.advance(1.0)
        seen = len(cluster.broker().heartbeats)
        cluster.cluster.start("b1")
        cluster.runtime.advance(35.0)
        self.assertFalse(cluster.broker().heartbeats[seen].without_sub)

    def test_firstVersionSaysNoFingerprint(self) -> None:
        """As long as nobody asks for the second."""
        cluster = self.cluster()
        cluster.started()
        cluster.runtime.advance(65.0)
        beats = cluster.broker().heartbeats
        self.assertEqual({one.heartbeat_fingerprint for one in beats}, {0})
        self.assertFalse(any(one.without_sub for one in beats))

"""Clients of the proxy, and what they have to go by."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.clients import Clients, answer_to, backoff_of, duration, span_ms
from rocketbroker.proxy.messages_pb2 import (
    ClientType,
    Publishing,
    Resource,
    Settings,
    Subscription,
    TelemetryCommand,
)
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig


def ignore(command: TelemetryCommand) -> None:
    """A stream that nobody reads."""


def producing(*topics: str) -> Settings:
    """The settings of a producer."""
    named = [Resource(name=topic) for topic in topics]
    return Settings(
        client_type=ClientType.PRODUCER, publishing=Publishing(topics=named)
    )


class AnswerTests(SynchronousTestCase):
    """L{answer_to}."""

    def test_producerHasLimitsAndAnExponentialBackoff(self) -> None:
        """What it has said comes back; metrics are off."""
        found = answer_to(producing("T"), None, ProxySettings())
        self.assertEqual(found.publishing.topics[0].name, "T")
        self.assertEqual(found.publishing.max_body_size, 4194304)
        self.assertTrue(found.publishing.validate_message_type)
        self.assertEqual(found.backoff_policy.max_attempts, 3)
        backoff = found.backoff_policy.exponential_backoff
        self.assertEqual((span_ms(backoff.initial), span_ms(backoff.max)), (10, 1000))
        self.assertTrue(found.HasField("metric"))
        self.assertFalse(found.metric.on)

    def test_consumerHasThePolicyOfItsGroup(self) -> None:
        """Also if no broker tells it."""
        given = Settings(subscription=Subscription(group=Resource(name="G")))
        found = answer_to(given, None, ProxySettings())
        self.assertEqual(found.subscription.receive_batch_size, 32)
        self.assertEqual(span_ms(found.subscription.long_polling_timeout), 20_000)
        self.assertFalse(found.subscription.fifo)
        self.assertEqual(found.backoff_policy.max_attempts, 17)
        following = found.backoff_policy.customized_backoff.next
        self.assertEqual(len(following), 18)
        self.assertEqual(span_ms(following[-1]), 7_200_000)
        config = SubscriptionGroupConfig(
            consume_message_orderly=True, retry_max_times=2
        )
        found = answer_to(given, config, ProxySettings())
        self.assertTrue(found.subscription.fifo)
        self.assertEqual(found.backoff_policy.max_attempts, 3)

    def test_groupsOwnPoliciesCount(self) -> None:
        """Of both kinds."""
        exponential = SubscriptionGroupConfig(
            group_retry_policy={
                "type": "EXPONENTIAL",
                "exponentialRetryPolicy": {"initial": 7, "max": 70, "multiplier": 3},
            }
        )
        found = backoff_of(exponential).exponential_backoff
        self.assertEqual((span_ms(found.initial), span_ms(found.max)), (7, 70))
        self.assertEqual(found.multiplier, 3)
        customized = SubscriptionGroupConfig(
            group_retry_policy={
                "type": "CUSTOMIZED",
                "customizedRetryPolicy": {"next": [1000, 2500]},
            }
        )
        following = backoff_of(customized).customized_backoff.next
        self.assertEqual([span_ms(one) for one in following], [1000, 2500])
        self.assertEqual(duration(2500).nanos, 500_000_000)


class ClientsTests(SynchronousTestCase):
    """L{Clients}."""

    def test_silentClientsAreForgotten(self) -> None:
        """But those whose stream is open."""
        clients = Clients(1000)
        clients.heard("a", 0.0)
        clients.heard("b", 0.5)
        clients.heard("c", 0.0).stream = ignore
        self.assertEqual([one.client_id for one in clients.silent(1.0)], ["a"])
        self.assertEqual(len(clients), 2)
        clients.heard("b", 1.4)
        self.assertEqual([*clients.silent(1.6)], [])
        known = clients.get("b")
        self.assertIs(clients.forget("b"), known)
        self.assertIsNone(clients.forget("b"))

    def test_clientIsHereForSomeTimeAfterACall(self) -> None:
        """Also one that is not known: after a restart none is."""
        clients = Clients(120_000)
        clients.called("a", 1.0)
        self.assertTrue(clients.is_here("a", 30.9))
        self.assertFalse(clients.is_here("a", 31.0))
        self.assertFalse(clients.is_here("b", 1.0))
        self.assertEqual(len(clients), 0)
        self.assertEqual([*clients.silent(121.0)], [])
        clients.called("b", 121.0)
        self.assertFalse(clients.is_here("a", 1.0))

    def test_producersWithAStreamAreAskedInTurn(self) -> None:
        """Of the topic."""
        clients = Clients(1000)
        for name, topic in (("a", "T"), ("b", "T"), ("c", "U"), ("d", "T")):
            client = clients.heard(name, 0.0)
            client.settings = producing(topic)
            client.stream = None if name == "d" else ignore
        found = [clients.producer_of("T") for _ in range(4)]
        self.assertEqual(
            sorted(one.client_id for one in found if one), ["a", "a", "b", "b"]
        )
        self.assertIsNone(clients.producer_of("V"))
        self.assertEqual(clients.topics(), {"T", "U"})

    def test_consumersAreKnownByTheirSettings(self) -> None:
        """Not before they have given any."""
        client = Clients(1000).heard("a", 0.0)
        self.assertFalse(client.is_consumer)
        client.settings = Settings(client_type=ClientType.PUSH_CONSUMER)
        self.assertTrue(client.is_consumer)
        self.assertEqual(client.topics, [])

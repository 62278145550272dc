"""Metrics of clients for Prometheus."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.metrics import metrics_in
from rocketbroker.client.options import client_settings
from rocketbroker.errors import ConfigurationError, NoPermission
from rocketbroker.records.outgoing import Message
from rocketbroker.testing.puppet_cluster import hang_up, refuse
from rocketbroker.wire.codes import RequestCode
from scripts.lab.servers import ROOT
from tests.client.cluster import ClientCluster

SEND = RequestCode.SEND_MESSAGE_V2

#: A topic and a group.
T = {"topic": "T"}
TG = {"topic": "T", "group": "G"}


class MetricTests(SynchronousTestCase):
    """C{connect(metrics=registry)}."""

    def setUp(self) -> None:
        self.registry = CollectorRegistry()
        self.here = ClientCluster(observers=[metrics_in(self.registry)])
        self.runtime = self.here.runtime

    def value(self, name: str, **labels: str) -> float:
        """A sample, 0 if there is none."""
        found = self.registry.get_sample_value(f"rocketbroker_client_{name}", labels)
        return found or 0.0

    def test_sendsAreCounted(self) -> None:
        """Stored, failed, tried again, and how long it took."""
        producer = self.here.producer()
        self.runtime.finish(producer.send(Message("T", "1")))
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults[SEND] = [refuse(16)] * 3
        running = self.runtime.start(producer.send(Message("T", "2")))
        with self.assertRaises(NoPermission):
            self.here.until(running)
        self.assertEqual(self.value("messages_sent_total", **T), 1)
        self.assertEqual(self.value("sends_failed_total", **T), 1)
        self.assertEqual(self.value("send_retries_total", **T), 2)
        self.assertEqual(self.value("send_seconds_count", **T), 2)
        self.assertGreater(self.value("send_seconds_sum", **T), 0.05)

    def test_messagesAreCountedByTheirOutcome(self) -> None:
        """By topic and group; what waits is read at the scrape."""
        self.here.put("1", "2", "3")
        consumer = self.here.started()
        self.runtime.finish(self.here.take(consumer).ack())
        self.runtime.finish(self.here.take(consumer).retry())
        self.assertEqual(self.value("messages_received_total", **TG), 2)
        for outcome in ("acknowledged", "retried"):
            found = self.value("messages_handled_total", **TG, outcome=outcome)
            self.assertEqual(found, 1, outcome)
        self.assertEqual(self.value("handling_seconds_count", **TG), 2)
        self.assertEqual(self.value("prefetched_messages", **TG), 1)
        self.runtime.finish(consumer.close())
        self.assertEqual(self.value("prefetched_messages", **TG), 0)

    def test_reconnectionsAreCounted(self) -> None:
        """By address."""
        self.here.cluster.topics["T"] = {"b1": 1}
        producer = self.here.producer()
        self.here.broker().faults[SEND] = [hang_up]
        self.here.until(self.runtime.start(producer.send(Message("T", "1"))))
        self.assertEqual(self.value("reconnections_total", address="b1:10911"), 1)

    def test_clientsShareARegistry(self) -> None:
        """A second one with the same registry counts on."""
        settings, _ = client_settings("a:1", {"metrics": self.registry}, {})
        assert settings.observers is not None
        self.assertIs(settings.observers.all[0], metrics_in(self.registry))
        self.assertIsNot(metrics_in(CollectorRegistry()), metrics_in(self.registry))

    def test_whatIsNoRegistryIsRefused(self) -> None:
        """In one sentence."""
        for wrong in (True, "default", object()):
            with self.assertRaises(ConfigurationError):
                client_settings("a:1", {"metrics": wrong}, {})
        self.assertIsNone(client_settings("a:1", {"metrics": None}, {})[0].observers)

    def test_pageNamesAll(self) -> None:
        """docs/clients.rst has each of them, and no other."""
        self.here.started()
        shown = generate_latest(self.registry).decode()
        names = set(re.findall(r"^# TYPE (\S+)", shown, re.MULTILINE))
        page = (ROOT / "docs" / "clients.rst").read_text("utf-8")
        told = set(re.findall(r"``(rocketbroker_client_\w+)``", page))
        self.assertEqual(told, {one for one in names if not one.endswith("_created")})

"""Tests of what a proxy shows."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.proxy_families import ProxyFamilies
from rocketbroker.proxy.service import Service
from rocketbroker.testing.threads import at_once
from tests.metrics.scraped import parsed
from tests.proxy.proxied import Proxied


class ProxyFamiliesTests(SynchronousTestCase):
    """L{ProxyFamilies}."""

    def test_counts(self) -> None:
        """Tables by size, events by number, calls by method and code; the labels of all
        are those of RocketMQ."""
        proxied = Proxied(metrics_label="zone:a")
        service = Service(proxied.calls, proxied.telemetry, str)
        proxied.produce("T")
        service.handler()
        service.counts.ended("Heartbeat", "OK")
        families = ProxyFamilies(
            proxied.calls, service, proxied.settings, "host", at_once
        )
        samples = self.successResultOf(families.collect(frozenset()))
        found = [sample for family in parsed(samples) for sample in family.samples]
        values = {sample.name: sample.value for sample in found}
        labels = {sample.name: sample.labels for sample in found}
        common = {"cluster": "DefaultCluster", "node_type": "proxy", "node_id": "host"}
        common["zone"] = "a"
        self.assertEqual(
            labels["rocketmq_proxy_up"], {**common, "proxy_mode": "cluster"}
        )
        self.assertEqual(
            labels["rocketbroker_proxy_calls_total"],
            {**common, "method": "Heartbeat", "code": "OK"},
        )
        for name, value in (
            ("rocketmq_proxy_up", 1),
            ("rocketbroker_proxy_calls_total", 1),
            ("rocketbroker_proxy_clients", 1),
            ("rocketbroker_proxy_streams", 0),
            ("rocketbroker_proxy_kept_invisible_messages", 0),
            ("rocketbroker_proxy_renewals_total", 0),
            ("rocketbroker_proxy_receives_given_back_total", 0),
            ("rocketbroker_proxy_streams_overrun_total", 0),
            ("rocketbroker_proxy_call_seconds_count", 0),
        ):
            self.assertEqual(values[name], value, name)

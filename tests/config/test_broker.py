"""The settings of a broker."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker import BrokerOptions
from tests.config.keys import check_tables


class BrokerOptionsTests(SynchronousTestCase):
    """L{BrokerOptions}."""

    def test_tables(self) -> None:
        """Tables and attributes agree, and the defaults can be read back."""
        check_tables(self, BrokerOptions)

    def test_keys(self) -> None:
        """RocketMQ's keys are known, with its spelling and defaults."""
        printed = BrokerOptions().as_properties()
        for key, text in {
            "brokerClusterName": "DefaultCluster",
            "brokerId": "0",
            "brokerPermission": "6",
            "popConsumerFSServiceInit": "true",
            "skipWhenCKRePutReachMaxTimes": "false",
            "consumerFallbehindThreshold": "17179869184",
            "enableCreateSysGroup": "true",
        }.items():
            self.assertEqual(printed.get(key), text, key)
        self.assertIn("brokerIP1", printed)

    def test_longs(self) -> None:
        """A long may be larger than an int."""
        options = BrokerOptions.from_properties({"forwardTimeout": "4294967296"})
        self.assertEqual(options.forward_timeout, 2**32)

    def test_metricsAreOn(self) -> None:
        """Metrics are exported unless a setting says otherwise."""
        options = BrokerOptions()
        self.assertEqual(options.metrics_exporter_type, "PROM")
        self.assertEqual(options.metrics_prom_exporter_port, 5557)

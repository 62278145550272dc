"""Tests of the port of /metrics."""

from __future__ import annotations

import socket

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.protocol import Factory, Protocol, ServerFactory
from twisted.logger import LogLevel, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.metricsport import MetricsPort, SiteLater
from rocketbroker.errors import ConfigurationError
from rocketbroker.testing.network import MemoryNetwork


@attrs.frozen
class Settings:
    """The three settings that matter."""

    metrics_exporter_type: str = "PROM"
    metrics_prom_exporter_port: int = 5557
    metrics_prom_exporter_host: str = ""


class MetricsPortTests(SynchronousTestCase):
    """On, off, taken; and nothing imported before it is needed."""

    def setUp(self) -> None:
        """Count how often the site is made."""
        self.made = 0
        self.network = MemoryNetwork()

    def make(self) -> Factory:
        """A site of its own kind."""
        self.made += 1
        return Factory.forProtocol(Protocol)

    def test_on(self) -> None:
        """It listens on the port, at the address of the settings."""
        settings = Settings(metrics_prom_exporter_host="127.0.0.1")
        port = MetricsPort(self.network, settings, True, self.make)
        self.assertEqual(port.listen(), 5557)
        address = self.network.ports[5557].getHost()
        self.assertEqual(address.host, "127.0.0.1")
        self.successResultOf(port.stop())
        self.assertEqual(self.network.ports, {})

    def test_off(self) -> None:
        """Port 0, or another exporter, and it does not listen."""
        for settings in (
            Settings(metrics_prom_exporter_port=0),
            Settings(metrics_exporter_type="DISABLE"),
        ):
            port = MetricsPort(self.network, settings, True, self.make)
            self.assertEqual(port.listen(), 0)
            self.successResultOf(port.stop())
        self.assertEqual(self.network.ports, {})

    def test_anyFreePort(self) -> None:
        """The flag's port 0 is any free one; the port that it got is told."""
        settings = Settings(metrics_prom_exporter_port=0)
        port = MetricsPort(self.network, settings, True, self.make, True)
        self.assertIsNone(port.address)
        found = port.listen()
        self.assertEqual(list(self.network.ports), [found])
        self.assertEqual(port.address, f"127.0.0.1:{found}")
        self.successResultOf(port.stop())

    def take(self) -> None:
        """Somebody else listens on the port."""
        self.network.listenTCP(5557, ServerFactory())

    def test_taken(self) -> None:
        """A port in use is one sentence that names it and what to do."""
        self.take()
        port = MetricsPort(self.network, Settings(), True, self.make)
        error = self.assertRaises(ConfigurationError, port.listen)
        self.assertIn("5557 cannot be had: Address already in use", str(error))
        self.assertNotIn("\n", str(error))

    def test_takenUnasked(self) -> None:
        """Where the port was not asked for, the server does without, and says so."""
        self.take()
        port = MetricsPort(self.network, Settings(), False, self.make)
        with capturedLogs() as events:
            self.assertEqual(port.listen(), 0)
        (event,) = events
        self.assertEqual(event["log_level"], LogLevel.warn)
        self.assertIn("*:5557 cannot be had: Address already", formatEvent(event))
        self.successResultOf(port.stop())

    def test_late(self) -> None:
        """The site is made with the first connection, once, and stopped at the end."""
        factory = SiteLater(self.make)
        factory.doStart()
        self.assertEqual(self.made, 0)
        address = IPv4Address("TCP", "127.0.0.1", socket.IPPORT_RESERVED)
        for _ in range(2):
            self.assertIsInstance(factory.buildProtocol(address), Protocol)
        self.assertEqual(self.made, 1)
        factory.doStop()
        factory.doStart()
        factory.buildProtocol(address)
        self.assertEqual(self.made, 2)

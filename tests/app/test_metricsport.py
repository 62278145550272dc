"""Tests of the port of /metrics."""

from __future__ import annotations

import socket

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactor
from twisted.logger import LogLevel, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.metricsport import MetricsPort, SiteLater
from rocketbroker.errors import ConfigurationError


@attrs.frozen
class Settings:
    """The three settings that matter."""

    metrics_exporter_type: str = "PROM"
    metrics_prom_exporter_port: int = 5557
    metrics_prom_exporter_host: str = ""


class Taken(MemoryReactor):
    """A reactor whose ports are all taken."""

    def listenTCP(self, port: int, *args: object, **words: object) -> object:
        """As a real one answers then."""
        raise CannotListenError("", port, OSError(98, "Address already in use"))


class MetricsPortTests(SynchronousTestCase):
    """On, off, taken; and nothing imported before it is needed."""

    def setUp(self) -> None:
        """Count how often the site is made."""
        self.made = 0
        self.reactor = MemoryReactor()

    def make(self) -> Factory:
        """A site of its own kind."""
        self.made += 1
        return Factory.forProtocol(Protocol)

    def test_on(self) -> None:
        """It listens on the port, at the address of the settings."""
        settings = Settings(metrics_prom_exporter_host="127.0.0.1")
        port = MetricsPort(self.reactor, settings, True, self.make)
        self.assertEqual(port.listen(), 5557)
        ((number, _, _, interface),) = self.reactor.tcpServers
        self.assertEqual((number, interface), (5557, "127.0.0.1"))
        self.successResultOf(port.stop())

    def test_off(self) -> None:
        """Port 0, or another exporter, and it does not listen."""
        for settings in (
            Settings(metrics_prom_exporter_port=0),
            Settings(metrics_exporter_type="DISABLE"),
        ):
            port = MetricsPort(self.reactor, settings, True, self.make)
            self.assertEqual(port.listen(), 0)
            self.successResultOf(port.stop())
        self.assertEqual(self.reactor.tcpServers, [])

    def test_taken(self) -> None:
        """A port in use is one sentence that names it and what to do."""
        port = MetricsPort(Taken(), Settings(), True, self.make)
        error = self.assertRaises(ConfigurationError, port.listen)
        self.assertIn("5557 cannot be had: Address already in use", str(error))
        self.assertNotIn("\n", str(error))

    def test_takenUnasked(self) -> None:
        """Where the port was not asked for, the server does without, and says so."""
        port = MetricsPort(Taken(), Settings(), False, self.make)
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

# -*- test-case-name: tests.metrics.test_namesrv_families -*-
"""What a name server shows. RocketMQ's has no metrics; all names are ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from rocketbroker.metrics.remoting_families import add_port
from rocketbroker.metrics.samples import Samples
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.connection_group import ConnectionGroup

if TYPE_CHECKING:
    from prometheus_client.core import Metric


@final
class NameServerFamilies:
    """The families of one name server."""

    def __init__(self, server: NameServer, ports: dict[str, ConnectionGroup]) -> None:
        """
        @param ports: what each port counts, by its name.
        """
        self._server = server
        self._ports = ports

    def collect(self) -> list[Metric]:
        """The families as they are now."""
        server = self._server
        table, brokers, lookups = server.routes, server.brokers, server.lookups
        samples = Samples({"node_type": "nameserver"})
        for name, words, value in (
            ("topics", "topics that have a route", len(table.topics)),
            ("brokers", "brokers that are alive", len(table.live)),
            ("clusters", "clusters", len(table.clusters)),
        ):
            samples.gauge(f"rocketbroker_namesrv_{name}", words, value)
        for name, words, value in (
            ("registrations", "registrations accepted", brokers.registered),
            ("registrations_refused", "registrations refused", brokers.refused),
            ("brokers_expired", "brokers silent for too long", brokers.expired),
            ("brokers_lost", "brokers whose connection went", brokers.lost),
            (
                "scans_failed",
                "scans for silent brokers that failed",
                server.scan.failures,
            ),
            ("routes_found", "routes answered", lookups.found),
            (
                "routes_missing",
                "routes asked for that are not there",
                lookups.not_found,
            ),
        ):
            samples.counter(f"rocketbroker_namesrv_{name}_total", words, value)
        for port, group in self._ports.items():
            add_port(samples, port, group)
        return samples.families()

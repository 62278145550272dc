# -*- test-case-name: tests.metrics.test_namesrv_families -*-
"""The metrics of a name server. RocketMQ's has none; all names are ours."""

from __future__ import annotations

from typing import final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.metrics.remoting_families import add_longest_turns, add_port
from rocketbroker.metrics.samples import Samples
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.connection_group import ConnectionGroup


@final
class NameServerFamilies:
    """The families of one name server."""

    def __init__(self, server: NameServer, ports: dict[str, ConnectionGroup]) -> None:
        """
        @param ports: the connections of each port, by its name.
        """
        self._server = server
        self._ports = ports

    def collect(self, names: frozenset[str]) -> Deferred[Samples]:
        """The families as they are now: all totals, however many topics there are.

        @param names: the samples that are wanted, by their final names; empty: all.
        """
        server = self._server
        table, brokers, lookups = server.routes, server.brokers, server.lookups
        samples = Samples({"node_type": "nameserver"}, names)
        for name, words, value in (
            (
                "rocketbroker_namesrv_topics",
                "topics that have a route",
                len(table.topics),
            ),
            ("rocketbroker_namesrv_brokers", "brokers that are alive", len(table.live)),
            ("rocketbroker_namesrv_clusters", "clusters", len(table.clusters)),
        ):
            samples.gauge(name, words, value)
        for name, words, value in (
            (
                "rocketbroker_namesrv_registrations_total",
                "registrations accepted",
                brokers.registered,
            ),
            (
                "rocketbroker_namesrv_registrations_refused_total",
                "registrations refused",
                brokers.refused,
            ),
            (
                "rocketbroker_namesrv_brokers_expired_total",
                "brokers that were silent for too long",
                brokers.expired,
            ),
            (
                "rocketbroker_namesrv_brokers_lost_total",
                "brokers whose connection was closed",
                brokers.lost,
            ),
            (
                "rocketbroker_namesrv_scans_failed_total",
                "scans for silent brokers that failed",
                server.scan.failures,
            ),
            (
                "rocketbroker_namesrv_routes_found_total",
                "routes answered",
                lookups.found,
            ),
            (
                "rocketbroker_namesrv_routes_not_found_total",
                "requests for routes that do not exist",
                lookups.not_found,
            ),
        ):
            samples.counter(name, words, value)
        for port, group in self._ports.items():
            add_port(samples, port, group)
        add_longest_turns(samples, self._ports, server.slices, [server.scan])
        return succeed(samples)

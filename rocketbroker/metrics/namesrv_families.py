# -*- test-case-name: tests.metrics.test_namesrv_families -*-
"""The metrics of a name server. RocketMQ's has none; all names are ours."""

from __future__ import annotations

from typing import final

from prometheus_client import Metric
from twisted.internet.defer import Deferred

from rocketbroker.broker.background_work import InThread
from rocketbroker.metrics.process_families import add_process, read_process
from rocketbroker.metrics.remoting_families import add_longest_turns, add_port
from rocketbroker.metrics.samples import Samples
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.connection_group import ConnectionGroup


@final
class NameServerFamilies:
    """The families of one name server."""

    def __init__(
        self,
        server: NameServer,
        ports: dict[str, ConnectionGroup],
        in_thread: InThread,
    ) -> None:
        """
        @param ports: the connections of each port, by its name.
        @param in_thread: runs what asks the system.
        """
        self._server = server
        self._ports = ports
        self._in_thread = in_thread

    def collect(self, names: frozenset[str]) -> Deferred[Samples]:
        """The families as they are now: all totals, however many topics there are.

        @param names: the samples that are wanted, by their final names; empty: all.
        """
        return self._in_thread(read_process).addCallback(self._collected, names)

    def _collected(self, process: list[Metric], names: frozenset[str]) -> Samples:
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
        add_process(samples, process)
        return samples

# -*- test-case-name: tests.metrics.test_proxy_families -*-
"""The metrics of a proxy.

RocketMQ's Proxy has one, C{rocketmq_proxy_up}; all others are ours.
C{docs/facts/proxy.md} 12.3.
"""

from __future__ import annotations

from typing import final

from prometheus_client import Metric
from twisted.internet.defer import Deferred

from rocketbroker.broker.background_work import InThread
from rocketbroker.metrics.process_families import add_process, read_process
from rocketbroker.metrics.samples import Samples, constant_labels
from rocketbroker.proxy.calls import Calls
from rocketbroker.proxy.counts import BOUNDS_SECONDS
from rocketbroker.proxy.service import Service
from rocketbroker.proxy.settings import ProxySettings


@final
class ProxyFamilies:
    """The families of one proxy."""

    def __init__(
        self,
        calls: Calls,
        service: Service,
        settings: ProxySettings,
        host: str,
        in_thread: InThread,
    ) -> None:
        """
        @param host: the name of this machine, which names the proxy unless its settings
            do.
        @param in_thread: runs what asks the system.
        """
        self._calls = calls
        self._service = service
        self._labels = {
            "cluster": settings.proxy_cluster_name,
            "node_type": "proxy",
            "node_id": settings.proxy_name or host,
            **constant_labels(settings.metrics_label),
        }
        self._in_thread = in_thread

    def collect(self, names: frozenset[str]) -> Deferred[Samples]:
        """The families as they are now.

        @param names: the samples that are wanted, by their final names; empty: all.
        """
        return self._in_thread(read_process).addCallback(self._collected, names)

    def _collected(self, process: list[Metric], names: frozenset[str]) -> Samples:
        calls, service = self._calls, self._service
        samples = Samples(self._labels, names)
        samples.gauge(
            "rocketmq_proxy_up", "always 1: the proxy runs", 1, proxy_mode="cluster"
        )
        for (method, code), count in sorted(service.counts.calls.items()):
            samples.counter(
                "rocketbroker_proxy_calls_total",
                "calls that have ended",
                count,
                method=method,
                code=code,
            )
        for method, times in service.counts.times.items():
            samples.histogram(
                "rocketbroker_proxy_call_seconds",
                "from a call to its last answer",
                BOUNDS_SECONDS,
                times.buckets,
                times.total,
                method=method,
            )
        for name, words, value in (
            (
                "rocketbroker_proxy_streams",
                "streams of telemetry that are open",
                service.streams,
            ),
            (
                "rocketbroker_proxy_clients",
                "clients that are known",
                len(calls.clients),
            ),
            (
                "rocketbroker_proxy_kept_invisible_messages",
                "messages whose invisible time is renewed",
                len(calls.renewals),
            ),
        ):
            samples.gauge(name, words, value)
        for name, words, value in (
            (
                "rocketbroker_proxy_renewals_total",
                "renewals of the invisible time of a message",
                calls.renewals.renewed,
            ),
            (
                "rocketbroker_proxy_receives_given_back_total",
                "receives whose messages others get, as their client had gone",
                calls.given_back,
            ),
            (
                "rocketbroker_proxy_streams_overrun_total",
                "streams of telemetry that were cut because their client did not read",
                service.overrun,
            ),
        ):
            samples.counter(name, words, value)
        add_process(samples, process)
        return samples

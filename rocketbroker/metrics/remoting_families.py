# -*- test-case-name: tests.metrics.test_remoting_families -*-
"""What the ports of a server count.

The names that begin with rocketmq_ are RocketMQ's (C{docs/facts/security-metrics.md}
5); those that begin with rocketbroker_ are ours.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.metrics.samples import Samples
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.counts import LATENCY_BOUNDS_MS
from rocketbroker.remoting.table import NOT_SERVED
from rocketbroker.wire.codes import RequestCode, ResponseCode

#: Counters of a port: attribute, name, what it counts.
_COUNTS: Final = (
    ("accepted", "connections_accepted", "connections made"),
    ("broken", "connections_broken", "connections closed for breaking the protocol"),
    ("idle", "connections_idle", "connections closed because nothing moved on them"),
    (
        "unfinished",
        "connections_unfinished",
        "connections closed because unfinished frames took too much memory",
    ),
    ("refused", "connections_refused", "connections that could not be accepted"),
    ("lost", "connections_lost", "connections that the peer or the network ended"),
    ("frames_in", "frames_in", "whole frames received"),
    ("frames_out", "frames_out", "frames sent"),
    ("bytes_in", "bytes_in", "bytes received"),
    ("bytes_out", "bytes_out", "bytes sent"),
    ("stray", "stray_responses", "responses that nobody waited for"),
    ("failed", "requests_failed", "requests whose responder failed"),
    ("overloaded", "requests_overloaded", "requests refused: too many under way"),
    ("congestions", "congestions", "times that a peer was not read until it read"),
)


def request_name(code: int) -> str:
    """A request code as a label: its name in lower case, its number if unknown."""
    if code == NOT_SERVED:
        return "not_served"
    try:
        return RequestCode(code).name.lower()
    except ValueError:
        return str(code)


def response_name(code: int) -> str:
    """A response code as a label: its name in lower case, its number if unknown."""
    try:
        return ResponseCode(code).name.lower()
    except ValueError:
        return str(code)


def add_port(
    samples: Samples, port: str, group: ConnectionGroup, latencies: bool = True
) -> None:
    """Add what one port counts.

    @param port: its name as a label.
    @param latencies: whether the latencies of requests are wanted.
    """
    samples.gauge(
        "rocketbroker_connections",
        "connections that are open",
        len(group.connections),
        port=port,
    )
    for attribute, name, words in _COUNTS:
        value = getattr(group.counts, attribute)
        samples.counter(f"rocketbroker_{name}_total", words, value, port=port)
    if not latencies:
        return
    for (request, response), found in sorted(group.table.latencies.items()):
        samples.histogram(
            "rocketmq_rpc_latency_milliseconds",
            "from the arrival of a request to its answer",
            LATENCY_BOUNDS_MS,
            found.buckets,
            found.total_ms,
            protocol_type="remoting",
            port=port,
            request_code=request_name(request),
            response_code=response_name(response),
            is_long_polling="false",
            result="success",
        )

# -*- test-case-name: tests.metrics.test_remoting_families -*-
"""The counters of a server's ports.

The names that begin with rocketmq_ are RocketMQ's (C{docs/facts/security-metrics.md
5}); those that begin with rocketbroker_ are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from rocketbroker.metrics.samples import Samples
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.remoting.counts import LATENCY_BOUNDS_MS
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.remoting.table import NOT_SERVED
from rocketbroker.wire.codes import RequestCode, ResponseCode

#: Counters of a port: attribute, name, meaning.
_COUNTS: Final = (
    ("accepted", "rocketbroker_connections_accepted_total", "connections accepted"),
    (
        "broken",
        "rocketbroker_connections_broken_total",
        "connections closed because the peer broke the protocol",
    ),
    (
        "idle",
        "rocketbroker_connections_idle_total",
        "connections closed because they were idle",
    ),
    (
        "stalled",
        "rocketbroker_connections_stalled_total",
        "connections closed because they kept memory for which others wait",
    ),
    (
        "pauses",
        "rocketbroker_memory_pauses_total",
        "times that a connection waited because buffers took all memory they may",
    ),
    (
        "refused",
        "rocketbroker_connections_refused_total",
        "connections that could not be accepted",
    ),
    (
        "lost",
        "rocketbroker_connections_lost_total",
        "connections that the peer or the network ended",
    ),
    ("frames_in", "rocketbroker_frames_in_total", "frames received"),
    ("frames_out", "rocketbroker_frames_out_total", "frames sent"),
    ("bytes_in", "rocketbroker_bytes_in_total", "bytes received"),
    ("bytes_out", "rocketbroker_bytes_out_total", "bytes sent"),
    (
        "stray",
        "rocketbroker_stray_responses_total",
        "responses without a request that waits for them",
    ),
    (
        "failed",
        "rocketbroker_requests_failed_total",
        "requests whose responder failed",
    ),
    (
        "overloaded",
        "rocketbroker_requests_overloaded_total",
        "requests refused because too many were under way, or unread answers took too "
        "much memory",
    ),
    (
        "overdue",
        "rocketbroker_requests_overdue_total",
        "requests refused because they waited too long to be begun",
    ),
    (
        "congestions",
        "rocketbroker_backpressure_total",
        "times that reading from a peer was paused because it did not read",
    ),
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
    """Add the counters of one port.

    @param port: its name as a label.
    @param latencies: whether the latencies of requests are wanted.
    """
    samples.gauge(
        "rocketbroker_connections",
        "connections that are open",
        len(group.connections),
        port=port,
    )
    if group.max_connections:
        samples.gauge(
            "rocketbroker_connections_limit",
            "connections that the limit of open files allows, of all ports",
            group.max_connections,
            port=port,
        )
    for attribute, name, words in _COUNTS:
        value = getattr(group.counts, attribute)
        samples.counter(name, words, value, port=port)
    if not latencies:
        return
    for (request, response), found in sorted(group.table.latencies.items()):
        samples.histogram(
            "rocketmq_rpc_latency_milliseconds",
            "from the arrival of a request to its response",
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


def add_longest_turns(
    samples: Samples,
    ports: Mapping[str, ConnectionGroup],
    slices: Slices,
    calls: Iterable[PeriodicCall],
) -> None:
    """Add how long the reactor was kept, by what kept it.

    @param ports: they share their turns.
    """
    group = next(iter(ports.values()), None)
    if group is None:
        return
    found = [(f"slices of {name}", each) for name, each in slices.longest.items()]
    for work, longest in group.turns.longest.items():
        name = work if isinstance(work, str) else request_name(work)
        found.append((name, longest))
    found += [(call.name, call.longest) for call in calls]
    now = group.clock.seconds()
    for name, longest in found:
        seconds = longest.value(now)
        if seconds:
            samples.gauge(
                "rocketbroker_longest_turn_seconds",
                "the longest time for which nobody else was served, of the last minute "
                "or two, by what took most of it",
                seconds,
                work=name.replace(" ", "_"),
            )

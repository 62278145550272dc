# -*- test-case-name: tests.metrics.test_broker_families -*-
"""Failures of the broker's own work, and its limits, as Prometheus sees them."""

from __future__ import annotations

from rocketbroker.broker.broker import Broker
from rocketbroker.metrics.samples import Samples
from rocketbroker.remoting.periodic import PeriodicCall


def periodic_calls(broker: Broker) -> list[PeriodicCall]:
    """All that a broker does again and again."""
    parts = broker, broker.scheduler, broker.cleanup, broker.long_polling
    return [call for part in parts for call in part.periodic.calls]


def add_periodic(samples: Samples, broker: Broker) -> None:
    """Add the failures of work that is done again and again."""
    for call in periodic_calls(broker):
        samples.counter(
            "rocketbroker_periodic_failures_total",
            "failures of periodic work, which goes on",
            call.failures,
            work=call.name,
        )


def add_limits(samples: Samples, broker: Broker) -> None:
    """Add the refusals by limits of what clients create."""
    for limit, refused in (
        ("topics", broker.topics.limit.refused),
        ("groups", broker.groups.limit.refused),
        ("broadcast_clients", broker.broadcasts.refused),
    ):
        samples.counter(
            "rocketbroker_limit_refused_total",
            "uses of topics, groups and broadcasting clients beyond their limit",
            refused,
            limit=limit,
        )

# -*- test-case-name: tests.metrics.test_broker_families -*-
"""Failures of the broker's own work, as Prometheus sees them."""

from __future__ import annotations

from rocketbroker.broker.broker import Broker
from rocketbroker.metrics.samples import Samples


def add_periodic(samples: Samples, broker: Broker) -> None:
    """Add the failures of work that is done again and again."""
    for part in (broker, broker.scheduler, broker.cleanup, broker.long_polling):
        for call in part.periodic.calls:
            samples.counter(
                "rocketbroker_periodic_failures_total",
                "times that a periodic work failed; it goes on",
                call.failures,
                work=call.name,
            )

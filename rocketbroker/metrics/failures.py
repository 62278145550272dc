# -*- test-case-name: tests.metrics.test_broker_families -*-
"""Failures of the broker's own work, and its limits, as Prometheus sees them."""

from __future__ import annotations

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.services import Services
from rocketbroker.metrics.samples import Samples


def add_services(samples: Samples, services: Services) -> None:
    """Add what each service did: work that is done again and again."""
    for row in services.to_json():
        work = row["name"]
        samples.counter(
            "rocketbroker_periodic_runs_total",
            "runs of periodic work",
            row["runs"],
            work=work,
        )
        samples.counter(
            "rocketbroker_periodic_failures_total",
            "failures of periodic work, which goes on",
            row["failures"],
            work=work,
        )
        if row["runs"]:
            samples.gauge(
                "rocketbroker_periodic_last_run_timestamp_seconds",
                "when the last run of periodic work began",
                row["lastRunTimestamp"] / 1000,
                work=work,
            )
            samples.gauge(
                "rocketbroker_periodic_last_run_seconds",
                "how long the last run of periodic work took",
                row["lastRunMillis"] / 1000,
                work=work,
            )


def add_access(samples: Samples, broker: Broker) -> None:
    """Add the requests that access control has refused."""
    if broker.access is not None:
        samples.counter(
            "rocketbroker_access_refused_total",
            "requests that access control has refused",
            broker.access.refused,
        )


def add_limits(samples: Samples, broker: Broker) -> None:
    """Add the refusals by limits: of what clients create, of waiting, and of pulls."""
    for limit, refused in (
        ("topics", broker.metadata.topics.limit.refused),
        ("groups", broker.metadata.groups.limit.refused),
        ("broadcast_clients", broker.pull.broadcasts.refused),
    ):
        samples.counter(
            "rocketbroker_limit_refused_total",
            "uses of topics, groups and broadcasting clients beyond their limit",
            refused,
            limit=limit,
        )
    for waiting in broker.context.waiting.all.values():
        samples.counter(
            "rocketbroker_waiting_requests_refused_total",
            "requests refused because they waited too long for a thread or for slices",
            waiting.refused,
            family=waiting.code.name.lower(),
        )
    for reason, count in (
        ("flow_control", broker.pull.cold_flow.refused),
        ("overloaded", broker.pull.pulling.cold_overloads),
    ):
        samples.counter(
            "rocketbroker_cold_pulls_refused_total",
            "pulls of old messages refused: their group has read too many of them, or "
            "too many wait for the disk",
            count,
            reason=reason,
        )
    samples.counter(
        "rocketbroker_long_polling_refused_total",
        "pulls that were not held, because too many are",
        broker.pull.long_polling.refused,
    )
    samples.counter(
        "rocketbroker_groups_disabled_total",
        "groups switched off because they read far behind",
        broker.pull.slow_groups.disabled,
    )

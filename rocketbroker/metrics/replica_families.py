# -*- test-case-name: tests.metrics.test_replica_families -*-
"""Masters and slaves, as Prometheus sees them.

A master's figures of its slaves have the slave's host as label and not its port, which
is another after each connection. Of several slaves on one host the one that is behind
most is shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.replicas.ha_status import SYNC_MASTER, TRANSFER
from rocketbroker.broker.roles import Role
from rocketbroker.metrics.samples import Samples
from rocketbroker.replication.interfaces import IReplica


def add_replicas(samples: Samples, broker: Broker, now_ms: int) -> None:
    """Add the role, and what belongs to it."""
    role = broker.services.role
    for each in Role:
        samples.gauge(
            "rocketbroker_role",
            "1 for what the broker is now: master, slave or acting_master",
            int(each is role),
            role=each.name.lower(),
        )
    for reason, count in (
        ("disk", broker.appends.group_commit.timeouts),
        ("copies", broker.appends.group_commit.slave_timeouts),
    ):
        samples.counter(
            "rocketbroker_sends_timed_out_total",
            "sends that are stored, and waited for the disk or for copies in vain",
            count,
            reason=reason,
        )
    if role is Role.MASTER:
        _add_slaves(samples, broker, now_ms)
    else:
        _add_master(samples, broker)


def _add_slaves(samples: Samples, broker: Broker, now_ms: int) -> None:
    """What a master knows of its slaves."""
    server, end = broker.replicas.server, broker.store.published_position
    options = broker.settings.store
    is_sync = options.broker_role == SYNC_MASTER
    for name, words, value in (
        (
            "rocketbroker_copies_wanted",
            "copies that sends wait for, the broker's own included",
            options.in_sync_replicas if is_sync else 1,
        ),
        (
            "rocketbroker_copies_in_sync",
            "copies that are not far behind, the broker's own included",
            server.in_sync(end),
        ),
        (
            "rocketbroker_slaves_connected",
            "slaves that are connected",
            len(server.replicas),
        ),
    ):
        samples.gauge(name, words, value)
    for host, slave in worst_by_host(server.replicas).items():
        samples.gauge(
            "rocketbroker_slave_lag_bytes",
            "bytes of the log that a slave has not reported yet",
            max(0, end - slave.acked),
            slave=host,
        )
        if slave.acked >= end or slave.caught_up_ms:
            samples.gauge(
                "rocketbroker_slave_lag_milliseconds",
                "for how long a slave has not had all; once it has had all",
                lag_ms(slave, end, now_ms),
                slave=host,
            )
        samples.gauge(
            "rocketbroker_slave_bytes_per_second",
            "what a slave was sent in the last second",
            slave.bytes_per_second,
            slave=host,
        )


def _add_master(samples: Samples, broker: Broker) -> None:
    """What a slave knows of its master."""
    link, progress = broker.replicas.link, broker.replicas.progress
    samples.gauge(
        "rocketbroker_master_link_up",
        "1 if the slave follows its master, 0 if not",
        int(link.state == TRANSFER and not link.problem),
    )
    for name, words, value in (
        (
            "rocketbroker_master_behind_bytes",
            "bytes of the master's log that the slave lacks, as far as it knows",
            progress.behind(),
        ),
        (
            "rocketbroker_master_behind_milliseconds",
            "for how long the slave has not had all; once it has had all",
            progress.behind_ms(),
        ),
    ):
        if value is not None:
            samples.gauge(name, words, value)
    samples.gauge(
        "rocketbroker_master_bytes_per_second",
        "what came from the master in the last second",
        link.bytes_per_second,
    )
    samples.gauge(
        "rocketbroker_master_heard_timestamp_seconds",
        "when bytes last came from the master; 0: not yet",
        link.last_read_ms / 1000,
    )
    samples.counter(
        "rocketbroker_master_received_bytes_total",
        "bytes of the master's log that were stored",
        link.received,
    )
    for table in broker.metadata_sync.tables:
        samples.gauge(
            "rocketbroker_metadata_copied_timestamp_seconds",
            "when a table of the master was last copied; 0: not yet",
            table.last_ms / 1000,
            table=table.name,
        )
        samples.counter(
            "rocketbroker_metadata_copy_failures_total",
            "copies of a table of the master that failed",
            table.failures,
            table=table.name,
        )


def worst_by_host(replicas: Iterable[IReplica]) -> dict[str, IReplica]:
    """Of each host the slave that is behind most."""
    found: dict[str, IReplica] = {}
    for each in replicas:
        host = each.address.rpartition(":")[0]
        if host not in found or each.acked < found[host].acked:
            found[host] = each
    return found


def lag_ms(slave: IReplica, end: int, now_ms: int) -> int:
    """For how long a slave has not had all."""
    return 0 if slave.acked >= end else max(0, now_ms - slave.caught_up_ms)

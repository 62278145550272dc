# -*- test-case-name: tests.cli.cluster.verbs.test_broker -*-
"""C{rocketbroker broker} and C{rocketbroker cluster}."""

from __future__ import annotations

from typing import Final

import click

from rocketbroker.blocking.routes import MASTER
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import DRY_RUN, YES, changing, confirm, showing
from rocketbroker.cli.cluster.requests import brokers
from rocketbroker.cli.exit_status import USAGE, Failure, NotThere
from rocketbroker.cli.formats import Moment, Size, Span, matches
from rocketbroker.cli.lazycommands import LazyCommands, VerbPath
from rocketbroker.cli.rows import Rows
from rocketbroker.config.keyed import did_you_mean
from rocketbroker.wire.bodies.replicas import HAConnectionRuntimeInfo, HARuntimeInfo
from rocketbroker.wire.codes import RequestCode

BROKER: Final = click.argument("broker")

#: The last states of requests that wait for threads, in RocketMQ's order.
_POOLS: Final = ("send", "pull", "litePull", "query", "ack", "endTransaction")


@click.group(cls=LazyCommands)
def cluster() -> None:
    """Clusters: list brokers with versions, rates and disks."""


@cluster.command("ls")
@click.argument("name", required=False)
@showing
def cluster_ls(cluster: Cluster, rows: Rows, name: str | None) -> None:
    """List all brokers, or those of the cluster NAME.

    VERSION is RocketMQ's, or the one that a broker is like; ROCKETBROKER is the version
    of a rocketbroker. IN and OUT are messages a second in the last 10 s, IN_TODAY and
    OUT_TODAY since midnight; LOG is what is stored, BEHIND what is not in the queues
    yet.
    """
    found = cluster.brokers(name)
    for broker in found:
        row: dict[str, object] = {
            "cluster": broker.cluster,
            "broker": broker.name,
            "id": broker.broker_id,
            "address": broker.address,
        }
        asked = cluster.from_each(
            [broker], lambda b: brokers.runtime_info(cluster, b), True
        )
        row |= brokers.summary(asked[0][1] if asked else {})
        rows.add("broker", row)
    if not found:
        raise NotThere("The name server knows no broker: is one running?")


@click.group(
    cls=LazyCommands,
    places={
        "run": VerbPath(
            "rocketbroker.cli.server.run:broker_run",
            "Start a broker in the foreground: --help shows its flags.",
        )
    },
)
def broker() -> None:
    """Brokers: run, status, replicas, services, settings, set, clean.

    A broker is started by "rocketbroker broker run -c FILE -n NAMESRV", by "twistd
    rocketbroker" with the same flags as a daemon, and with a name server by
    "rocketbroker standalone".
    """


@broker.command("status")
@BROKER
@click.option("--all", "every_value", is_flag=True, help="All that it says, as it is.")
@showing
def broker_status(cluster: Cluster, rows: Rows, broker: str, every_value: bool) -> None:
    """Show how a broker is. BROKER is a name (its master is asked) or HOST:PORT."""
    one = cluster.one_broker(broker)
    info = brokers.runtime_info(cluster, one)
    if every_value:
        for name, value in sorted(info.items()):
            rows.add("value", {"name": name, "value": value})
        return
    now = cluster.client.settings.machine.wall_ms()
    booted = brokers.number(info, "bootTimestamp")
    row: dict[str, object] = {
        "cluster": one.cluster,
        "broker": one.name,
        "id": one.broker_id,
        "address": one.address,
        **brokers.summary(info),
        "uptime": None if booted is None else Span(now - booted),
        "earliest_message": Moment(
            brokers.number(info, "earliestMessageTimeStamp") or 0
        ),
        "sends": brokers.number(info, "putMessageTimesTotal"),
        "failed_sends": brokers.number(info, "putMessageFailedTimes"),
        "mean_size": info.get("putMessageAverageSize"),
        "longest_send_ms": brokers.number(info, "putMessageEntireTimeMax"),
        "unflushed": info.get("remainHowManyDataToFlush"),
        "disk": info.get("commitLogDirCapacity"),
    }
    for pool in _POOLS:
        waiting = brokers.number(info, f"{pool}ThreadPoolQueueSize")
        if waiting:
            row[f"{pool}_waiting"] = waiting
    rows.details("broker", row)


@broker.command("services")
@BROKER
@showing
def broker_services(cluster: Cluster, rows: Rows, broker: str) -> None:
    """Show what a rocketbroker does again and again, and when it last did."""
    for row in brokers.services(cluster, cluster.one_broker(broker)):
        last = row.get("lastRunTimestamp")
        took = row.get("lastRunMillis")
        rows.add(
            "service",
            {
                "service": row["name"],
                "every": Span(row["periodMillis"]),
                "last": None if last is None else Moment(last),
                "took_ms": took,
                "runs": row["runs"],
                "failures": row["failures"],
                "reason": row["reason"],
            },
        )


@broker.command("replicas")
@click.argument("broker", required=False)
@click.option("--cluster", "name", metavar="NAME", help="Those of a cluster.")
@showing
def broker_replicas(
    cluster: Cluster, rows: Rows, broker: str | None, name: str | None
) -> None:
    """Show how replication is: of all brokers, or of BROKER (a name, or HOST:PORT).

    First the masters, then their slaves as they see them, then the slaves as they see
    themselves. ACKED is where a slave's log ends, BEHIND what it lacks, and LAG for how
    long; RocketMQ's brokers do not say LAG, STATE and PROBLEM, those before 5.0
    nothing.
    """
    found = [
        (one, info, role)
        for one, (info, role) in cluster.from_each(
            cluster.brokers(name, broker),
            lambda one: (
                brokers.replication(cluster, one),
                brokers.settings(cluster, one).get("brokerRole"),
            ),
        )
    ]
    now = cluster.client.settings.machine.wall_ms()
    masters = [each for each in found if each[0].broker_id == MASTER]
    for one, info, role in masters:
        rows.add("master", _master(one, info, role))
    for one, info, _ in masters:
        for slave in info.ha_connection_info if info is not None else ():
            rows.add("slave", _slave_of(one, slave, now))
    for one, info, role in found:
        if one.broker_id != MASTER:
            rows.add("broker", _slave(one, info, role))


def _master(
    one: Broker, info: HARuntimeInfo | None, role: str | None
) -> dict[str, object]:
    """A master, whatever it says of itself."""
    row: dict[str, object] = {
        "broker": one.name,
        "address": one.address,
        "role": role,
        "end": None,
        "slaves": None,
        "in_sync": None,
    }
    if info is not None:
        row["end"] = info.master_commit_log_max_offset
        row["slaves"] = len(info.ha_connection_info)
        row["in_sync"] = info.in_sync_slave_nums
    return row


def _slave_of(
    master: Broker, slave: HAConnectionRuntimeInfo, now: int
) -> dict[str, object]:
    """A slave, as its master sees it."""
    caught_up = slave.caught_up_timestamp
    lag = None if not caught_up else Span(max(0, now - caught_up))
    acked = slave.slave_ack_offset
    return {
        "of": master.name,
        "slave": slave.addr,
        "acked": acked if acked >= 0 else None,
        "behind": Size(slave.diff) if acked >= 0 else None,
        "lag": Span(0) if slave.diff <= 0 else lag,
        "in_sync": slave.in_sync,
        "sent_to": slave.transfer_from_where,
        "rate": Size(slave.transferred_byte_in_second),
        "problem": slave.problem,
    }


def _slave(
    one: Broker, info: HARuntimeInfo | None, role: str | None
) -> dict[str, object]:
    """A slave, as it sees itself."""
    link = info.ha_client_runtime_info if info is not None else None
    return {
        "broker": one.name,
        "id": one.broker_id,
        "address": one.address,
        "role": role,
        "master": link and link.master_addr,
        "end": link and link.max_offset,
        "rate": link and Size(link.transferred_byte_in_second),
        "heard": link and Moment(link.last_read_timestamp),
        "reported": link and Moment(link.last_write_timestamp),
        "master_flush_offset": link and link.master_flush_offset,
        "state": link and link.state,
        "problem": link and link.problem,
    }


@broker.command("reset-master-flush-offset")
@BROKER
@click.argument("offset", type=click.IntRange(min=0))
@YES
@changing
def broker_reset_master_flush_offset(
    cluster: Cluster, rows: Rows, broker: str, offset: int, yes: bool
) -> None:
    """Tell a slave where its master's log ended when the master started.

    BROKER is the slave's HOST:PORT. Nothing depends on that number: 'broker replicas'
    and mqadmin's haStatus show it.
    """
    one = cluster.one_broker(broker)
    if one.broker_id == MASTER:
        raise Failure(f"{one.name} at {one.address} is a master: give a slave.", USAGE)
    confirm(f"Set the master's flush offset of {one.address} to {offset}", yes)
    brokers.reset_master_flush_offset(cluster, one, offset)
    rows.add(
        "change",
        {"broker": one.name, "address": one.address, "master_flush_offset": offset},
    )


@broker.command("clean")
@BROKER
@click.option("--log", is_flag=True, help="Messages that have expired, at any hour.")
@click.option("--queues", is_flag=True, help="Queues of messages that are gone.")
@click.option("--topics", is_flag=True, help="Queues of topics that are deleted.")
@YES
@changing
def broker_clean(
    cluster: Cluster,
    rows: Rows,
    broker: str,
    log: bool,
    queues: bool,
    topics: bool,
    yes: bool,
) -> None:
    """Remove what a broker's store does not need any more, now."""
    wanted = [
        (code, name)
        for is_wanted, code, name in (
            (log, RequestCode.DELETE_EXPIRED_COMMITLOG, "log"),
            (queues, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, "queues"),
            (topics, RequestCode.CLEAN_UNUSED_TOPIC, "topics"),
        )
        if is_wanted
    ]
    if not wanted:
        raise Failure("Give --log, --queues or --topics.", USAGE)
    one = cluster.one_broker(broker)
    confirm(f"Remove expired files of {one.name}", yes)
    for code, name in wanted:
        cluster.ask(one.address, code)
        rows.add("change", {"broker": one.name, "what": name, "outcome": "asked for"})


@broker.command("settings")
@BROKER
@click.argument("pattern", default="*")
@showing
def broker_settings(cluster: Cluster, rows: Rows, broker: str, pattern: str) -> None:
    """Show the settings in force whose names match PATTERN, as 'flush*', or hold it."""
    one = cluster.one_broker(broker)
    found = [
        (name, value)
        for name, value in sorted(brokers.settings(cluster, one).items())
        if matches(name.lower(), pattern.lower())
    ]
    if not found:
        raise NotThere(f"{one.name} has no setting {pattern}.")
    for name, value in found:
        rows.add("setting", {"name": name, "value": value})


@broker.command("set")
@BROKER
@click.argument("changes", nargs=-1, required=True, metavar="NAME=VALUE...")
@YES
@DRY_RUN
@changing
def broker_set(
    cluster: Cluster,
    rows: Rows,
    broker: str,
    changes: tuple[str, ...],
    yes: bool,
    dry_run: bool,
) -> None:
    """Change settings of a running broker.

    A broker keeps them in its settings file. One that does not take a change is asked
    again: what counts is what it says afterwards.
    """
    wanted = brokers.parse_changes(changes)
    one = cluster.one_broker(broker)
    before = brokers.settings(cluster, one)
    for name in wanted:
        if name not in before:
            raise NotThere(
                f"{one.name} has no setting {name}.{did_you_mean(name, before)} "
                f"rocketbroker broker settings {one.name} shows all."
            )
    if not dry_run:
        what = ", ".join(f"{n} from {before[n]} to {v}" for n, v in wanted.items())
        confirm(f"Change on {one.name} {what}", yes)
        brokers.change_settings(cluster, one, wanted)
    after = brokers.settings(cluster, one) if not dry_run else before | wanted
    for name, value in wanted.items():
        rows.add(
            "setting",
            {
                "name": name,
                "before": before[name],
                "after": after.get(name),
                "outcome": "to be changed"
                if dry_run
                else "changed"
                if after.get(name) == value
                else "not taken",
            },
        )
    if any(after.get(name) != value for name, value in wanted.items()):
        raise Failure(f"{one.name} did not take all; its log says why.")

# -*- test-case-name: tests.cli.cluster.verbs.test_group -*-
"""C{rocketbroker group}."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import attrs
import click

from rocketbroker.blocking.answers import PASSING
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import (
    DRY_RUN,
    GROUP,
    YES,
    changing,
    confirm,
    report,
    showing,
)
from rocketbroker.cli.cluster.requests import groups, topics
from rocketbroker.cli.cluster.requests.clients import client_row
from rocketbroker.cli.cluster.verbs.topic import (
    ANY_NAME,
    BROKER,
    CLUSTER,
    PATTERN,
    masters_of_one,
)
from rocketbroker.cli.exit_status import USAGE, Failure
from rocketbroker.cli.formats import Moment, count_of, matches
from rocketbroker.cli.lazycommands import LazyCommands, VerbPath
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import (
    BrokerError,
    RequestTimeout,
    SubscriptionGroupNotExist,
)
from rocketbroker.records import names
from rocketbroker.wire.bodies.clients import ClientConnection, ConsumerConnection
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.statistics import ConsumeStats, OffsetWrapper

#: Options that set what they are called, by the setting's name.
_SETTINGS: Final = {
    "consume_enable": click.option(
        "--consume/--no-consume", "consume_enable", default=None
    ),
    "consume_broadcast_enable": click.option(
        "--broadcast/--no-broadcast", "consume_broadcast_enable", default=None
    ),
    "retry_max_times": click.option(
        "--retries",
        "retry_max_times",
        type=click.IntRange(-1),
        metavar="N",
        help="How often a message is consumed again before it is a dead letter.",
    ),
    "retry_queue_nums": click.option(
        "--retry-queues", "retry_queue_nums", type=click.IntRange(1), metavar="N"
    ),
    "consume_timeout_minute": click.option(
        "--consume-timeout",
        "consume_timeout_minute",
        type=click.IntRange(1),
        metavar="MINUTES",
    ),
}


@click.group(
    cls=LazyCommands,
    places={
        "reset": VerbPath(
            "rocketbroker.cli.cluster.verbs.reset:group_reset",
            "Let a group go on at another place of a topic.",
        )
    },
)
def group() -> None:
    """Consumer groups: list, show lags, create, update, reset, delete."""


@group.command("ls")
@PATTERN
@click.option("--all", "every_kind", is_flag=True, help="Also the system's.")
@click.option("--names", "only_names", is_flag=True, help="Only names, one in a line.")
@showing
def group_ls(
    cluster: Cluster, rows: Rows, pattern: str, every_kind: bool, only_names: bool
) -> None:
    """List groups with their lags: those whose names match PATTERN, as in 'bill*'.

    A PATTERN without a star is a part of the name.

    LAG is the number of messages that are not consumed yet, retries included.
    """
    found: dict[str, list[Broker]] = {}
    for broker, table in cluster.from_each(
        cluster.masters(), lambda broker: groups.all_configs(cluster, broker)
    ):
        for name in table:
            found.setdefault(name, []).append(broker)
    # Who names groups is not to wait for all the others.
    ask_once = pattern == ANY_NAME and not only_names
    known = _stats_of_all(cluster, found) if ask_once else {}
    for name, brokers in sorted(found.items()):
        is_hidden = names.is_system_group(name) and not every_kind
        if is_hidden or not matches(name, pattern):
            continue
        if only_names:
            rows.line("group", {"group": name})
            continue
        try:
            parties = members_of(cluster, brokers, name)
            stats = known.get(name)
            if stats is None:
                stats = stats_of(cluster, brokers, name)
        except BrokerError as problem:
            click.echo(f"rocketbroker: {name}: {problem}", err=True)
            continue
        rows.add("group", _summary(name, parties, stats))


def members_of(
    cluster: Cluster, brokers: list[Broker], name: str
) -> list[tuple[Broker, ConsumerConnection]]:
    """The brokers to which members of a group are connected, with these."""
    found = cluster.from_each(brokers, lambda b: groups.members(cluster, b, name))
    return [(broker, party) for broker, party in found if party is not None]


def _stats_of_all(
    cluster: Cluster, found: dict[str, list[Broker]]
) -> dict[str, list[ConsumeStats]]:
    """Where groups are on all of their brokers, with one request to each broker.

    Groups are left out that are on a broker which does not answer it: one odd group is
    enough for that, and asked for singly the others can be told.

    @param found: the brokers of each group.
    """
    tables: dict[Broker, dict[str, list[ConsumeStats]]] = {}
    for broker in {broker for brokers in found.values() for broker in brokers}:
        with contextlib.suppress(BrokerError, *PASSING):
            tables[broker] = groups.all_progress(cluster, broker)
    return {
        name: [stats for broker in brokers for stats in tables[broker][name]]
        for name, brokers in found.items()
        if all(name in tables.get(broker, {}) for broker in brokers)
    }


def stats_of(
    cluster: Cluster, brokers: list[Broker], name: str, topic: str | None = None
) -> list[ConsumeStats]:
    """Where a group is on each broker."""
    found = cluster.from_each(
        brokers, lambda b: groups.progress(cluster, b, name, topic)
    )
    return [stats for _, stats in found]


def lag(offsets: OffsetWrapper) -> int:
    """How many messages of a queue a group has not consumed."""
    return max(0, offsets.broker_offset - offsets.consumer_offset)


def _summary(
    name: str,
    parties: list[tuple[Broker, ConsumerConnection]],
    stats: list[ConsumeStats],
) -> dict[str, object]:
    """A group in one row."""
    clients = {one.client_id for _, party in parties for one in party.connection_set}
    tables = [
        (queue, offsets) for one in stats for queue, offsets in one.offset_table.items()
    ]
    party = parties[0][1] if parties else None
    topic_names = {queue.topic for queue, _ in tables}
    return {
        "group": name,
        "members": len(clients),
        "model": (party.message_model or "").lower() if party else "",
        "type": _type_of(party),
        "topics": len({n for n in topic_names if not names.is_retry_topic(n)}),
        "lag": sum(lag(offsets) for _, offsets in tables),
        "tps": round(sum((one.consume_tps for one in stats), 0.0), 1),
        "last_consumed": Moment(
            max((offsets.last_timestamp for _, offsets in tables), default=0)
        ),
    }


def _type_of(party: ConsumerConnection | None) -> str:
    kinds = {
        "CONSUME_ACTIVELY": "pull",
        "CONSUME_PASSIVELY": "push",
        "CONSUME_POP": "pop",
    }
    return kinds.get(party.consume_type or "", "") if party else ""


@group.command("show")
@GROUP
@click.option("-t", "--topic", metavar="TOPIC", help="Only its queues.")
@showing
def group_show(cluster: Cluster, rows: Rows, group: str, topic: str | None) -> None:
    """Show a group's settings, members, and lag in each queue.

    MEMBER is the client that consumes a queue, as far as clients say so. LAST_CONSUMED
    is when the last message that was consumed had been stored.
    """
    configs = [
        (broker, table[group])
        for broker, table in cluster.from_each(
            cluster.masters(), lambda broker: groups.all_configs(cluster, broker)
        )
        if group in table
    ]
    brokers = [broker for broker, _ in configs] or cluster.masters()
    parties = members_of(cluster, brokers, group)
    stats = stats_of(cluster, brokers, group, topic)
    if not configs and not parties and not any(one.offset_table for one in stats):
        raise SubscriptionGroupNotExist(f"There is no group {group}")
    rows.add("group", _summary(group, parties, stats))
    for broker, config in configs:
        rows.add("settings", _settings_row(broker, config))
    clients = {
        one.client_id: (broker, one)
        for broker, party in parties
        for one in party.connection_set
    }
    for _, (_, client) in sorted(clients.items()):
        rows.add("member", client_row(client))
    subscriptions = {
        subscription.topic: subscription
        for _, party in parties
        for subscription in party.subscription_table.values()
    }
    for _, wanted in sorted(subscriptions.items()):
        row = {"topic": wanted.topic, "expression": wanted.sub_string}
        rows.add("subscription", {**row, "type": wanted.expression_type})
    owners = _owners(cluster, group, clients)
    for one in stats:
        for queue, offsets in sorted(one.offset_table.items()):
            rows.add("queue", _queue_row(queue, offsets, owners.get(queue)))


def _owners(
    cluster: Cluster, group: str, clients: dict[str, tuple[Broker, ClientConnection]]
) -> dict[MessageQueue, str]:
    """Which client consumes which queue, as far as clients say so in time."""
    owners: dict[MessageQueue, str] = {}
    try:
        for client_id, (broker, _) in clients.items():
            found = groups.queues_of_member(cluster, broker, group, client_id)
            owners |= dict.fromkeys(found, client_id)
    except RequestTimeout:
        click.echo(f"rocketbroker: {client_id} does not say what it consumes", err=True)
    return owners


def _queue_row(
    queue: MessageQueue, offsets: OffsetWrapper, owner: str | None
) -> dict[str, object]:
    return {
        "topic": queue.topic,
        "broker": queue.broker_name,
        "queue": queue.queue_id,
        "end": offsets.broker_offset,
        "committed": offsets.consumer_offset,
        "lag": lag(offsets),
        "in_flight": max(0, offsets.pull_offset - offsets.consumer_offset),
        "last_consumed": Moment(offsets.last_timestamp),
        "member": owner,
    }


def _settings_row(broker: Broker, config: SubscriptionGroupConfig) -> dict[str, object]:
    return {
        "broker": broker.name,
        "address": broker.address,
        "consume": config.consume_enable,
        "broadcast": config.consume_broadcast_enable,
        "retries": config.retry_max_times,
        "retry_queues": config.retry_queue_nums,
        "consume_timeout_min": config.consume_timeout_minute,
    }


def _settings(verb: Any) -> Any:
    for option in reversed(_SETTINGS.values()):
        verb = option(verb)
    return verb


@group.command("create")
@GROUP
@CLUSTER
@BROKER
@_settings
@DRY_RUN
@changing
def group_create(
    cluster: Cluster,
    rows: Rows,
    group: str,
    in_cluster: str | None,
    broker: str | None,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Create a group on all masters.

    Where there are several clusters, give one. A group that is there is refused.
    """
    problem = names.group_problem(group)
    if problem is not None:
        raise Failure(problem, USAGE)
    masters = masters_of_one(cluster, in_cluster, broker)
    for master in masters:
        if group in groups.all_configs(cluster, master):
            raise Failure(
                f"{group} is there already on {master.name}: rocketbroker group update "
                "changes it."
            )
    config = _changed(SubscriptionGroupConfig(group_name=group), wanted)
    for master in masters:
        if not dry_run:
            groups.put(cluster, master, config)
        report(rows, "group", group, master, "created", dry_run)


@group.command("update")
@GROUP
@CLUSTER
@BROKER
@_settings
@DRY_RUN
@changing
def group_update(
    cluster: Cluster,
    rows: Rows,
    group: str,
    in_cluster: str | None,
    broker: str | None,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Change what is given of a group's settings, where the group is."""
    is_there = False
    for master in cluster.masters(in_cluster, broker):
        before = groups.all_configs(cluster, master).get(group)
        if before is None:
            continue
        is_there = True
        config = _changed(before, wanted)
        if config == before:
            report(rows, "group", group, master, "unchanged", False)
            continue
        if not dry_run:
            groups.put(cluster, master, config)
        report(rows, "group", group, master, "changed", dry_run)
    if not is_there:
        raise SubscriptionGroupNotExist(f"There is no group {group}")


@group.command("delete")
@GROUP
@CLUSTER
@click.option("--keep-offsets", is_flag=True, help="It may come again and go on.")
@click.option(
    "--topics",
    "with_topics",
    is_flag=True,
    help="Also its retry and dead-letter topics, with their messages.",
)
@YES
@DRY_RUN
@changing
def group_delete(
    cluster: Cluster,
    rows: Rows,
    group: str,
    in_cluster: str | None,
    keep_offsets: bool,
    with_topics: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete a group and its offsets.

    Members that go on make it again on brokers that create groups by themselves.
    """
    masters = [
        broker
        for broker, table in cluster.from_each(
            cluster.masters(in_cluster), lambda b: groups.all_configs(cluster, b)
        )
        if group in table
    ]
    if not masters:
        raise SubscriptionGroupNotExist(f"There is no group {group}")
    own_topics = [names.retry_topic(group), names.dlq_topic(group)]
    if not dry_run:
        parts = [] if keep_offsets else ["its offsets"]
        parts += ["its retry and dead-letter topics"] if with_topics else []
        what = f" with {' and '.join(parts)}" if parts else ""
        online = sum(
            len(p.connection_set) for _, p in members_of(cluster, masters, group)
        )
        verb = "is" if online == 1 else "are"
        still = f", while {count_of(online, 'member')} {verb} online" if online else ""
        confirm(f"Delete group {group}{what}{still}", yes)
    for master in masters:
        if not dry_run:
            groups.delete(cluster, master, group, not keep_offsets)
        report(rows, "group", group, master, "deleted", dry_run)
        for name in own_topics if with_topics and not dry_run else ():
            topics.delete(cluster, master, name)
    if with_topics and not dry_run:
        for name_server in cluster.name_servers:
            for name in own_topics:
                topics.forget(cluster, name_server, name, in_cluster)


def _changed(
    config: SubscriptionGroupConfig, wanted: dict[str, Any]
) -> SubscriptionGroupConfig:
    given = {name: wanted[name] for name in _SETTINGS if wanted[name] is not None}
    return attrs.evolve(config, **given)

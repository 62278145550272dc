# -*- test-case-name: tests.cli.cluster.verbs.test_clients -*-
"""C{rocketbroker consumer} and C{rocketbroker producer}: connected clients."""

from __future__ import annotations

import click

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import GROUP, showing
from rocketbroker.cli.cluster.requests import clients, groups
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.cli.formats import Moment, Size
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import RequestCodeNotSupported
from rocketbroker.wire.bodies.clients import ClientConnection
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.fields import Fields


@click.group(cls=LazyCommands)
def consumer() -> None:
    """Connected consumers: list, and what each says about itself."""


@click.group(cls=LazyCommands)
def producer() -> None:
    """Connected producers: list."""


def _row(group: str, broker: Broker, client: ClientConnection) -> dict[str, object]:
    """A connection of a client to a broker."""
    return {"group": group, **clients.client_row(client), "broker": broker.name}


@consumer.command("ls")
@click.argument("group", required=False)
@showing
def consumer_ls(cluster: Cluster, rows: Rows, group: str | None) -> None:
    """List the connected consumers of all groups, or of GROUP, on each broker.

    Exit status 3: GROUP has none.
    """
    any_found = False
    for broker, parties in cluster.from_each(
        cluster.masters(), lambda b: _consumers(cluster, b, group)
    ):
        for name, connected in parties.items():
            for one in connected:
                any_found = True
                rows.add("consumer", _row(name, broker, one))
    if group and not any_found:
        raise NotThere(f"No consumer of {group} is connected.")


def _consumers(
    cluster: Cluster, broker: Broker, group: str | None
) -> dict[str, list[ClientConnection]]:
    """The consumers of a group, or of all, by group."""
    names = [group] if group else sorted(groups.all_configs(cluster, broker))
    parties = {name: groups.members(cluster, broker, name) for name in names}
    return {name: p.connection_set for name, p in parties.items() if p is not None}


@consumer.command("show")
@GROUP
@click.argument("client", metavar="CLIENT")
@click.option("--stack", is_flag=True, help="Also the stacks of its threads.")
@showing
def consumer_show(
    cluster: Cluster, rows: Rows, group: str, client: str, stack: bool
) -> None:
    """Show what a consumer says about itself: settings, rates, queues.

    CLIENT is an id as 'consumer ls' shows it. The broker passes the question on.
    """
    asked = cluster.from_each(
        cluster.masters(), lambda b: _consumers(cluster, b, group)
    )
    connected = [
        broker
        for broker, parties in asked
        if any(one.client_id == client for one in parties.get(group, ()))
    ]
    if not connected:
        raise NotThere(
            f"{client} is not connected as a consumer of {group}. rocketbroker "
            f"consumer ls {group} shows who is."
        )
    cluster.unreachable.clear()  # the others do not matter any more
    info = groups.running_info(cluster, connected[0], group, client, stack)
    for name, value in sorted(info.texts("properties").items()):
        rows.add("property", {"name": name, "value": value})
    for topic, status in sorted(info.members("statusTable").items(), key=str):
        rows.add("topic", _status_row(str(topic), Fields(status, "a status")))
    tables = info.members("mqTable") or info.members("mqPopTable")
    queues = {MessageQueue.from_json(key): value for key, value in tables.items()}
    for queue in sorted(queues):
        rows.add("queue", _queue_row(queue, Fields(queues[queue], "a queue")))
    if stack:
        rows.text("stack", info.text("jstack") or "It sends no stacks.")


def _status_row(topic: str, status: Fields) -> dict[str, object]:
    rates = ("pullTPS", "pullRT", "consumeOKTPS", "consumeFailedTPS", "consumeRT")
    names = ("pulled", "pull_ms", "consumed", "failed", "consume_ms")
    values = {}
    for name, key in zip(names, rates, strict=True):
        value = status.value(key)
        values[name] = round(value, 2) if isinstance(value, int | float) else None
    failed = status.integer("consumeFailedMsgs", bits=64)
    return {"topic": topic, **values, "failed_last_hour": failed}


def _queue_row(queue: MessageQueue, status: Fields) -> dict[str, object]:
    return {
        "topic": queue.topic,
        "broker": queue.broker_name,
        "queue": queue.queue_id,
        "committed": status.integer("commitOffset", bits=64),
        "cached": status.integer("cachedMsgCount"),
        "cached_size": Size(status.integer("cachedMsgSizeInMiB") << 20),
        "locked": status.boolean("locked"),
        "dropped": status.boolean("droped"),
        "last_pull": Moment(status.integer("lastPullTimestamp", bits=64)),
        "last_consume": Moment(status.integer("lastConsumeTimestamp", bits=64)),
    }


@producer.command("ls")
@click.argument("group", required=False)
@showing
def producer_ls(cluster: Cluster, rows: Rows, group: str | None) -> None:
    """List the connected producers of all groups, or of GROUP, on each broker.

    Exit status 3: GROUP has none.
    """
    any_found = False
    for broker, table in cluster.from_each(
        cluster.brokers(), lambda b: _producers(cluster, b, group)
    ):
        for name, connected in sorted(table.items()):
            for one in connected:
                any_found = True
                rows.add("producer", _row(name, broker, one))
    if group and not any_found:
        raise NotThere(f"No producer of {group} is connected.")


def _producers(
    cluster: Cluster, broker: Broker, group: str | None
) -> dict[str, list[ClientConnection]]:
    if group is not None:
        return {group: clients.producers_of(cluster, broker, group)}
    try:
        return clients.producers(cluster, broker)
    except RequestCodeNotSupported as problem:
        raise NotThere(
            f"{broker.name} cannot list all producers: give a group."
        ) from problem

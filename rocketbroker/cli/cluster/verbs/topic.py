# -*- test-case-name: tests.cli.cluster.verbs.test_topic -*-
"""C{rocketbroker topic}."""

from __future__ import annotations

from typing import Any, Final

import attrs
import click

from rocketbroker.blocking.client import TOPIC_SECONDS
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import (
    DRY_RUN,
    TOPIC,
    YES,
    changing,
    confirm,
    report,
    showing,
)
from rocketbroker.cli.cluster.requests import topics
from rocketbroker.cli.cluster.verbs.static_topic import topic_create_static, topic_move
from rocketbroker.cli.exit_status import USAGE, Failure, NotThere
from rocketbroker.cli.formats import Moment, matches
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import ConfigurationError, TopicNotExist
from rocketbroker.records.names import topic_problem
from rocketbroker.wire.bodies.topics import TopicConfig

#: The types of messages that RocketMQ knows; C{mixed} is all of them in one topic.
TYPES: Final = ("normal", "fifo", "delay", "transaction", "mixed")

_PERMISSIONS: Final = {"r": 4, "w": 2, "rw": 6, "none": 0}

ANY_NAME: Final = "*"
PATTERN: Final = click.argument("pattern", default=ANY_NAME)
CLUSTER: Final = click.option(
    "-c", "--cluster", "in_cluster", metavar="NAME", help="Only there."
)
BROKER: Final = click.option(
    "-b", "--broker", metavar="NAME", help="Only there; a name, or HOST:PORT."
)
_QUEUES: Final = click.option(
    "-q",
    "--queues",
    type=click.IntRange(1, 16384),
    metavar="N",
    help="On each broker, for writing and for reading.",
)
_PERM: Final = click.option(
    "--perm", type=click.Choice([*_PERMISSIONS]), help="Reading and writing."
)
_ATTRIBUTES: Final = click.option(
    "-a",
    "--attribute",
    "attributes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an attribute, or remove it (NAME=). Repeatable.",
)


@click.group(cls=LazyCommands)
def topic() -> None:
    """Topics: list, show, create, update, move, delete."""


topic.add_command(topic_create_static)
topic.add_command(topic_move)


def permission_text(perm: int) -> str:
    """A permission in letters."""
    return ("r" if perm & 4 else "") + ("w" if perm & 2 else "") or "none"


@topic.command("ls")
@PATTERN
@click.option("--all", "every_kind", is_flag=True, help="Also system, retry and DLQ.")
@click.option("--names", is_flag=True, help="Only names, one in a line.")
@showing
def topic_ls(
    cluster: Cluster, rows: Rows, pattern: str, every_kind: bool, names: bool
) -> None:
    """List the topics whose names match PATTERN, as 'Order*', or hold it, as 'rder'.

    What the system, retries and dead letters need is left out without --all.
    """
    known = cluster.client.topics()
    configs: dict[str, list[TopicConfig]] = {name: [] for name in known}
    if not names:
        masters = cluster.masters()
        for _, table in cluster.from_each(
            masters, lambda broker: topics.all_configs(cluster, broker)
        ):
            for name, config in table.items():
                configs.setdefault(name, []).append(config)
    own_names = topics.own_names(cluster)
    for name, found in sorted(configs.items()):
        kind = topics.kind_of(name, own_names, found[0] if found else None)
        is_hidden = kind in topics.HIDDEN_KINDS and not every_kind
        if is_hidden or not matches(name, pattern):
            continue
        if names:
            rows.line("topic", {"topic": name})
            continue
        perms = sorted({config.perm for config in found})
        rows.add(
            "topic",
            {
                "topic": name,
                "type": kind,
                "brokers": len(found),
                "queues": sum(config.write_queue_nums for config in found),
                "perm": ",".join(map(permission_text, perms)),
            },
        )


@topic.command("show")
@TOPIC
@showing
def topic_show(cluster: Cluster, rows: Rows, topic: str) -> None:
    """Show a topic's settings on each broker, its queues and its groups.

    A queue's messages have the offsets from MIN to MAX - 1.
    """
    brokers = list(cluster.brokers_of(topic))
    configs = cluster.from_each(
        brokers, lambda broker: topics.config_of(cluster, broker, topic)
    )
    tables = cluster.from_each(
        [broker for broker, _ in configs],
        lambda broker: topics.statistics(cluster, broker, topic),
    )
    for broker, config in configs:
        if config is not None:
            rows.add("topic", _settings_row(broker, config))
    for _, table in tables:
        for queue, offsets in sorted(table.offset_table.items()):
            rows.add(
                "queue",
                {
                    "broker": queue.broker_name,
                    "queue": queue.queue_id,
                    "min": offsets.min_offset,
                    "max": offsets.max_offset,
                    "messages": offsets.max_offset - offsets.min_offset,
                    "last_message": Moment(offsets.last_update_timestamp),
                },
            )
    groups = cluster.from_each(
        [broker for broker, _ in tables],
        lambda broker: topics.groups_of(cluster, broker, topic),
    )
    for name in sorted({name for _, found in groups for name in found}):
        rows.add("group", {"group": name})


def _settings_row(broker: Broker, config: TopicConfig) -> dict[str, object]:
    attributes = sorted(config.attributes.items())
    return {
        "topic": config.topic_name,
        "broker": broker.name,
        "address": broker.address,
        "read_queues": config.read_queue_nums,
        "write_queues": config.write_queue_nums,
        "perm": permission_text(config.perm),
        "order": config.order,
        "attributes": " ".join(f"{name}={value}" for name, value in attributes),
    }


@topic.command("create")
@TOPIC
@CLUSTER
@BROKER
@_QUEUES
@_PERM
@click.option(
    "--type", "message_type", type=click.Choice(TYPES), help="Of its messages."
)
@_ATTRIBUTES
@DRY_RUN
@changing
def topic_create(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    in_cluster: str | None,
    broker: str | None,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Create a topic on all masters, and wait until the name server knows it.

    With 8 queues on each broker, for reading and writing, unless said otherwise. Where
    there are several clusters, give one. A topic that is there is refused.
    """
    problem = topic_problem(topic)
    if problem is not None:
        raise Failure(problem, USAGE)
    masters = masters_of_one(cluster, in_cluster, broker)
    for master in masters:
        if topics.config_of(cluster, master, topic) is not None:
            raise Failure(
                f"{topic} is there already on {master.name}: rocketbroker topic update "
                "changes it."
            )
    default = TopicConfig(topic_name=topic, read_queue_nums=8, write_queue_nums=8)
    config = _changed(default, wanted)
    changes = _attribute_changes(wanted)
    for master in masters:
        if not dry_run:
            topics.put(cluster, master, config, changes)
        report(rows, "topic", topic, master, "created", dry_run)
    if not dry_run:
        brokers = {master.name for master in masters}
        cluster.client.wait_for_topic(topic, brokers, TOPIC_SECONDS)


@topic.command("update")
@TOPIC
@CLUSTER
@BROKER
@_QUEUES
@click.option("--read-queues", type=click.IntRange(1, 16384), metavar="N")
@click.option("--write-queues", type=click.IntRange(1, 16384), metavar="N")
@_PERM
@_ATTRIBUTES
@YES
@DRY_RUN
@changing
def topic_update(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    in_cluster: str | None,
    broker: str | None,
    yes: bool,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Change what is given of a topic's settings, where the topic is.

    To have fewer queues without losing messages, first lower --write-queues, and
    --read-queues when all groups have consumed the rest.
    """
    changes = _attribute_changes(wanted)
    is_there = False
    for master in cluster.masters(in_cluster, broker):
        before = topics.config_of(cluster, master, topic)
        if before is None:
            continue
        is_there = True
        config = _changed(before, wanted)
        if config == before and not changes:
            report(rows, "topic", topic, master, "unchanged", False)
            continue
        if config.read_queue_nums < before.read_queue_nums and not dry_run:
            confirm(
                f"Let nobody read the queues of {topic} on {master.name} from "
                f"{config.read_queue_nums} on, with their messages",
                yes,
            )
        if not dry_run:
            topics.put(cluster, master, config, changes)
        report(rows, "topic", topic, master, "changed", dry_run)
    if not is_there:
        raise TopicNotExist(f"There is no topic {topic}")


@topic.command("delete")
@TOPIC
@CLUSTER
@YES
@DRY_RUN
@changing
def topic_delete(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    in_cluster: str | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete a topic with its messages from brokers and name servers.

    Clients notice within their poll interval (30 s). A broker that creates topics on
    the first send creates it again if a producer goes on.
    """
    names = {data.broker_name for data in cluster.route(topic).broker_datas}
    brokers = [one for one in cluster.brokers(in_cluster) if one.name in names]
    if not brokers:
        raise NotThere(f"The topic {topic} is not on a broker of {in_cluster}.")
    if not dry_run:
        places = ", ".join(sorted({one.name for one in brokers}))
        confirm(f"Delete topic {topic} with its messages on {places}", yes)
    for one in brokers:
        if not dry_run:
            topics.delete(cluster, one, topic)
        report(rows, "topic", topic, one, "deleted", dry_run)
    for name_server in cluster.name_servers if not dry_run else ():
        topics.forget(cluster, name_server, topic, in_cluster)


def masters_of_one(
    cluster: Cluster, in_cluster: str | None, broker: str | None
) -> list[Broker]:
    """Where a topic or group is to be created.

    @raise Failure: there are several clusters, and none was given.
    """
    masters = cluster.masters(in_cluster, broker)
    clusters = sorted({master.cluster for master in masters})
    if len(clusters) > 1:
        raise Failure(
            f"There are several clusters: give --cluster, one of {', '.join(clusters)}",
            USAGE,
        )
    return masters


def _changed(config: TopicConfig, wanted: dict[str, Any]) -> TopicConfig:
    """Settings with what was given on the command line."""
    queues = wanted.get("queues")
    read_queues = wanted.get("read_queues") or queues
    write_queues = wanted.get("write_queues") or queues
    if read_queues is not None:
        config = attrs.evolve(config, read_queue_nums=read_queues)
    if write_queues is not None:
        config = attrs.evolve(config, write_queue_nums=write_queues)
    if wanted["perm"] is not None:
        config = attrs.evolve(config, perm=_PERMISSIONS[wanted["perm"]])
    return config


def _attribute_changes(wanted: dict[str, Any]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for text in wanted["attributes"]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"{text!r} is no attribute: give NAME=VALUE")
        changes[name] = value or None
    if wanted.get("message_type"):
        changes[topics.MESSAGE_TYPE] = wanted["message_type"].upper()
    return changes

# -*- test-case-name: tests.cli.cluster.verbs.test_offset -*-
"""C{rocketbroker offset}."""

from __future__ import annotations

import click

from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.cli.cluster.cluster import Cluster, parse_queue
from rocketbroker.cli.cluster.options import (
    DRY_RUN,
    GROUP,
    TOPIC,
    YES,
    changing,
    confirm,
    given_moment,
    showing,
)
from rocketbroker.cli.cluster.requests import brokers, groups
from rocketbroker.cli.exit_status import Failure, NotThere
from rocketbroker.cli.formats import Moment
from rocketbroker.cli.lazycommands import LazyCommands
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import ConfigurationError, SubscriptionGroupNotExist


@click.group(
    cls=LazyCommands,
    elsewhere={
        "reset": "'rocketbroker group reset GROUP TOPIC --to TIME' resets a group; "
        "'rocketbroker offset set' changes one queue."
    },
)
def offset() -> None:
    """Offsets: of queues, by time, and of groups: show, set, clone."""


@offset.command("show")
@TOPIC
@click.option("-g", "--group", metavar="GROUP", help="Also where it is.")
@click.option("--at", "text", metavar="TIME", help="Also of a time, as 2h.")
@showing
def offset_show(
    cluster: Cluster, rows: Rows, topic: str, group: str | None, text: str | None
) -> None:
    """Show the first offset of each queue, and one more than the last.

    AT is the first message that was stored at the time of --at or later.
    """
    client = cluster.client
    now = client.settings.machine.wall_ms()
    moment = given_moment("--at", text, now) if text else None
    queues = cluster.queues(topic)

    def row_of(queue: MessageQueue) -> dict[str, object]:
        row: dict[str, object] = {
            "topic": topic,
            "broker": queue.broker,
            "queue": queue.queue_id,
            "min": client.min_offset(queue),
            "max": client.max_offset(queue),
            "first_stored": Moment(client.earliest_store_time(queue)),
        }
        if moment is not None:
            row["at"] = client.offset_by_time(queue, moment)
        if group is not None:
            row["committed"] = client.committed_offset(queue, group)
        return row

    for _, found in cluster.from_each(
        cluster.brokers_of(topic),
        lambda one: [row_of(queue) for queue in queues if queue.broker == one.name],
    ):
        for row in found:
            rows.add("queue", row)


@offset.command("set")
@GROUP
@TOPIC
@click.argument("queue_text", metavar="BROKER:NUMBER")
@click.argument("number", metavar="OFFSET", type=click.IntRange(0))
@YES
@DRY_RUN
@changing
def offset_set(
    cluster: Cluster,
    rows: Rows,
    group: str,
    topic: str,
    queue_text: str,
    number: int,
    yes: bool,
    dry_run: bool,
) -> None:
    """Let a group go on at OFFSET of one queue; its members may be online.

    Brokers before 5.0 cannot tell members: there none may be online.
    """
    client = cluster.client
    cluster.route(topic)
    queue = parse_queue(topic, queue_text)
    if queue not in client.queues(topic):
        raise NotThere(f"There is no {queue}.")
    low, high = client.min_offset(queue), client.max_offset(queue)
    if not low <= number <= high:
        raise ConfigurationError(f"{queue} has the offsets {low} to {high}")
    master = cluster.one_broker(client.routes.address(queue))
    if group not in groups.all_configs(cluster, master):
        raise SubscriptionGroupNotExist(f"There is no group {group}")
    # Before 5.0 a reset knows no queue, and would take all of them.
    is_old = brokers.is_before_5(brokers.runtime_info(cluster, master))
    if is_old and groups.members(cluster, master, group):
        raise Failure(
            f"{group} has members online, and brokers before 5.0 cannot tell them: "
            "stop them first."
        )
    before = client.committed_offset(queue, group)
    if not dry_run:
        confirm(f"Let {group} go on at {number} instead of {before} in {queue}", yes)
        client.commit_offset(queue, group, number)
        if not is_old:
            groups.reset(cluster, master, group, topic, 0, queue.queue_id, number)
    rows.add("queue", _row(queue, before, number, dry_run))


@offset.command("clone")
@click.argument("source", metavar="FROM_GROUP")
@click.argument("target", metavar="TO_GROUP")
@TOPIC
@YES
@DRY_RUN
@changing
def offset_clone(
    cluster: Cluster,
    rows: Rows,
    source: str,
    target: str,
    topic: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Let TO_GROUP go on where FROM_GROUP is in a topic; none may be online in it."""
    client = cluster.client
    cluster.route(topic)
    steps = [
        (queue, found, client.committed_offset(queue, target))
        for queue in client.queues(topic)
        if (found := client.committed_offset(queue, source)) is not None
    ]
    if not steps:
        raise NotThere(f"{source} has no offsets in {topic}.")
    if not dry_run:
        confirm(f"Set {target} to the offsets of {source} in {topic}", yes)
    for queue, found, before in steps:
        if not dry_run:
            client.commit_offset(queue, target, found)
        rows.add("queue", _row(queue, before, found, dry_run))


def _row(
    queue: MessageQueue, before: int | None, after: int, dry_run: bool
) -> dict[str, object]:
    """What was done, or would be done, to a group's offset."""
    return {
        "topic": queue.topic,
        "broker": queue.broker,
        "queue": queue.queue_id,
        "before": before,
        "after": after,
        "outcome": "to be set" if dry_run else "set",
    }

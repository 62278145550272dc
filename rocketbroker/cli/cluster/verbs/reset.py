# -*- test-case-name: tests.cli.cluster.verbs.test_reset -*-
"""C{rocketbroker group reset}."""

from __future__ import annotations

from typing import NamedTuple

import click

from rocketbroker.blocking.consumer import EARLIEST, LATEST
from rocketbroker.blocking.routes import MASTER, MessageQueue
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import (
    DRY_RUN,
    GROUP,
    TOPIC,
    YES,
    changing,
    confirm,
    given_moment,
)
from rocketbroker.cli.cluster.requests import groups
from rocketbroker.cli.formats import Moment, count_of
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import SubscriptionGroupNotExist


class Step(NamedTuple):
    """One queue of a reset.

    @ivar before: where the group is; None if it has no offset there.
    @ivar after: where it is to go on.
    @ivar end: one more than the queue's last offset.
    """

    queue: MessageQueue
    before: int | None
    after: int
    end: int


@click.command("reset")
@GROUP
@TOPIC
@click.option(
    "--to",
    required=True,
    metavar="earliest|latest|TIME",
    help="The first message, the end, or the first message stored at a time or "
    "later: 2026-11-23T07:30, or 2h for two hours ago.",
)
@YES
@DRY_RUN
@changing
def group_reset(
    cluster: Cluster,
    rows: Rows,
    group: str,
    topic: str,
    to: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Let a group go on at another place of a topic.

    Going back, messages come again; going forward, those between are never consumed.
    Members may be online: the broker tells them. (Brokers before 5.0 tell only push
    consumers.) --dry-run shows where each queue would go. 'rocketbroker offset set'
    changes one queue.
    """
    moment = _moment(cluster, to)
    masters = [one for one in cluster.brokers_of(topic) if one.broker_id == MASTER]
    if not any(group in groups.all_configs(cluster, one) for one in masters):
        raise SubscriptionGroupNotExist(f"There is no group {group}")
    plan = [
        (master, _steps(cluster, group, topic, master, moment)) for master in masters
    ]
    if not dry_run:
        moved = [
            step for _, steps in plan for step in steps if step.before != step.after
        ]
        skipped = sum(max(0, step.after - (step.before or 0)) for step in moved)
        again = sum(max(0, (step.before or 0) - step.after) for step in moved)
        confirm(
            f"Reset {group} to {Moment(moment) if moment > 0 else to} in "
            f"{count_of(len(moved), 'queue')} of {topic}, so that "
            f"{count_of(skipped, 'message')} will be skipped and {again} come again",
            yes,
        )
    for master, steps in plan:
        done = {} if dry_run else _reset(cluster, group, topic, master, moment, steps)
        for step in steps:
            rows.add("queue", _row(step, done.get(step.queue, step.after), dry_run))


def _reset(
    cluster: Cluster,
    group: str,
    topic: str,
    master: Broker,
    moment: int,
    steps: list[Step],
) -> dict[MessageQueue, int]:
    """Reset on one broker; where the group goes on, as far as the broker says it."""
    done = groups.reset(cluster, master, group, topic, moment)
    if done is None:
        for step in steps:
            cluster.client.commit_offset(step.queue, group, step.after)
        if groups.members(cluster, master, group):
            done = groups.reset(cluster, master, group, topic, moment)
    return {
        MessageQueue(topic, queue.broker_name, queue.queue_id): offset
        for queue, offset in (done or {}).items()
    }


def _moment(cluster: Cluster, to: str) -> int:
    """The time that a broker is given: 0 is before all messages, -1 is the end."""
    if to == EARLIEST:
        return 0
    if to == LATEST:
        return -1
    return given_moment("--to", to, cluster.client.settings.machine.wall_ms())


def _steps(
    cluster: Cluster, group: str, topic: str, master: Broker, moment: int
) -> list[Step]:
    """Where the group would go on in the queues of one broker."""
    client = cluster.client
    steps = []
    for queue in cluster.queues(topic):
        if queue.broker != master.name:
            continue
        end = client.max_offset(queue)
        if moment < 0:
            after = end
        elif moment == 0:
            after = client.min_offset(queue)
        else:
            after = client.offset_by_time(queue, moment)
        before = client.committed_offset(queue, group)
        steps.append(Step(queue, before, after, end))
    return steps


def _row(step: Step, after: int, dry_run: bool) -> dict[str, object]:
    return {
        "topic": step.queue.topic,
        "broker": step.queue.broker,
        "queue": step.queue.queue_id,
        "before": step.before,
        "after": after,
        "lag": max(0, step.end - after),
        "outcome": "to be reset" if dry_run else "reset",
    }

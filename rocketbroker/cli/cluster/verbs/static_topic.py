# -*- test-case-name: tests.cli.cluster.verbs.test_static_topic -*-
"""C{rocketbroker topic create-static} and C{topic move}."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import (
    DRY_RUN,
    TOPIC,
    YES,
    changing,
    confirm,
    report,
)
from rocketbroker.cli.cluster.requests.static_topics import carry_out, table_of
from rocketbroker.cli.exit_status import USAGE, Failure
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import TopicNotExist
from rocketbroker.records.names import topic_problem
from rocketbroker.routing.static_plan import (
    StaticPlan,
    finished,
    grown,
    mapping_of,
    moved,
)

_BROKERS: Final = click.option(
    "-b",
    "--broker",
    "names",
    multiple=True,
    metavar="NAME",
    help="The brokers that are to have the queues. Repeatable.",
)
_CLUSTER: Final = click.option(
    "-c", "--cluster", "in_cluster", metavar="NAME", help="All brokers of it."
)


@click.command("create-static")
@TOPIC
@click.option(
    "-q",
    "--queues",
    type=click.IntRange(1, 16384),
    metavar="N",
    required=True,
    help="Of the topic, on all brokers together.",
)
@_BROKERS
@_CLUSTER
@DRY_RUN
@changing
def topic_create_static(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    queues: int,
    names: tuple[str, ...],
    in_cluster: str | None,
    dry_run: bool,
) -> None:
    """Create a static topic, or give one more queues.

    Its number of queues stays, whatever brokers come and go: clients see queues 0 to
    N - 1 of one topic, which 'topic move' moves between brokers. Clients before 5.0 do
    not know such topics.
    """
    problem = topic_problem(topic)
    if problem is not None:
        raise Failure(problem, USAGE)
    masters, wanted = _brokers(cluster, names, in_cluster)
    table = table_of(cluster, masters.values(), topic)
    now_ms = cluster.client.settings.machine.wall_ms()
    others = masters.keys() - wanted
    plan = grown(topic, table, wanted, others, queues, now_ms)
    _carry_out(cluster, rows, masters, plan, dry_run)


@click.command("move")
@TOPIC
@_BROKERS
@_CLUSTER
@click.option(
    "--finish",
    is_flag=True,
    help="Bring to its end what was broken off, of this or of mqadmin.",
)
@YES
@DRY_RUN
@changing
def topic_move(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    names: tuple[str, ...],
    in_cluster: str | None,
    finish: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Move the queues of a static topic to these brokers, the same number to each.

    Messages stay where they are, and are consumed from there; new ones are stored at
    the new place, at offsets that go on behind a gap.
    """
    if finish and not names and in_cluster is None:
        names = tuple(one.name for one in cluster.brokers_of(topic))
    masters, wanted = _brokers(cluster, names, in_cluster)
    table = table_of(cluster, masters.values(), topic)
    if not table:
        raise TopicNotExist(f"There is no topic {topic}")
    now_ms = cluster.client.settings.machine.wall_ms()
    if finish:
        plan = finished(topic, table, masters, now_ms)
    else:
        plan = moved(topic, table, wanted, masters.keys() - wanted, now_ms)
    if plan.takers and not dry_run:
        takers = ", ".join(plan.takers)
        confirm(
            f"Move queues of {topic} from {', '.join(plan.givers)} to {takers}", yes
        )
    _carry_out(cluster, rows, masters, plan, dry_run)


def _brokers(
    cluster: Cluster, names: Iterable[str], in_cluster: str | None
) -> tuple[dict[str, Broker], set[str]]:
    """All masters of the clusters of the given brokers, by name; and the latter.

    @raise Failure: none was given, or they are of several clusters.
    """
    given = [one for name in names for one in cluster.masters(in_cluster, name)]
    if in_cluster is not None and not given:
        given = cluster.masters(in_cluster)
    if not given:
        raise Failure("Give the brokers: --broker NAME ..., or --cluster NAME", USAGE)
    clusters = {one.cluster for one in given}
    if len(clusters) > 1:
        raise Failure(
            f"A static topic is in one cluster, and not in {' and '.join(clusters)}.",
            USAGE,
        )
    masters = {one.name: one for one in cluster.masters(clusters.pop())}
    return masters, {one.name for one in given}


def _carry_out(
    cluster: Cluster,
    rows: Rows,
    masters: dict[str, Broker],
    plan: StaticPlan,
    dry_run: bool,
) -> None:
    if not dry_run:
        carry_out(cluster, masters, plan)
    for name, each in plan.brokers.items():
        mapping = mapping_of(each)
        led = sorted(filter(mapping.leads, mapping.hosted_queues))
        queues = ",".join(map(str, led)) or "none"
        topic = each.config.topic_name
        report(rows, "topic", topic, masters[name], f"queues {queues}", dry_run)

# -*- test-case-name: tests.admin.verbs.test_top -*-
"""C{rocketbroker top}: rates and lags, live."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, TextIO, final

import click

from rocketbroker.admin.cluster import Cluster
from rocketbroker.admin.formats import Moment, Span
from rocketbroker.admin.options import asking, repeat
from rocketbroker.admin.requests import brokers, groups
from rocketbroker.admin.rows import FORMATS, Rows
from rocketbroker.records.names import is_system_group


class Place(NamedTuple):
    """Where a group is in a topic, over all queues of all brokers.

    @ivar stored: the sum of the ends of the queues.
    @ivar consumed: the sum of the group's offsets.
    @ivar last_ms: when the last message was stored that it has consumed; 0: none.
    """

    stored: int
    consumed: int
    last_ms: int


@final
class Sampler:
    """Looks at a cluster again and again, and tells what changed between two looks."""

    def __init__(self, cluster: Cluster, in_cluster: str | None) -> None:
        self._cluster = cluster
        self._in_cluster = in_cluster
        self._before: dict[tuple[str, str], Place] = {}
        self._before_ms = 0

    def look(self) -> tuple[dict[tuple[str, str], Place], int]:
        """By group and topic where all groups are; and the time in ms."""
        cluster = self._cluster
        masters = cluster.masters(self._in_cluster)
        found: dict[tuple[str, str], Place] = {}
        for _, table in cluster.from_each(
            masters, lambda broker: groups.all_progress(cluster, broker)
        ):
            for group, all_stats in table.items():
                for stats in all_stats:
                    for queue, offsets in stats.offset_table.items():
                        key = group, queue.topic
                        place = found.get(key, Place(0, 0, 0))
                        found[key] = Place(
                            place.stored + offsets.broker_offset,
                            place.consumed + offsets.consumer_offset,
                            max(place.last_ms, offsets.last_timestamp),
                        )
        return found, cluster.client.settings.machine.wall_ms()

    def begin(self) -> None:
        """The first look."""
        self._before, self._before_ms = self.look()

    def show(self, rows: Rows, count: int, every_kind: bool) -> None:
        """Look again: brokers, and the groups with the most messages to consume.

        @param count: so many groups and topics.
        """
        cluster = self._cluster
        for broker, info in cluster.from_each(
            cluster.masters(self._in_cluster),
            lambda broker: brokers.runtime_info(cluster, broker),
        ):
            row = {"broker": broker.name, **brokers.summary(info)}
            rows.add("broker", row)
        found, now_ms = self.look()
        seconds = max(now_ms - self._before_ms, 1) / 1000
        table: list[dict[str, Any]] = []
        for (group, topic), place in found.items():
            if is_system_group(group) and not every_kind:
                continue
            before = self._before.get((group, topic), place)
            table.append(_row(group, topic, place, before, seconds))
        table.sort(key=lambda row: (-row["lag"], -row["out"], row["group"]))
        for row in table[:count]:
            rows.add("group", row)
        self._before, self._before_ms = found, now_ms


def _row(
    group: str, topic: str, now: Place, before: Place, seconds: float
) -> dict[str, Any]:
    """What people want to know of a group in a topic."""
    coming = round((now.stored - before.stored) / seconds, 1)
    going = round((now.consumed - before.consumed) / seconds, 1)
    lag = max(0, now.stored - now.consumed)
    faster = going - coming
    return {
        "group": group,
        "topic": topic,
        "lag": lag,
        "in": coming,
        "out": going,
        "done_in": Span(lag / faster * 1000) if lag and faster > 0 else None,
        "consumed_up_to": Moment(now.last_ms),
    }


@click.command()
@click.option("-c", "--cluster", "in_cluster", metavar="NAME", help="Only there.")
@click.option(
    "--rows",
    "count",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="So many groups and topics.",
)
@click.option("--all", "every_kind", is_flag=True, help="Also groups of the system.")
@click.option("--once", is_flag=True, help="One look, after a second, and end.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often.",
)
@click.option(
    "-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True
)
@asking
def top(
    cluster: Cluster,
    in_cluster: str | None,
    count: int,
    every_kind: bool,
    once: bool,
    every: float,
    output: str,
) -> None:
    """Show rates and lags, live.

    Of brokers, and of the groups that are behind most. IN and OUT are messages a second
    since the look before; of brokers, in 10 s. DONE_IN is when the lag is gone at this
    rate.
    """
    sampler = Sampler(cluster, in_cluster)
    sampler.begin()

    def page(out: TextIO) -> None:
        rows = Rows(out, output)
        sampler.show(rows, count, every_kind)
        rows.close()

    cluster.client.settings.machine.sleep(min(every, 1.0))
    if once:
        page(sys.stdout)
    else:
        repeat(page, cluster, output == "table", every)

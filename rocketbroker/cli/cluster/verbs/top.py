# -*- test-case-name: tests.cli.cluster.verbs.test_top -*-
"""C{rocketbroker top}: rates and lags, live."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, TextIO, TypeAlias, final

import click

from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import asking, repeat
from rocketbroker.cli.cluster.requests import brokers, groups, topics
from rocketbroker.cli.formats import Moment, Span
from rocketbroker.cli.rows import FORMATS, Rows
from rocketbroker.records.names import is_system_group


class TopicLag(NamedTuple):
    """Where a group is in a topic, over all queues of one broker, or of all.

    @ivar stored: the sum of the ends of the queues.
    @ivar consumed: the sum of the group's offsets.
    @ivar last_ms: when the last message was stored that it has consumed; 0: none.
    """

    stored: int = 0
    consumed: int = 0
    last_ms: int = 0

    def and_also(self, other: TopicLag) -> TopicLag:
        """Both together."""
        return TopicLag(
            self.stored + other.stored,
            self.consumed + other.consumed,
            max(self.last_ms, other.last_ms),
        )


class Ends(NamedTuple):
    """What a topic has, over all queues of one broker, or of all.

    @ivar stored: the sum of the ends of the queues.
    @ivar messages: how many messages the queues have now.
    @ivar last_ms: when the last one was stored; 0: none.
    """

    stored: int = 0
    messages: int = 0
    last_ms: int = 0

    def and_also(self, other: Ends) -> Ends:
        """Both together."""
        return Ends(
            self.stored + other.stored,
            self.messages + other.messages,
            max(self.last_ms, other.last_ms),
        )


#: By the names of group, topic and broker.
Places: TypeAlias = dict[tuple[str, str, str], TopicLag]

#: By the names of topic and broker.
AllEnds: TypeAlias = dict[tuple[str, str], Ends]


class Look(NamedTuple):
    """What was seen at a time.

    @ivar now_ms: the time.
    """

    places: Places
    ends: AllEnds
    now_ms: int


@final
class Sampler:
    """Looks at a cluster again and again, and tells what changed between two looks.

    Rates are of the brokers that answered both: one that comes back is no burst.
    """

    def __init__(
        self, cluster: Cluster, in_cluster: str | None, every_kind: bool
    ) -> None:
        """
        @param every_kind: also the system's groups and topics.
        """
        self._cluster = cluster
        self._in_cluster = in_cluster
        self._every_kind = every_kind
        self._before = Look({}, {}, 0)

    def look(self) -> Look:
        """Where all groups are, and where all topics end."""
        cluster = self._cluster
        masters = cluster.masters(self._in_cluster)
        places: Places = {}
        for broker, table in cluster.from_each(
            masters, lambda one: groups.all_progress(cluster, one)
        ):
            for group, all_stats in table.items():
                if is_system_group(group) and not self._every_kind:
                    continue
                for stats in all_stats:
                    for queue, offsets in stats.offset_table.items():
                        key = group, queue.topic, broker.name
                        places[key] = places.get(key, TopicLag()).and_also(
                            TopicLag(
                                offsets.broker_offset,
                                offsets.consumer_offset,
                                offsets.last_timestamp,
                            )
                        )
        ends: AllEnds = {}
        for broker, found in cluster.from_each(masters, self._ends_on):
            for topic, end in found.items():
                ends[topic, broker.name] = end
        return Look(places, ends, cluster.client.settings.machine.wall_ms())

    def _ends_on(self, broker: Broker) -> dict[str, Ends]:
        """Where the topics of a broker end."""
        cluster = self._cluster
        own_names = topics.own_names(cluster)
        wanted = [
            name
            for name, config in topics.all_configs(cluster, broker).items()
            if self._every_kind
            or topics.kind_of(name, own_names, config) not in topics.HIDDEN_KINDS
        ]
        found: dict[str, Ends] = {}
        for name, table in topics.statistics_of(cluster, broker, wanted):
            for offsets in table.offset_table.values():
                found[name] = found.get(name, Ends()).and_also(
                    Ends(
                        offsets.max_offset,
                        offsets.max_offset - offsets.min_offset,
                        offsets.last_update_timestamp,
                    )
                )
        return found

    def begin(self) -> None:
        """The first look."""
        self._before = self.look()

    def show(self, rows: Rows, count: int) -> None:
        """Look again: brokers, the groups with the most messages to consume, and the
        topics that get the most.

        @param count: so many groups, and so many topics.
        """
        cluster = self._cluster
        for broker, info in cluster.from_each(
            cluster.masters(self._in_cluster),
            lambda broker: brokers.runtime_info(cluster, broker),
        ):
            row = {"broker": broker.name, **brokers.summary(info)}
            rows.add("broker", row)
        before, now = self._before, self.look()
        self._before = now
        seconds = max(now.now_ms - before.now_ms, 1) / 1000
        for row in _group_rows(before.places, now.places, seconds)[:count]:
            rows.add("group", row)
        for row in _topic_rows(before.ends, now.ends, seconds)[:count]:
            rows.add("topic", row)


def _group_rows(before: Places, now: Places, seconds: float) -> list[dict[str, Any]]:
    """The groups in their topics, those that are behind most first."""
    whole: dict[tuple[str, str], tuple[TopicLag, TopicLag]] = {}
    for key, place in now.items():
        group, topic, _ = key
        old, new = whole.get((group, topic), (TopicLag(), TopicLag()))
        pair = old.and_also(before.get(key, place)), new.and_also(place)
        whole[group, topic] = pair
    table = [
        _row(group, topic, new, old, seconds)
        for (group, topic), (old, new) in whole.items()
    ]
    return sorted(table, key=lambda row: (-row["lag"], -row["out"], row["group"]))


def _topic_rows(before: AllEnds, now: AllEnds, seconds: float) -> list[dict[str, Any]]:
    """The topics, those that get most messages first."""
    whole: dict[str, tuple[Ends, Ends]] = {}
    for key, ends in now.items():
        old, new = whole.get(key[0], (Ends(), Ends()))
        whole[key[0]] = old.and_also(before.get(key, ends)), new.and_also(ends)
    table = [
        {
            "topic": topic,
            "in": round((new.stored - old.stored) / seconds, 1),
            "messages": new.messages,
            "last_message": Moment(new.last_ms),
        }
        for topic, (old, new) in whole.items()
    ]
    return sorted(
        table, key=lambda row: (-row["in"], -row["last_message"], row["topic"])
    )


def _row(
    group: str, topic: str, now: TopicLag, before: TopicLag, seconds: float
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
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="So many groups in their topics, and so many topics.",
)
@click.option("--all", "every_kind", is_flag=True, help="Also the system's.")
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

    Of brokers, of the groups that are behind most, and of the topics that get most. IN
    and OUT are messages a second since the look before; of brokers, in 10 s. DONE_IN is
    when the lag is gone at this rate.
    """
    sampler = Sampler(cluster, in_cluster, every_kind)
    sampler.begin()

    def page(out: TextIO) -> None:
        rows = Rows(out, output)
        sampler.show(rows, count)
        rows.close()

    cluster.client.settings.machine.sleep(min(every, 1.0))
    if once:
        page(sys.stdout)
    else:
        repeat(page, cluster, output == "table", every)

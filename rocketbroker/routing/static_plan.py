# -*- test-case-name: tests.routing.test_static_plan -*-
"""Plans of a static topic's queues, as an operator's tool makes them.

A plan is what each broker is to be told: the topic with its physical queues, and the
mapping. More logical queues go to the brokers with the fewest. A move takes as few as
possible to have the same number at each of the wanted brokers, and no broker both gives
and takes.

C{docs/facts/admin.md} 6.1 (updateStaticTopic, remappingStaticTopic).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias, final

import attrs

from rocketbroker.errors import SystemFailure
from rocketbroker.routing.static_topics import check
from rocketbroker.wire.bodies.mappings import (
    UNDECIDED,
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
)
from rocketbroker.wire.bodies.topics import TopicConfig, TopicConfigAndQueueMapping

#: The logical offsets of an item begin at a multiple of it.
BLOCK: Final = 10_000

#: A new epoch is at least so much above the last one, as RocketMQ's tool has it.
EPOCH_STEP: Final = 1_000

#: By the names of brokers.
Table: TypeAlias = Mapping[str, TopicConfigAndQueueMapping]


@final
@attrs.define
class StaticPlan:
    """What brokers are to be told.

    @ivar brokers: by name, all of the cluster.
    @ivar takers: those that get queues of others.
    @ivar givers: those that give them.
    """

    brokers: dict[str, TopicConfigAndQueueMapping]
    takers: list[str] = attrs.field(factory=list)
    givers: list[str] = attrs.field(factory=list)

    def decided(self, ends: Mapping[tuple[str, int], int]) -> StaticPlan:
        """The same, with logical offsets where queues of takers begin.

        @param ends: where the physical queues of givers end, by broker and queue.
        """
        decide = {
            number: (
                *items[:-1],
                attrs.evolve(
                    items[-1],
                    logic_offset=block_behind(
                        items[-2].logical(ends[items[-2].bname, items[-2].queue_id])
                    ),
                ),
            )
            for name in self.givers
            for number, items in mapping_of(self.brokers[name]).hosted_queues.items()
            if len(items) > 1 and not items[-1].is_decided
        }
        brokers = {
            name: with_queues(
                each,
                {
                    number: decide.get(number, items)
                    for number, items in mapping_of(each).hosted_queues.items()
                },
            )
            for name, each in self.brokers.items()
        }
        return StaticPlan(brokers, self.takers, self.givers)


def mapping_of(each: TopicConfigAndQueueMapping) -> TopicQueueMappingDetail:
    """The mapping of a static topic."""
    assert each.mapping is not None
    return each.mapping


def with_queues(
    each: TopicConfigAndQueueMapping,
    queues: dict[int, tuple[LogicQueueMappingItem, ...]],
) -> TopicConfigAndQueueMapping:
    """The same with other logical queues."""
    mapping = attrs.evolve(mapping_of(each), hosted_queues=queues)
    return attrs.evolve(each, mapping=mapping)


def block_behind(offset: int) -> int:
    """Where the logical offsets of the next item begin, when those before it end at
    C{offset}: at a multiple of L{BLOCK}, at least half of that away."""
    blocks, rest = divmod(offset, BLOCK)
    return (blocks + (1 if rest < BLOCK // 2 else 2)) * BLOCK


def leaders(topic: str, table: Table) -> dict[int, TopicQueueMappingDetail]:
    """The mapping of its leader, by logical queue; all brokers agree.

    @raise SystemFailure: they do not, or a queue has no leader or two.
    """
    found: dict[int, TopicQueueMappingDetail] = {}
    mappings = _mappings(topic, table)
    if len({(one.scope, one.epoch, one.total_queues) for one in mappings}) > 1:
        raise SystemFailure(
            f"the brokers have different mappings of {topic}, as after a move that was "
            f"broken off: 'rocketbroker topic move {topic} --finish' brings it to its "
            "end"
        )
    for mapping in mappings:
        for number in filter(mapping.leads, mapping.hosted_queues):
            if number in found:
                raise SystemFailure(
                    f"queue {number} of {topic} is led by {found[number].bname} and by "
                    f"{mapping.bname}"
                )
            found[number] = mapping
    _check_complete(topic, mappings, found)
    return found


def _mappings(topic: str, table: Table) -> list[TopicQueueMappingDetail]:
    """The mappings of all brokers, the oldest first.

    @raise SystemFailure: one has none, or it makes no sense.
    """
    found = []
    for name, each in table.items():
        mapping = each.mapping
        if mapping is None:
            raise SystemFailure(
                f"{topic} is on broker {name}, and is no static topic there"
            )
        if (mapping.bname, mapping.topic, mapping.dirty) != (name, topic, False):
            raise SystemFailure(f"the mapping of {topic} on broker {name} is not its")
        for items in mapping.hosted_queues.values():
            check(items)
        found.append(mapping)
    return sorted(found, key=lambda one: one.epoch)


def _check_complete(
    topic: str, mappings: list[TopicQueueMappingDetail], found: Collection[int]
) -> None:
    total = max((one.total_queues for one in mappings), default=0)
    if sorted(found) != list(range(total)):
        raise SystemFailure(f"not all of the {total} queues of {topic} have a leader")


def finished(
    topic: str, table: Table, others: Collection[str], now_ms: int
) -> StaticPlan:
    """A plan that brings to its end what was broken off.

    Of a queue that two brokers lead, the newer mapping counts: the taker has been told,
    and the giver has not.

    @param table: what brokers have now.
    @param others: the other ones of the cluster.
    @raise SystemFailure: it cannot be.
    """
    rows: dict[int, tuple[LogicQueueMappingItem, ...]] = {}
    mappings = _mappings(topic, table)
    for mapping in mappings:
        for number in filter(mapping.leads, mapping.hosted_queues):
            rows[number] = mapping.hosted_queues[number]
    _check_complete(topic, mappings, rows)
    brokers = _all_brokers(topic, table, others, len(rows), now_ms)
    takers, givers = [], []
    for number, items in sorted(rows.items()):
        names = [item.bname for item in items[-2:]]
        if not items[-1].is_decided:
            giver, taker = names if len(names) == 2 else ("", *names)
            if giver not in brokers:
                raise SystemFailure(
                    f"queue {number} of {topic} comes from a broker that is not there"
                )
            takers.append(taker)
            givers.append(giver)
        for name in brokers.keys() & names:
            queues = {**mapping_of(brokers[name]).hosted_queues, number: items}
            brokers[name] = with_queues(brokers[name], queues)
    return StaticPlan(brokers, list(dict.fromkeys(takers)), list(dict.fromkeys(givers)))


def grown(
    topic: str,
    table: Table,
    wanted: Collection[str],
    others: Collection[str],
    count: int,
    now_ms: int,
) -> StaticPlan:
    """A plan for so many queues in all.

    @param table: what brokers have now; empty for a topic that is not there.
    @param wanted: the brokers that the queues are to be on.
    @param others: the other ones of the cluster.
    @raise SystemFailure: it cannot be.
    """
    led = leaders(topic, table)
    if count <= len(led):
        raise SystemFailure(
            f"{topic} has {len(led)} queues, and gets no fewer: it can only have more"
        )
    numbers = Counter(dict.fromkeys(sorted(wanted), 0))
    numbers.update(mapping.bname for mapping in led.values())
    strange = sorted(set(numbers) - set(wanted))
    if strange:
        raise SystemFailure(
            f"{topic} is also on {', '.join(strange)}: name all of its brokers"
        )
    brokers = _all_brokers(topic, table, {*wanted, *others}, count, now_ms)
    for number in range(len(led), count):
        name = min(numbers, key=lambda each: (numbers[each], each))
        numbers[name] += 1
        brokers[name], queue_id = _with_one_more(brokers[name])
        item = LogicQueueMappingItem(gen=0, queue_id=queue_id, bname=name)
        queues = {**mapping_of(brokers[name]).hosted_queues, number: (item,)}
        brokers[name] = with_queues(brokers[name], queues)
    return StaticPlan(brokers)


def moved(
    topic: str,
    table: Table,
    wanted: Collection[str],
    others: Collection[str],
    now_ms: int,
) -> StaticPlan:
    """A plan for all queues at these brokers, the same number at each.

    @param table: what brokers have now.
    @param wanted: the brokers that the queues are to be on.
    @param others: the other ones of the cluster.
    @raise SystemFailure: it cannot be.
    """
    led = leaders(topic, table)
    now = Counter(mapping.bname for mapping in led.values())
    # Who has most now keeps most, so that few have to move.
    order = sorted(wanted, key=lambda name: (-now[name], name))
    share, rest = divmod(len(led), len(order))
    room = {name: share + (place < rest) for place, name in enumerate(order)}
    homeless = []
    for number, mapping in sorted(led.items()):
        if room.get(mapping.bname, 0) > 0:
            room[mapping.bname] -= 1
        else:
            homeless.append(number)
    brokers = _all_brokers(topic, table, {*wanted, *others}, len(led), now_ms)
    takers, givers = [], []
    for name in order:
        for _ in range(room[name]):
            number = homeless.pop(0)
            giver = led[number].bname
            brokers[name], queue_id = _with_one_more(brokers[name])
            items = mapping_of(brokers[giver]).hosted_queues[number]
            item = LogicQueueMappingItem(
                gen=items[-1].gen + 1,
                queue_id=queue_id,
                bname=name,
                logic_offset=UNDECIDED,
            )
            for each in (name, giver):
                queues = mapping_of(brokers[each]).hosted_queues
                brokers[each] = with_queues(
                    brokers[each], {**queues, number: (*items, item)}
                )
            takers.append(name)
            givers.append(giver)
    return StaticPlan(brokers, list(dict.fromkeys(takers)), list(dict.fromkeys(givers)))


def _all_brokers(
    topic: str, table: Table, names: Collection[str], count: int, now_ms: int
) -> dict[str, TopicConfigAndQueueMapping]:
    """What all brokers have now, at a new epoch; those that have nothing, nothing."""
    last = max((mapping_of(each).epoch for each in table.values()), default=0)
    epoch = max(last + EPOCH_STEP, now_ms)
    found = {}
    for name in sorted({*names, *table}):
        each = table.get(name)
        if each is None:
            config = TopicConfig(
                topic_name=topic, read_queue_nums=0, write_queue_nums=0
            )
            mapping = TopicQueueMappingDetail(topic=topic, bname=name)
        else:
            config, mapping = each.config, mapping_of(each)
        mapping = attrs.evolve(mapping, total_queues=count, epoch=epoch)
        found[name] = TopicConfigAndQueueMapping(config=config, mapping=mapping)
    return found


def _with_one_more(
    each: TopicConfigAndQueueMapping,
) -> tuple[TopicConfigAndQueueMapping, int]:
    """A broker's topic with one physical queue more, and the number of that."""
    number = each.config.write_queue_nums
    count = max(number + 1, each.config.read_queue_nums)
    config = attrs.evolve(
        each.config, write_queue_nums=number + 1, read_queue_nums=count
    )
    return attrs.evolve(each, config=config), number

# -*- test-case-name: tests.routing.test_static_topics -*-
"""The arithmetic of static topics: which item has an offset, and what may be accepted.

A static topic has a fixed number of logical queues. Each is a row of items: physical
queues of brokers, one after the other. When a queue moves to another broker, an item is
added; the logical offsets go on, with a gap between items, so that the old broker's
last messages have their place before those of the new one.

C{docs/facts/broker.md} 23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from rocketbroker.errors import SystemFailure
from rocketbroker.wire.bodies.mappings import (
    GLOBAL_SCOPE,
    UNDECIDED,
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)

#: Begins the name of the broker under which clients know logical queues.
MOCK_PREFIX: Final = "__syslo__"

#: The leader of a logical queue that no broker leads.
NO_BROKER: Final = f"{MOCK_PREFIX}none__"

#: A logical offset beyond all.
LAST: Final = (1 << 63) - 1

Items = Sequence[LogicQueueMappingItem]


def mock_broker_name(scope: str) -> str:
    """The name of the broker under which clients know the queues of a scope."""
    return MOCK_PREFIX + (scope[2:] if scope == GLOBAL_SCOPE else scope)


def leading_brokers(infos: Mapping[str, TopicQueueMappingInfo]) -> dict[int, str]:
    """Which broker leads which logical queue: of several the one with the highest
    epoch, as clients see it.

    @param infos: what brokers have told name servers, by name.
    """
    found: dict[int, str] = {}
    for name, info in sorted(infos.items(), key=lambda each: each[1].epoch):
        found.update(dict.fromkeys(info.curr_id_map, name))
    return dict(sorted(found.items()))


def logical_leaders(
    infos: Mapping[str, TopicQueueMappingInfo],
) -> dict[tuple[str, int], str]:
    """The logical queues as readers see them, with the broker that leads each.

    @param infos: what brokers have told name servers, by name.
    @return: by mock broker and number; L{NO_BROKER} for a queue that nobody leads.
    """
    found: dict[tuple[str, int], str] = {}
    for scope in sorted({info.scope for info in infos.values()}):
        ours = {name: info for name, info in infos.items() if info.scope == scope}
        leaders = leading_brokers(ours)
        total = max(info.total_queues for info in ours.values())
        mock = mock_broker_name(scope)
        for number in range(total):
            found[mock, number] = leaders.get(number, NO_BROKER)
    return found


def decided(items: Items) -> list[LogicQueueMappingItem]:
    """The items whose place in the logical queue is known, in order."""
    return [item for item in items if item.is_decided]


def find(items: Items, offset: int) -> LogicQueueMappingItem:
    """The item that has a logical offset: the last that begins at or before it; the
    first one for an offset before all.

    @raise SystemFailure: no item's place is known.
    """
    known = decided(items)
    if not known:
        raise SystemFailure("no item of the queue has its logical offset")
    for item in reversed(known):
        if item.logic_offset <= offset:
            return item
    return known[0]


def following(
    items: Items, item: LogicQueueMappingItem
) -> LogicQueueMappingItem | None:
    """The decided item behind one; None if there is none."""
    known = decided(items)
    return next((other for other in known if other.gen > item.gen), None)


def check(items: Items) -> None:
    """Refuse a row of items that cannot be one queue.

    @raise SystemFailure: it is not; RocketMQ's words.
    """
    last: LogicQueueMappingItem | None = None
    for item in reversed(items):
        if min(item.start_offset, item.gen, item.queue_id) < 0:
            raise SystemFailure("The field is illegal, should not be negative")
        if last is not None and item.logic_offset < 0:
            raise SystemFailure("The non-latest item has negative logic offset")
        if last is not None and item.gen >= last.gen:
            raise SystemFailure("The gen dose not increase monotonically")
        if item.end_offset != UNDECIDED and item.end_offset < item.start_offset:
            raise SystemFailure("The endOffset is smaller than the start offset")
        if last is not None and last.is_decided:
            if item.logic_offset >= last.logic_offset:
                raise SystemFailure(
                    "The base logic offset dose not increase monotonically"
                )
            if item.top >= last.logic_offset:
                raise SystemFailure(
                    "The max logic offset dose not increase monotonically"
                )
        last = item


def accepted(
    old: TopicQueueMappingDetail | None, new: TopicQueueMappingDetail, force: bool
) -> TopicQueueMappingDetail:
    """What a broker keeps when it is given a mapping (request 513).

    @param old: what it has.
    @param new: each of its queues passes L{check}.
    @param force: take it whatever the broker has; queues that it does not name stay.
    @raise SystemFailure: it may not be taken; RocketMQ's words.
    """
    if old is None:
        return new
    if not force:
        _check_newer(old, new)
    return attrs.evolve(new, hosted_queues={**old.hosted_queues, **new.hosted_queues})


def _check_newer(old: TopicQueueMappingDetail, new: TopicQueueMappingDetail) -> None:
    if new.epoch < old.epoch:
        raise SystemFailure(
            f"Can't accept data with small epoch {new.epoch} < {old.epoch}"
        )
    if new.scope != old.scope:
        raise SystemFailure(
            f"Can't accept data with unmatched scope {new.scope} != {old.scope}"
        )
    if new.epoch > old.epoch:
        return
    for number, items in old.hosted_queues.items():
        others = new.hosted_queues.get(number)
        if others is None:
            raise SystemFailure("Cannot accept equal epoch with null data")
        if not items:
            continue
        if not others:
            raise SystemFailure("The new item list is null or empty")
        if _place(others[-1]) != _place(items[-1]):
            raise SystemFailure("The new leader is different but epoch equal")


def _place(item: LogicQueueMappingItem) -> tuple[int, str, int, int]:
    return item.gen, item.bname, item.queue_id, item.start_offset

# -*- test-case-name: tests.broker.pop.test_pop -*-
"""One pop on its way: what it asks for, what it has got, and its answer.

C{docs/facts/broker.md} 20.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.pop.pop_checks import PopRoute
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.records.names import is_retry_topic
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.store.reads import FOUND, NO_MESSAGE_IN_QUEUE
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)

#: Bytes of one answer: half of the largest frame.
MAX_BYTES: Final = 8 << 20

#: initMode: where a group begins that never consumed: at the first or the last message.
_FROM_LAST: Final = 1

#: Topic and queue.
Source: TypeAlias = tuple[str, int]


@final
class Pop:
    """One pop on its way.

    @ivar done: takes its answer.
    @ivar pop_ms: when it was begun, last.
    @ivar sources: the queues that are still to be looked at.
    @ivar pending: how many of its check points are being written.
    @ivar free_ms: when a queue that is blocked is free again; 0 if none is.
    @ivar has_passed: whether messages were passed that its filter does not take.
    @ivar rest: how many messages are left.
    @ivar is_wide: whether it has more queues to look at than one turn has time for.
    @ivar seen: if so, those that were looked at, each with where it ended then.
    """

    __slots__ = (
        "connection",
        "count",
        "counts",
        "done",
        "free_ms",
        "has_passed",
        "header",
        "is_read",
        "is_wide",
        "offsets",
        "pending",
        "pop_ms",
        "records",
        "rest",
        "revive_queue",
        "route",
        "seen",
        "size",
        "sources",
        "starts",
    )

    def __init__(
        self, connection: IConnection, header: PopMessageRequestHeader, route: PopRoute
    ) -> None:
        self.connection = connection
        self.header = header
        self.route = route
        self.done: Deferred[Command | None] = Deferred()
        self.begin(0, 0, iter(()))

    def begin(self, pop_ms: int, revive_queue: int, sources: Iterator[Source]) -> None:
        """Begin, again."""
        self.pop_ms = pop_ms
        self.revive_queue = revive_queue
        self.sources = sources
        self.pending = 0
        self.is_read = False
        self.is_wide = False
        self.has_passed = False
        self.free_ms = 0
        self.rest = 0
        self.seen: list[tuple[IQueue, int]] = []
        self.count = 0
        self.size = 0
        self.records: list[bytes] = []
        self.starts: list[str] = []
        self.offsets: list[str] = []
        self.counts: list[str] = []

    @property
    def is_overtaken(self) -> bool:
        """Whether messages have come into queues since it has looked at them."""
        return any(queue.max_offset != end for queue, end in self.seen)

    @property
    def is_full(self) -> bool:
        """Whether it has got enough."""
        return self.count >= self.header.max_msg_nums or self.size >= MAX_BYTES

    def answer(self, code: int) -> Command:
        """Its answer: what it has got, and all fields, whatever the code."""
        header = PopMessageResponseHeader(
            pop_time=self.pop_ms,
            invisible_time=self.header.invisible_time,
            revive_qid=self.revive_queue,
            rest_num=self.rest,
            start_offset_info=";".join(self.starts),
            msg_offset_info=";".join(self.offsets),
            order_count_info=";".join(self.counts) if self.header.order else None,
        )
        remark = FOUND if self.count else NO_MESSAGE_IN_QUEUE
        return Command(code, header.to_ext(), b"".join(self.records), remark=remark)


def first_offset(
    store: IStore, options: BrokerOptions, queue: IQueue, init_mode: int
) -> int:
    """Where a group begins that never consumed a queue."""
    if init_mode != _FROM_LAST or is_retry_topic(queue.topic):
        return queue.min_offset
    if (
        options.init_pop_offset_by_check_msg_in_mem
        and queue.min_offset <= 0
        and queue.max_offset > 0
        and not store.is_cold(queue, 0)
    ):
        return 0
    return max(0, queue.max_offset - 1)

# -*- test-case-name: tests.broker.pop.test_pop -*-
"""Collection of a pop's messages from a queue: a check point, or a record of messages
out in order.

A check point says what the group was given, and until when; in order the group's offset
stays before the messages instead (L{order_info}). Messages of a retry topic become
messages of the topic that was popped, each with its handle. What was read without a
match moves the group on.

C{docs/facts/transaction-timer-pop.md} C3, C5; C{docs/facts/broker.md} 20.2.
"""

from __future__ import annotations

from typing import final

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.pop.pop_request import Pop
from rocketbroker.broker.pop.pop_state import PopState
from rocketbroker.broker.pop.popped_messages import as_of, queue_offsets
from rocketbroker.broker.pop.progress import HeldCheckPoint, Line, Place
from rocketbroker.broker.pull.pull_checks import PullChecks
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.records.check_points import CheckPoint
from rocketbroker.records.receipt_handle import (
    ReceiptHandle,
    kind_of,
    message_offset_info,
    order_count_info,
    start_offset_info,
)
from rocketbroker.store.reads import ReadResult


@final
class PopCollect:
    """The collection of read messages for a pop."""

    def __init__(
        self,
        context: BrokerContext,
        pull_checks: PullChecks,
        offsets: OffsetTable,
        state: PopState,
    ) -> None:
        """
        @param pull_checks: counts what is taken.
        """
        self._store = context.store
        self._pull_checks = pull_checks
        self._offsets = offsets
        self._progress = state.progress
        self._buffer = state.buffer
        self._order = state.order
        self._options = context.settings.broker
        self._seconds = context.clock.seconds

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def take(
        self,
        pop: Pop,
        place: Place,
        line: Line,
        asked: int,
        start: int,
        result: ReadResult,
    ) -> None:
        """What was read of a queue belongs to a pop.

        @param asked: where the group was; C{start}: where the read began.
        """
        look = pop.look
        look.rest += max(0, result.max_offset - result.next_offset)
        if not result.count:
            end = max(start, result.next_offset)
            if end != asked:
                look.has_passed = True
                self._pass(pop, place, line, end)
            return
        group, topic, queue_id = place
        kind, offsets = kind_of(topic), queue_offsets(result, start)
        if pop.header.order:
            self._give(pop, place, start, offsets)
        else:
            self._make_check_point(pop, place, line, start, offsets, result.next_offset)
        look.starts.append(start_offset_info(kind, queue_id, start))
        look.offsets.append(message_offset_info(kind, queue_id, offsets))
        look.count += result.count
        look.size += result.size
        route = pop.route
        counts = route.counts
        if topic != route.topic:
            counts = self._pull_checks.counts_of(group, topic)
        counts.messages += result.count
        counts.bytes += result.size
        counts.pulls += 1
        if topic == route.topic or self._options.pop_response_return_actual_retry_topic:
            look.records += result.copied()
            return
        handle = ReceiptHandle(
            start,
            look.pop_ms,
            pop.header.invisible_time,
            look.revive_queue,
            kind,
            self._options.broker_name,
            queue_id,
        )
        look.records += as_of(route.topic, result.copied(), handle)

    def _pass(self, pop: Pop, place: Place, line: Line, offset: int) -> None:
        """The group goes on at C{offset}: there is nothing for it before."""
        if pop.header.order:
            self._offsets.commit(*place, offset)
            return
        line.held.append(HeldCheckPoint(None, 0, offset, self._seconds()))
        self._progress.commit_line(place, line, self._store.flushed_position)

    def _give(self, pop: Pop, place: Place, start: int, offsets: list[int]) -> None:
        """Give messages out in order: the group's offset stays before them."""
        header, look = pop.header, pop.look
        counts = self._order.give(
            place, header.attempt_id, look.pop_ms, header.invisible_time, offsets
        )
        look.counts += order_count_info(kind_of(place[1]), place[2], counts)
        self._offsets.commit(*place, start)

    def _make_check_point(
        self,
        pop: Pop,
        place: Place,
        line: Line,
        start: int,
        offsets: list[int],
        next_offset: int,
    ) -> None:
        """Have a check point kept; the pop is told when it is in the log, or cannot be
        now."""
        look = pop.look
        group, topic, queue_id = place
        point = CheckPoint(
            topic,
            group,
            queue_id,
            start,
            look.pop_ms,
            pop.header.invisible_time,
            self._options.broker_name,
            [offset - start for offset in offsets],
        )
        look.pending += 1
        is_told = self._buffer.add(
            place, line, point, look.revive_queue, next_offset, pop.stored
        )
        if not is_told:
            look.pending -= 1

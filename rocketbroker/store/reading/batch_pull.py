# -*- test-case-name: tests.store.reading.test_batch_pull -*-
"""Batches of one queue, from an offset on, for a pull.

A batch is handed out whole, and counts as many messages as it has; the consumer takes
it apart, and the offset to go on from is the one behind its last message. One that
begins before the offset that was asked for is handed out too, as its messages behind it
are wanted.

A batch has a tag code only if its sender has given it tags as a whole, which official
clients do not. RocketMQ then gives it to no consumer that asks for tags; here such
a consumer gets it, and looks at each message, as clients do anyway. A message that is
alone in the queue and has no tags is not for it. A filter on properties sees those of
the batch as a whole.

Every record is checked, as L{rocketbroker.store.reading.checked_read} says: for so
many messages at once that costs little.

C{docs/facts/store.md} 9.1 and 16.
"""

from __future__ import annotations

from typing import final

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.consumequeue.batch_queue import BatchUnits
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import (
    OFFSET_FOUND_NULL,
    Matches,
    MessageFilter,
    ReadResult,
)
from rocketbroker.store.reading.checked_read import CheckedRead
from rocketbroker.store.reading.property_filter import Look
from rocketbroker.store.reading.pull import Reading, nothing, outside

#: So many units are read at once.
UNIT_BATCH_SIZE = 64


@final
class BatchReading:
    """The reading side of batch queues."""

    def __init__(self, reading: Reading) -> None:
        """
        @param reading: that of other queues, whose limits hold here too.
        """
        self._reading = reading

    def read(
        self,
        queue: Queue,
        offset: int,
        max_messages: int,
        max_bytes: int,
        matches: Matches,
    ) -> ReadResult:
        """See L{rocketbroker.store.interfaces.IStore.read}."""
        units = queue.batch
        assert units is not None
        first, end = queue.min_offset, queue.max_offset
        if not first <= offset < end:
            return outside(offset, queue.reported_min_offset, end)
        reading = self._reading
        cold, asked, max_bytes = reading.limits(queue, offset, max_messages, max_bytes)
        cold = cold or offset < queue.trusted_from
        collector = reading.checked(queue, offset, asked, max_bytes, cold)
        start = units.find(offset)
        until = start + max(-(-reading.scan_bytes // BATCH_SIZE), asked)
        last = min(units.files.size // BATCH_SIZE * reading.max_files + start, until)
        wanted = matches
        if not isinstance(wanted, MessageFilter):
            wanted = MessageFilter(wanted, None)
        look = reading.look_for(queue, cold, wanted)
        at = _collect(units, offset, start, last, asked, collector, look)
        if at == offset:
            return nothing(OFFSET_FOUND_NULL, end, first, end)
        return collector.result(at, first, end)


def _collect(
    units: BatchUnits,
    offset: int,
    number: int,
    until: int,
    asked: int,
    collector: CheckedRead,
    look: Look,
) -> int:
    """Take batches from a unit on, as long as they fit.

    @return: the offset behind the last message that was passed.
    """
    at = offset
    while number < until:
        found = units.units(number, min(until - number, UNIT_BATCH_SIZE))
        if not found:
            break
        for unit in found:
            if not unit.is_valid or unit.end <= at:
                # Nothing that was ever written so.
                number += 1
                continue
            before = collector.count
            if before and before + unit.messages > asked:
                return at
            if look.is_over:
                return at
            collector.offset = unit.base
            entry = ENTRY.pack(unit.position, unit.size, unit.tag_code)
            if look.takes(unit.position, unit.size, look.code_of(unit)) and (
                not collector.collect(entry, 1, None)
            ):
                return at
            if collector.count > before:
                collector.count = before + unit.messages
            at = unit.end
            number += 1
    return at

# -*- test-case-name: tests.store.reading.test_batch_pull -*-
"""The read of batches for a pull: those of one queue, from an offset on.

A batch is handed out whole, and counts as many messages as it has; the consumer takes
it apart, and the offset to go on from is the one behind its last message. A batch that
begins before the requested offset is handed out too, for its messages behind that
offset.

What a client takes at the most is not exceeded, but by the first batch. The broker's
own limits (maxTransferCountOnMessageInMemory and the others) are those at which no
further batch is begun: the last one may exceed them.

A batch has a tag code only if its sender has given it tags as a whole, which official
clients do not. RocketMQ then gives it to no consumer that subscribes to tags; here such
a consumer gets it, and filters each message, as clients do anyway. A single message
without tags does not go to such a consumer. A filter on properties sees those of the
batch as a whole.

Every record is checked by L{rocketbroker.store.reading.checked_read}: for so many
messages at once that costs little.

C{docs/facts/store.md} 9.1 and 16.
"""

from __future__ import annotations

from typing import final

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.consumequeue.batch_queue import BatchUnits
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.reading.checked_read import CheckedRead
from rocketbroker.store.reading.property_filter import EntryFilter
from rocketbroker.store.reading.pull import Reading, nothing, outside
from rocketbroker.store.reads import (
    OFFSET_FOUND_NULL,
    Matches,
    MessageFilter,
    ReadResult,
)

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
        own, most, max_bytes = reading.limits(queue, offset, max_messages, max_bytes)
        cold = not own
        collector = reading.checked_read(queue, offset, max_messages, max_bytes, cold)
        start = units.find(offset)
        until = start + max(
            -(-reading.scan_bytes // BATCH_SIZE), min(max_messages, most)
        )
        last = min(units.files.size // BATCH_SIZE * reading.max_files + start, until)
        wanted = matches
        if not isinstance(wanted, MessageFilter):
            wanted = MessageFilter(wanted, None)
        entry_filter = reading.entry_filter(queue, cold, wanted)
        limits = max_messages, most
        at = _collect(units, offset, start, last, limits, collector, entry_filter)
        if at == offset:
            if offset < queue.min_offset:
                # The cleaner has removed the file meanwhile.
                return outside(offset, queue.reported_min_offset, end)
            return nothing(OFFSET_FOUND_NULL, end, first, end)
        return collector.result(at, first, end)


def _collect(
    units: BatchUnits,
    offset: int,
    number: int,
    until: int,
    limits: tuple[int, int],
    collector: CheckedRead,
    entry_filter: EntryFilter,
) -> int:
    """Take batches from a unit on, as long as they fit.

    @param limits: how many messages the client takes at the most, and with how many the
        broker stops.
    @return: the offset behind the last message that was passed.
    """
    at = offset
    max_messages, most = limits
    while number < until:
        found = units.units(number, min(until - number, UNIT_BATCH_SIZE))
        if not found:
            break
        for unit in found:
            if not unit.is_valid or unit.end <= at:
                # No such unit was ever written.
                number += 1
                continue
            before = collector.count
            if before and (before >= most or before + unit.messages > max_messages):
                return at
            if entry_filter.is_spent:
                return at
            collector.offset = unit.base
            entry = ENTRY.pack(unit.position, unit.size, unit.tag_code)
            if entry_filter.takes(
                unit.position, unit.size, entry_filter.code_of(unit)
            ) and (not collector.collect(entry, 1, None)):
                return at
            if collector.count > before:
                collector.count = before + unit.messages
            at = unit.end
            number += 1
    return at

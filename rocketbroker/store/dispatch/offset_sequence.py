# -*- test-case-name: tests.store.dispatch.test_offset_sequence -*-
"""The sequence of queue offsets at a start: records whose offset is not the next one.

While a start makes entries again from the log, the offsets of each queue go up by one.
Two rules decide on a record with another offset:

  - A greater one: records before it are lost, and the gap is filled. They were corrupt,
    or a repair has put others in their place.
  - A smaller one: the topic was deleted and made again. Its offsets begin at 0, or
    later if its first records are lost.

An empty queue begins with any offset, as the log may begin in the middle of it. Else
the records that are lost must have had room between this record and the one before it
in the queue: no CRC covers topic, queue id and queue offset of a record. One that says
an impossible place is reported and passed over. One whose entry from before the stop
stands where a record is expected keeps that place; each read checks it.

The place of a record that is lost together with its entry is kept by a second entry of
the record before it. Our readers pass over the second entry. RocketMQ's do not, but its
consumers know messages by the offsets in them, and take the two for one. RocketMQ could
not deal with an entry of no record: for a size that no record has it answers each pull
there with an error, or passes over the rest of the segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, final

from rocketbroker.records import batches
from rocketbroker.records.entries import ENTRY, FILLED, FILLED_SIZE, SIZE
from rocketbroker.records.queueunits import decode_batch
from rocketbroker.records.record_head import LEAST_SIZE, RecordHead
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import CorruptionLog

#: An offset, and the record that stands there, or only its entry.
Placed: TypeAlias = tuple[int, RecordHead | bytes]


@final
class OffsetSequence:
    """Decides on the records of one scan of the log.

    @ivar gaps: how often entries were missing whose records may stand before the start
        of the scan.
    @ivar has_restarted: whether the offsets of a queue began again.
    """

    def __init__(self, corruption_log: CorruptionLog, lowest: int, start: int) -> None:
        """
        @param lowest: where the log begins.
        @param start: where the scan starts.
        """
        self._corruption_log = corruption_log
        self._lowest = lowest
        self._start = start
        self.gaps = 0
        self.has_restarted = False

    def decide(
        self, queue: Queue, found: RecordHead, expected: int
    ) -> Iterable[Placed]:
        """The entries to make, in order, for a record whose queue offset is not
        C{expected}, the queue's next."""
        position, offset = found.position, found.queue_offset
        is_mine = _entry_at(queue, offset)[0] == position
        stood, size = _entry_at(queue, expected)
        if stood == position and not is_mine:
            return [(expected, queue.read(expected, 1))]
        is_empty = not queue.pending and queue.min_offset == queue.max_offset
        # Else its first records stand in bytes that the scan passed over.
        if is_empty and not self._lowest <= stood <= position - size:
            self.gaps += 1
            return [(offset, found)]
        if is_mine or _has_room(queue, found, offset, expected, LEAST_SIZE):
            self.has_restarted |= offset < expected
            return self._with_gap(queue, found, expected)
        self._pass(queue, found)
        return []

    def takes_unit(
        self, queue: Queue, found: RecordHead, base: int, expected: int
    ) -> bool:
        """Whether to enter a record into a batch queue, at its own offset, which is
        not C{expected}. Units need not be dense, so a gap is not filled.

        @param base: the offset of its first message.
        """
        batch = queue.batch
        assert batch is not None
        last = decode_batch(batch.pending[-1]) if batch.pending else batch.last()
        self.gaps += base > expected
        # One inside the batch before it shows that one's number of messages wrong.
        is_right = last is None or last.base < base < expected
        if is_right or _has_room(queue, found, base, expected, batches.LEAST_SIZE):
            return True
        self._pass(queue, found)
        return False

    def _with_gap(
        self, queue: Queue, found: RecordHead, expected: int
    ) -> Iterator[Placed]:
        """A record, and before it an entry for each that could not be read: the entry
        that was there, or one that keeps the place."""
        position, offset = found.position, found.queue_offset
        behind = _end_of(queue)
        is_first = behind <= self._start
        before = queue.pending[-1] if queue.pending else b""
        if not before and expected > 0:
            before = queue.read(expected - 1, 1)
        if not any(before):
            before = FILLED
        for at in range(expected, offset):
            stood, size = _entry_at(queue, at)
            self.gaps += is_first and stood < 0
            if behind <= stood and stood + size <= position:
                behind = stood + size
                before = queue.read(at, 1)
                yield at, before
            else:
                stood, size, _ = ENTRY.unpack(before)
                yield at, ENTRY.pack(stood, size, 0)
        yield offset, found

    def _pass(self, queue: Queue, found: RecordHead) -> None:
        self._corruption_log.note(
            found.position,
            f"The record at position {found.position} ({found.size} bytes) has the "
            f"queue offset {found.queue_offset} of {queue.topic}/{queue.queue_id}, "
            "which does not fit the records beside it; it is passed over.",
        )


def _has_room(
    queue: Queue, found: RecordHead, offset: int, expected: int, least: int
) -> bool:
    """Whether the messages that are missing before a record could stand between it and
    the one before it.

    @param offset: that of its first message.
    @param least: the bytes of the smallest message.
    """
    missing = offset - expected if offset > expected else offset
    return missing * least <= found.position - _end_of(queue)


def _end_of(queue: Queue) -> int:
    """Where the last record ends that was entered into a queue, or is about to be."""
    pending = queue.pending if queue.batch is None else queue.batch.pending
    return queue.pending_end if pending else queue.max_position


def _entry_at(queue: Queue, offset: int) -> tuple[int, int]:
    """Position and size in the entry at an offset; -1 and 0 if there is none."""
    entry = queue.files.read(offset * SIZE, SIZE)
    if len(entry) < SIZE:
        return -1, 0
    position, size, _ = ENTRY.unpack(entry)
    return (position, size) if 0 < size < FILLED_SIZE else (-1, 0)


def keep_places(queue: Queue, end: int) -> None:
    """Extend a queue over entries from before the stop whose records would be in the
    log: they are corrupt, and their places are kept.

    @param end: where the log ends.
    """
    if queue.files.ends_at(queue.max_offset * SIZE):
        return
    position, size = _entry_at(queue, queue.max_offset)
    while size >= LEAST_SIZE and queue.max_position <= position <= end - size:
        queue.set_offsets(queue.min_offset, queue.max_offset + 1)
        queue.max_position = position + size
        position, size = _entry_at(queue, queue.max_offset)

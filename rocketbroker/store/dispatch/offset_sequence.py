# -*- test-case-name: tests.store.dispatch.test_offset_sequence -*-
"""The sequence of queue offsets at a start: records whose offset is not the next one.

While a start makes entries again from the log, the offsets of each queue go up by one.
A record with another offset is one of these:

  - The records before it are lost: they were corrupt, or the queue's files are gone.
    The gap is filled.
  - The topic was deleted and made again, so its offsets begin again at 0.
  - A bit of its queue id, topic or queue offset was flipped; no CRC covers them. In the
    wrong place it would hide the record that belongs there, or all of a queue.

The decision uses, first, the entry that was there before the stop; then the number of
bytes before the record that could not be read; then the next record of that queue.
Until that has come, the record waits here.

The place of a record that is lost together with its entry is kept by a second entry of
the record before it. Our readers pass over the second entry. RocketMQ's do not, but its
consumers know messages by the offsets in them, and take the two for one. RocketMQ could
not deal with an entry of no record: for a size that no record has it answers each pull
there with an error, or passes over the rest of the segment.

The units of a batch queue need not be dense, so there a greater offset does no harm. A
smaller one would end the queue before messages that are there; it is believed if it is
0, if the record before has an offset or a number of messages that is too great, or if
the next record goes on from it.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from rocketbroker.records.entries import ENTRY, FILLED, FILLED_SIZE, SIZE
from rocketbroker.records.queueunits import decode_batch
from rocketbroker.records.record_head import LEAST_SIZE, RecordHead
from rocketbroker.store.commitlog.batch_records import place_of
from rocketbroker.store.commitlog.scanner import whole_record
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import CorruptionLog

#: An entry that was never written.
NOTHING: Final = bytes(SIZE)

#: An offset, and the record that stands there, or only its entry.
Placed: TypeAlias = tuple[int, RecordHead | bytes]


@final
class OffsetSequence:
    """Decides on the records of one start.

    @ivar files_replaced: whether files of queues were made again.
    @ivar lost_bytes: how many of the scanned bytes could not be read.
    @ivar gaps: how often the records before one were missing, for no known reason.
    """

    def __init__(self, segments: Segments, corruption_log: CorruptionLog) -> None:
        self._segments = segments
        self._corruption_log = corruption_log
        self._waiting: dict[Queue, tuple[RecordHead, int]] = {}
        self._behind: dict[Queue, RecordHead] = {}
        self._leaps: dict[Queue, tuple[int, int]] = {}
        self._confirmed: set[Queue] = set()
        self.files_replaced = False
        self.lost_bytes = 0
        self.gaps = 0

    def begin(self) -> None:
        """Begin a scan of the log."""
        self._waiting.clear()
        self._behind.clear()
        self._leaps.clear()
        self._confirmed.clear()
        self.lost_bytes = 0
        self.gaps = 0

    def decide(self, queue: Queue, found: RecordHead, expected: int) -> list[Placed]:
        """The entries to make, in order, for a record whose queue offset is not
        C{expected}, the queue's next."""
        position, offset = found.position, found.queue_offset
        if _entry_at(queue, offset)[0] == position:
            return self._with_gap(queue, found, expected)
        if _entry_at(queue, expected)[0] == position:
            # Its entry stays as it was; readers check the record and pass over it.
            self._pass(queue, found)
            return [(expected, queue.read(expected, 1))]
        if offset == 0 and not self._is_confirmed(queue):
            # The topic began again, and its entries are lost.
            return [(offset, found)]
        is_empty = not queue.pending and queue.min_offset == queue.max_offset
        if expected == 0 and self._has_entry_before(queue, found):
            # Its first records stand in bytes that the scan passed over.
            return self._with_gap(queue, found, expected)
        if expected == 0 or (is_empty and offset > expected):
            # The log begins in the middle of the queue.
            self.gaps += 1
            return [(offset, found)]
        if is_empty and self.files_replaced and _is_unknown(queue, offset, expected):
            # Its files were made again, without the entries that they had.
            queue.set_offsets(offset, offset)
            return [(offset, found)]
        if 0 < offset - expected <= self.lost_bytes // LEAST_SIZE:
            return self._with_gap(queue, found, expected)
        waiting, then = self._waiting.pop(queue, (None, 0))
        if waiting is not None and then == expected:
            if offset == waiting.queue_offset + 1:
                self.gaps += offset > expected
                return [(offset - 1, waiting), (offset, found)]
            self._pass(queue, waiting)
            if offset == expected + 1:
                entry = ENTRY.pack(waiting.position, waiting.size, 0)
                return [(expected, entry), (offset, found)]
        self._waiting[queue] = found, expected
        return []

    def decide_unit(
        self, queue: Queue, found: RecordHead, place: tuple[int, int], expected: int
    ) -> list[RecordHead]:
        """The same for a batch queue.

        @param place: the offset of its first message, and how many it has.
        @return: the records to enter, at their own offsets.
        """
        base, messages = place
        before = self._behind.pop(queue, None)
        if before is not None:
            if _end_of(before) == base:
                return [before, found]
            self._pass(queue, before)
        if base > expected:
            self._leaps[queue] = base + messages, expected + messages
            return [found]
        if base == 0 or self._leaps.get(queue) == (expected, base):
            return [found]
        batch = queue.batch
        assert batch is not None
        last = decode_batch(batch.pending[-1]) if batch.pending else batch.last()
        if last is not None and last.base < base:
            return [found]
        self._behind[queue] = found
        return []

    def end(self, again: bool) -> None:
        """Decide on the records that still wait, as no other record comes.

        @param again: whether more of the log can be scanned; it is to be done if
            C{gaps} is not 0.
        """
        for queue, found in self._behind.items():
            self._pass(queue, found)
        self._behind.clear()
        waiting, self._waiting = self._waiting, {}
        for queue, (found, expected) in waiting.items():
            if found.queue_offset > expected and again:
                self.gaps += 1
            else:
                self._pass(queue, found)

    def _is_confirmed(self, queue: Queue) -> bool:
        """Whether the entries that were made so far were in the files already."""
        blob = b"".join(queue.pending)
        return queue in self._confirmed or (
            bool(blob)
            and queue.files.read(queue.pending_offset * SIZE, len(blob)) == blob
        )

    def _has_entry_before(self, queue: Queue, found: RecordHead) -> bool:
        """Whether the first entry from before the stop leads to a place in the log
        before a record, and the lost bytes explain the records between."""
        files = queue.files.all
        first = files[0].start // SIZE if files else found.queue_offset
        if not 0 < found.queue_offset - first <= self.lost_bytes // LEAST_SIZE:
            return False
        at, size = _entry_at(queue, first)
        return self._segments.all[0].start <= at and at + size <= found.position

    def _with_gap(self, queue: Queue, found: RecordHead, expected: int) -> list[Placed]:
        """A record, and before it an entry for each that could not be read: the entry
        that was there, or one that keeps the place."""
        placed: list[Placed] = []
        position, offset = found.position, found.queue_offset
        behind = queue.pending_end if queue.pending else queue.max_position
        if queue.pending:
            before = queue.pending[-1]
        else:
            before = queue.read(expected - 1, 1) if expected > 0 else b""
        if len(before) < SIZE or before == NOTHING:
            before = FILLED
        files = queue.files.all
        # Nothing is kept before the first file: these records are gone from the log.
        first = files[0].start // SIZE if files else 0
        for at in range(max(expected, first), offset):
            stood, size = _entry_at(queue, at)
            if behind <= stood and stood + size <= position:
                behind = stood + size
                before = queue.read(at, 1)
                placed.append((at, before))
            else:
                stood, size, _ = ENTRY.unpack(before)
                placed.append((at, ENTRY.pack(stood, size, 0)))
        placed.append((offset, found))
        return placed

    def _pass(self, queue: Queue, found: RecordHead) -> None:
        self._corruption_log.note(
            found.position,
            f"The record at position {found.position} ({found.size} bytes) has the "
            f"queue offset {found.queue_offset} of {queue.topic}/{queue.queue_id}, "
            "which does not fit the records beside it; it is passed over.",
        )

    def settled(
        self, queue: Queue, offset: int, entries: list[bytes]
    ) -> list[bytes] | None:
        """The entries to write from an offset on. An entry that is there already stays
        if its record is whole and has that queue offset.

        @return: None if all are there already.
        """
        size = len(entries) * SIZE
        old = queue.files.read(offset * SIZE, size)
        if old == b"".join(entries):
            self._confirmed.add(queue)
            queue.files.ends_at(offset * SIZE + size)
            return None
        if not any(old):
            return entries
        kept = list(entries)
        for at in range(len(old) // SIZE):
            before = old[at * SIZE : (at + 1) * SIZE]
            position = ENTRY.unpack(before)[0]
            if position == ENTRY.unpack(entries[at])[0]:
                continue
            if self._leads(queue, offset + at, before):
                kept[at] = before
                other = ENTRY.unpack(entries[at])[0]
                self._corruption_log.note(
                    other,
                    f"The record at position {other} has the queue offset "
                    f"{offset + at} of {queue.topic}/{queue.queue_id}, which is that "
                    f"of the one at position {position}; it is passed over.",
                )
        return kept

    def _leads(self, queue: Queue, offset: int, entry: bytes) -> bool:
        """Whether an entry leads to a whole record with that queue offset."""
        position, size, _ = ENTRY.unpack(entry)
        found = whole_record(self._segments, position, size)
        wanted = size, queue.topic_bytes, queue.queue_id, offset
        return found is not None and found[1:5] == wanted


def _end_of(found: RecordHead) -> int:
    """The offset behind the last message of a record in a batch queue."""
    base, messages = place_of(found) or (-1, 0)
    return base + messages


def _is_unknown(queue: Queue, offset: int, end: int) -> bool:
    """Whether the entries from an offset on are only copies of the one before."""
    if not 0 < offset < end:
        return False
    ends = [queue.read(at, 1) for at in (offset - 1, end - 1)]
    return ends[1] == FILLED or (
        len(ends[0]) == SIZE == len(ends[1])
        and ENTRY.unpack(ends[0])[:2] == ENTRY.unpack(ends[1])[:2]
    )


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
    offset = queue.max_offset
    behind = queue.max_position
    if queue.files.ends_at(offset * SIZE):
        return
    while True:
        position, size = _entry_at(queue, offset)
        if size < LEAST_SIZE or position < behind or position + size > end:
            break
        behind = position + size
        offset += 1
    if offset > queue.max_offset:
        queue.set_offsets(queue.min_offset, offset)
        queue.max_position = behind

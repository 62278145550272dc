# -*- test-case-name: tests.store.recovery.test_unentered -*-
"""Records that stand in no queue, though they should.

A broker of RocketMQ's writes nothing down of where its queues ended
(L{rocketbroker.store.recovery.clean_shutdown} does). A queue that has since lost its
last file, or its directory, in a copy that was not complete, looks like one that ended
earlier; its last messages would be gone, and the numbers of these given to others.

The log knows better, but to read it takes two seconds for each GiB. The queues are
a tenth of that or less: between them they lead to every record, so what none of them
leads to is a gap, and only gaps are read. What is normal there is passed over: fillers,
half and rolled back messages, those of deleted topics. What a queue should have behind
its last entry is lost, and so is what it should have before its first file.

A topic that was deleted and made again has the same numbers once more, so what stands
in the log before its queues begin is of no use. Of a queue without any entry the others
of its topic tell it (L{rocketbroker.store.recovery.fates}). Where they do not it
counts as deleted, and that is said; but without any entry of the topic, and where the
broker has no table of topics, it counts as lost.

This is looked at when a store comes from somebody else, and after a crash for what is
before the part of the log that is read anyway; from the end of the log backwards, and
only so far that a start does not wait long for it. What is older counts as it stands.

Light queues are not looked at: their messages stand in other queues, too.

The store sheet, sections 7 and 15.
"""

from __future__ import annotations

import contextlib
import sys
from array import array
from collections.abc import Iterator
from functools import partial
from typing import Final, final

from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.records.names import is_lmq
from rocketbroker.records.queueunits import BatchUnit
from rocketbroker.records.sysflags import INNER_BATCH
from rocketbroker.store.commitlog.batch_records import place_of
from rocketbroker.store.commitlog.loading import is_stand_in
from rocketbroker.store.commitlog.scanner import NO_CRC, Found, Scan
from rocketbroker.store.commitlog.segments import Segment, Segments
from rocketbroker.store.consumequeue.batch_queue import BatchUnits
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.ordered import first_that
from rocketbroker.store.recovery.fates import Fate, fate_of, unknown

#: So many entries are looked at: 80 MB of queue files.
MAX_ENTRIES: Final = 4_000_000

#: So many bytes of the log at once, which bounds the memory that it takes.
BATCH_SIZE: Final = 128 << 20

#: So many gaps and records in them are read.
MAX_READ: Final = 10_000

#: What it costs to look into a queue, in entries, and at a unit of a batch queue.
_A_LOOK: Final = 100
_A_UNIT: Final = 20

#: Words of 4 bytes: an entry has five, the low half of the position is the second, the
#: size the third.
_WORDS: Final = SIZE // 4
_LOW: Final = 0xFFFFFFFF


@final
class Unentered:
    """One look.

    @ivar position: where the first such record is; -1 if there is none.
    """

    def __init__(
        self,
        segments: Segments,
        table: QueueTable,
        listed: frozenset[str] | None,
        most_entries: int = MAX_ENTRIES,
        most_read: int = MAX_READ,
        at_once: int = BATCH_SIZE,
    ) -> None:
        """
        @param listed: the topics that the broker knows; None: those are not known.
        @param most_entries: so many entries are looked at.
        @param most_read: so many gaps and records in them are read.
        @param at_once: so many bytes of the log are looked at together.
        """
        self._segments = segments
        self._table = table
        self._listed = listed
        self._entries_left = most_entries
        self._read_left = most_read
        self._at_once = at_once
        self._ends: dict[Queue, int] = {}
        self._begins: dict[Queue, int] = {}
        self._fronts = {
            queue: queue.files.all[0].start // SIZE
            for queue in table.all()
            if queue.batch is None and queue.files.all
        }
        with contextlib.suppress(OSError):
            self._begins = {queue: _begin_of(queue) for queue in table.all()}
        self._first = "", 0
        self._lost: set[Queue] = set()
        self._has_older: set[str] = set()
        self._doubtful: dict[Queue, tuple[int, int]] = {}
        self.position = -1

    def look(self, end: int) -> None:
        """I{Blocking.} See what there is. What cannot be read counts as it stands.

        @param end: where the last record ends that a queue leads to.
        """
        queues = [q for q in self._table.all() if q.has_files and not is_lmq(q.topic)]
        with contextlib.suppress(OSError):
            self._ends = {queue: _end_of(queue) for queue in queues}
            for segment in reversed(self._segments.all):
                if segment.start < end and not is_stand_in(segment):
                    self._segment(segment, min(end, segment.end))
        for queue in self._lost & self._doubtful.keys():
            # What it has before the others of its topic is lost with the rest.
            self._note(queue, *self._doubtful.pop(queue))

    def _segment(self, segment: Segment, end: int) -> None:
        """Look at a segment, the last records of it first."""
        pieces = range(segment.start, end, self._at_once)
        for base in reversed(pieces):
            if self._entries_left <= 0 or self._read_left <= 0:
                return
            positions, sizes = self._columns(base)
            if base > segment.start:
                if not positions:
                    continue
                # A record may begin in the piece before.
                base += min((at - base) & _LOW for at in positions)
            for start, until in _gaps(base, positions, sizes, end):
                if self._read_left <= 0 or self._read(start, until):
                    # All that follows is entered again with it.
                    break
            end = base

    def doubts(self, start: int) -> list[str]:
        """Sentences about queues that may be lost.

        @param start: what stands from there on is entered again, whatever it is.
        """
        said = []
        for topic in dict.fromkeys(queue.topic for queue in self._doubtful):
            doubtful = {q: at for q, at in self._doubtful.items() if q.topic == topic}
            begins, at = self._begins_of(topic), min(doubtful.values())[0]
            fate = fate_of(begins, at, topic in self._has_older)
            if at >= start or fate is Fate.DELETED:
                continue
            what = f"No queue of {topic} has entries"
            if begins:
                names = [f"{topic}/{n}" for n in sorted(q.queue_id for q in doubtful)]
                what = f"{', '.join(names)} {'have' if names[1:] else 'has'} no entries"
            said.append(unknown(what, at))
        return said

    def said(self) -> list[str]:
        """A sentence about what is lost, if anything is."""
        name, offset = self._first
        if not name:
            return []
        return [
            f"{name} has no entries from offset {offset} on, though the log has these "
            f"messages. What is stored from position {self.position} on is entered "
            "again."
        ]

    # What the queues lead to.

    def _columns(self, base: int) -> tuple[array[int], array[int]]:
        """The low halves of the positions, and the sizes, of the records behind a
        position that the queues lead to, but for those that were seen before."""
        positions, sizes = array("I"), array("I")
        for queue, end in self._ends.items():
            self._entries_left -= _A_LOOK
            if _position(queue, end - 1) < base:
                continue
            first = first_that(_start_of(queue), end, partial(_is_from, queue, base))
            self._ends[queue] = first
            if queue.batch is not None:
                self._entries_left -= _A_UNIT * (end - first)
                for unit in _units(queue.batch, first, end):
                    positions.append(unit.position & _LOW)
                    sizes.append(unit.size)
                continue
            self._entries_left -= end - first
            while first < end:
                content = queue.read(first, end - first)
                count = len(content) // SIZE
                if not count:
                    break
                words = array("I", content[: count * SIZE])
                if sys.byteorder == "little":
                    words.byteswap()
                positions += words[1::_WORDS]
                sizes += words[2::_WORDS]
                first += count
        return positions, sizes

    # What is between.

    def _read(self, start: int, until: int) -> bool:
        """Read the records of a gap up to the first that is lost.

        @return: whether there is one.
        """
        self._read_left -= 1
        with contextlib.suppress(OSError):
            for found in Scan(self._segments, start, until, NO_CRC):
                self._read_left -= 1
                if self._read_left <= 0:
                    break
                if self._is_lost(found):
                    return True
        return False

    def _is_lost(self, found: Found) -> bool:
        """Whether its queue should have a record."""
        position, _, topic, queue_id, offset, sys_flag, _, _ = found
        if sys_flag & 12 in (4, 12) or not self._is_listed(topic):
            return False
        queue = self._table.get_by_bytes(topic, queue_id)
        if queue is None:
            return False
        begin = self._begins.get(queue, -1)
        if begin >= 0:
            if offset < self._fronts.get(queue, 0):
                # In a queue that was deleted and made again files begin with number 0.
                self._note(queue, position, offset)
                return True
            if position < begin:
                self._has_older.add(queue.topic)
                return False
        if position < queue.max_position:
            return False
        if queue.batch is not None:
            placed = place_of(found)
            if placed is None:
                return False
            offset = placed[0]
        elif sys_flag & INNER_BATCH:
            return False
        if offset < queue.max_offset:
            return False
        if begin < 0 and self._is_doubtful(queue, position):
            place = position, offset
            self._doubtful[queue] = min(self._doubtful.get(queue, place), place)
            return False
        self._note(queue, position, offset)
        return True

    def _note(self, queue: Queue, position: int, offset: int) -> None:
        self._lost.add(queue)
        if self.position < 0 or position < self.position:
            self.position = position
            self._first = f"{queue.topic}/{queue.queue_id}", offset

    def _is_listed(self, topic: bytes) -> bool:
        return self._listed is None or topic.decode("utf-8", "replace") in self._listed

    def _is_doubtful(self, queue: Queue, position: int) -> bool:
        """Whether a queue without entries needs none for a record, for all that is
        known so far."""
        begins = self._begins_of(queue.topic)
        if self._listed is None and not begins:
            return False
        return fate_of(begins, position, False) is not Fate.LOST

    def _begins_of(self, topic: str) -> list[int]:
        """Where the queues of a topic that have entries begin."""
        return [
            0 if self._fronts.get(queue, 0) else self._begins[queue]
            for queue in self._table.of_topic(topic)
            if self._begins.get(queue, -1) >= 0
        ]


def _gaps(
    base: int, positions: array[int], sizes: array[int], end: int
) -> list[tuple[int, int]]:
    """Where no record is between two positions.

    @param positions: the low halves of those that are there, in any order.
    @param sizes: their sizes.
    """
    if sum(sizes) == end - base:
        # As it is nearly everywhere but at the end of a segment.
        return []
    starts = sorted([base + ((at - base) & _LOW) for at in positions])
    pairs = zip(positions, sizes, strict=True)
    ends = sorted([base + ((at - base) & _LOW) + size for at, size in pairs])
    gaps = []
    behind = base
    for start, its_end in zip(starts, ends, strict=True):
        if start > behind:
            gaps.append((behind, min(start, end)))
        behind = max(behind, its_end)
    return [*gaps, (behind, end)] if behind < end else gaps


def _begin_of(queue: Queue) -> int:
    """Where the record of the first entry in its files is, whatever of them counts; -1
    if there is none."""
    if queue.batch is not None:
        return _position(queue, queue.batch.start)
    files = queue.files.all
    if not files:
        return -1
    low, high = files[0].start // SIZE, (files[-1].start + queue.files.size) // SIZE
    first = first_that(low, high, partial(_is_no_filler, queue))
    position, size, _ = ENTRY.unpack(queue.read(first, 1) or bytes(SIZE))
    return position if size > 0 else -1


def _is_no_filler(queue: Queue, number: int) -> bool:
    """Whether an entry is none of those before the first."""
    return _position(queue, number) >= 0


def _start_of(queue: Queue) -> int:
    """The number of the first entry, or unit, that counts."""
    return queue.min_offset if queue.batch is None else queue.batch.start


def _end_of(queue: Queue) -> int:
    """The number behind the last one."""
    return queue.max_offset if queue.batch is None else queue.batch.end


def _units(batch: BatchUnits, first: int, end: int) -> Iterator[BatchUnit]:
    """Those of a batch queue between two numbers that make sense."""
    while first < end:
        units = batch.units(first, end - first)
        if not units:
            return
        first += len(units)
        yield from (unit for unit in units if unit.is_valid)


def _position(queue: Queue, number: int) -> int:
    """Where the record of an entry, or unit, is; -1 if none stands there."""
    if queue.batch is not None:
        unit = queue.batch.unit(number)
        return -1 if unit is None else unit.position
    entry = queue.read(number, 1)
    if len(entry) < SIZE:
        return -1
    position, size, _ = ENTRY.unpack(entry)
    return position if size != FILLED_SIZE else -1


def _is_from(queue: Queue, start: int, number: int) -> bool:
    """Whether the record of an entry is at a position or behind it."""
    return _position(queue, number) >= start

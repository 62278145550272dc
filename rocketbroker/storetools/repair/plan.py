# -*- test-case-name: tests.storetools.repair.test_plan -*-
"""The plan of a repair: the records written where the log cannot be read.

For each region without a good record there are several sources: the entries of queues
and batch queues, also those behind the last one that leads to a record; the record's
own head; the queue offsets that are missing behind it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence, Set
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.properties import CRC32
from rocketbroker.records.record import CRC_PROPERTY_SIZE
from rocketbroker.records.record_head import LEAST_SIZE
from rocketbroker.records.sysflags import INNER_BATCH
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.queue import is_usable
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.filler_records import Filling, Slot
from rocketbroker.storetools.verify.log import is_filler
from rocketbroker.storetools.verify.lookup import (
    entries_between,
    queues_in,
    segment_at,
    units_between,
    written_from,
)
from rocketbroker.storetools.verify.queues import MAX_RECORD, SHARED_PREFIX
from rocketbroker.storetools.verify.report import Fault

#: How the CRC of a record begins, as its last property.
_CRC: Final = CRC32.encode() + b"\x01"


#: So many missing offsets are tried for a record that no queue knows: it was followed
#: soon by the next one of its queue, or it was the last.
MAX_TRIED: Final = 1000


@final
class Plan:
    """The plan of one repair.

    @ivar filling: in the log.
    @ivar damaged: the queues that have to be made again.
    @ivar unread: the bytes that cannot be read where records are replaced: position,
        size, and the system's message. Zeros stand for them.
    @ivar rest: where the log ends, and how many bytes of something follow it.
    """

    def __init__(
        self,
        files: IFiles,
        root: str,
        reader: StoreReader,
        faults: Sequence[Fault],
        store_ms: int,
        new: Set[tuple[int, int]] = frozenset(),
    ) -> None:
        """
        @param store_ms: the store time of records whose own cannot be read, and that no
            record follows.
        @param new: from where to where nothing was written at the ends of files.
        """
        self._reader = reader
        self._faults = faults
        self._batches = sorted(queues_in(files, os.path.join(root, BATCHES)))
        self.rest = 0, 0
        self.damaged = {each.queue for each in faults if each.queue is not None}
        regions = {fault.region for fault in faults if fault.region != (0, 0)} | new
        self.filling = Filling(self._read, store_ms, self._is_sealed(regions))
        times = self._times(regions, store_ms)
        for start, end in sorted(regions):
            self.filling.store_ms = times[start]
            self._fill(start, end)
        self._misplaced()
        filling = self.filling
        mended = {slot.position for slot in filling.mended}
        for fault in faults:
            if fault.kind == "crc" and fault.position not in mended:
                filling.seal(*fault.offsets)
        filling.patches.sort()
        paths = {each.path: each.start for each in reader.segments}
        self.unread = [
            (paths[each.path] + each.start, each.end - each.start, each.why)
            for each in reader.unread.taken()
            if each.path in paths
        ]
        self.damaged |= {
            (each.topic.decode("utf-8", "replace"), each.queue_id)
            for each in filling.emptied
        }

    def _read(self, position: int, size: int) -> bytes:
        segment = segment_at(self._reader, position)
        return segment.pread(size, position - segment.start)

    def _times(self, regions: Set[tuple[int, int]], now_ms: int) -> dict[int, int]:
        """The latest store time of each region: that of the record behind it. A search
        by time relies on times that grow."""
        times = {}
        later = now_ms
        for start, end in sorted(regions, reverse=True):
            later = times[start] = self._time(end) or later
        return times

    def _time(self, position: int) -> int:
        """The store time of the record at a position; 0 if none can be read there."""
        data = self._record(position)
        return parse(data, 0, position, True)[6] if data else 0

    def _is_sealed(self, regions: Set[tuple[int, int]]) -> bool:
        """Whether the log has records with a CRC of their own: the first one of a file,
        or behind a region."""
        starts = {segment.start for segment in self._reader.segments}
        return any(
            self._record(position)[-CRC_PROPERTY_SIZE:].startswith(_CRC)
            for position in sorted(starts | {end for _, end in regions})
        )

    def _record(self, position: int) -> bytes:
        """The record at a position; empty if there is none, or not a whole one."""
        try:
            size = int.from_bytes(self._read(position, 4), "big")
            segment = segment_at(self._reader, position)
            data = self._read(position, min(size, MAX_RECORD, segment.end - position))
            parse(data, 0, position, True)
        except (Blank, Broken, StoreError):
            return b""
        return data

    def _fill(self, start: int, end: int) -> None:
        segment = segment_at(self._reader, start)
        known = self._slots(start, end) or list(self._missing(start, end))
        slots = [each for each in known if each.position + each.size <= end]
        is_last = segment is self._reader.segments[-1] and end == segment.end
        if is_last and not is_filler(self._read(start, 8)):
            # The log goes on there: bytes that belong to no message become zeros again.
            end = max((each.position + each.size for each in slots), default=start)
            if end < segment.end:
                self.rest = end, written_from(self._reader, end)
        self.filling.fill(start, end, slots, end == segment.end)

    def _slots(self, start: int, end: int) -> list[Slot]:
        """The records that queues know in a region."""
        reader = self._reader
        found = []
        lmqs: dict[int, list[tuple[bytes, int]]] = {}
        for topic in reader.topics():
            for queue_id in reader.queues(topic):
                with contextlib.suppress(StoreError):
                    where = topic, queue_id, start, end
                    for offset, position, size in entries_between(reader, *where):
                        name = topic.encode()
                        if topic.startswith(SHARED_PREFIX):
                            # Another topic's record, which may become shorter.
                            self.damaged.add((topic, queue_id))
                            lmqs.setdefault(position, []).append((name, offset))
                            continue
                        found.append(Slot(position, size, name, queue_id, offset))
        for topic, queue_id in self._batches:
            for unit in units_between(reader, topic, queue_id, start, end):
                place = topic.encode(), queue_id, unit.base, unit.messages
                found.append(Slot(unit.position, unit.size, *place))
        for slot in found:
            slot.lmqs = lmqs.get(slot.position, ())
        if not found:
            # The queue has lost it too; perhaps the record itself can be read.
            found += self._own_slot(start, end)
        return found

    def _missing(self, start: int, end: int) -> Iterator[Slot]:
        """The record of a region that no queue knows: the first offset that is missing
        behind it and makes it whole again, as its CRC tells."""
        tried = 0
        for fault in self._faults:
            first, behind = fault.offsets
            if fault.kind != "order" or behind - first != 1 or fault.position < end:
                continue
            assert fault.queue is not None
            topic, queue_id = fault.queue
            slot = Slot(start, end - start, topic.encode(), queue_id, first)
            if self.filling.would_mend(slot):
                yield slot
                return
            tried += 1
            if tried == MAX_TRIED:
                return

    def _own_slot(self, start: int, end: int) -> Iterator[Slot]:
        data = self._read(start, min(end - start, 64 << 20))
        try:
            found = parse(data, 0, start, False)
        except (Broken, Blank):
            return
        # A batch without messages is none, and its queue may have gaps.
        is_one = found.sys_flag & 0xC in (0, 8) and not found.sys_flag & INNER_BATCH
        if is_one and is_usable(found.topic.decode("utf-8", "replace")):
            yield Slot(
                start, found.size, found.topic, found.queue_id, found.queue_offset
            )

    def _misplaced(self) -> None:
        """Records that are whole, but say another topic, queue or offset than the entry
        that stands in order with its neighbours, if these lead where they should: else
        it may be the queue's file that is of another queue."""
        reader = self._reader
        seen = {position for position, _ in self.filling.patches}
        for fault in self._faults:
            if fault.kind != "entry" or fault.queue is None:
                continue
            topic, queue_id = fault.queue
            if topic.startswith(SHARED_PREFIX):
                # Its records are of other topics.
                continue
            offset = fault.offsets[0]
            first = max(offset - 1, reader.min_offset(topic, queue_id))
            around = [
                entry
                for at in range(first, offset + 2)
                for entry in reader.entries(topic, queue_id, at)[:1]
            ]
            positions = [entry[0] for entry in around]
            if len(around) <= offset - first or positions != sorted(set(positions)):
                continue
            position, size, _ = around[offset - first]
            if position in seen or not LEAST_SIZE <= size <= MAX_RECORD:
                continue
            if not self._has(position, size) or self._is_where_it_says(position):
                continue
            if all(
                at == offset
                or self._stated_place(around[at - first][0]) == (*fault.queue, at)
                for at in range(first, first + len(around))
            ):
                slot = Slot(position, size, topic.encode(), queue_id, offset)
                self.filling.correct(slot)

    def _has(self, position: int, size: int) -> bool:
        """Whether a part of the log is in one of its files."""
        return any(
            each.start <= position and position + size <= each.end
            for each in self._reader.segments
        )

    def _is_where_it_says(self, position: int) -> bool:
        """Whether the entry that a record says to be its own leads to it: then it is
        another entry that is wrong."""
        place = self._stated_place(position)
        if place is None or place[0] not in self._reader.topics():
            return False
        entries = self._reader.entries(*place)[:1]
        return any(entry[0] == position for entry in entries)

    def _stated_place(self, position: int) -> tuple[str, int, int] | None:
        """The topic, queue and offset in a record; None if more than its body is
        damaged."""
        try:
            segment = segment_at(self._reader, position)
            size = int.from_bytes(self._read(position, 4), "big")
            data = self._read(position, min(size, MAX_RECORD, segment.end - position))
            found = parse(data, 0, position, False)
        except (Broken, Blank, StoreError):
            return None
        return (
            found.topic.decode("utf-8", "replace"),
            found.queue_id,
            found.queue_offset,
        )

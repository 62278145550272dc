# -*- test-case-name: tests.storetools.repair.test_plan -*-
"""The plan of a repair: the records written where the log cannot be read.

For each region without a good record there are two sources: the entries of queues and
batch queues, and the record's own head.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.properties import CRC32
from rocketbroker.records.record import CRC_PROPERTY_SIZE
from rocketbroker.records.sysflags import INNER_BATCH
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.queue import is_usable
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.filler_records import FillerRecords, Slot
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


#: So many wrong entries of a queue may mean that records say a wrong place.
MAX_MISPLACED: Final = 10


@final
class RepairPlan:
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
    ) -> None:
        """
        @param store_ms: the store time of records whose own cannot be read, and that no
            record follows.
        """
        self._reader = reader
        self._faults = faults
        self._batches = sorted(queues_in(files, os.path.join(root, BATCHES)))
        self.rest = 0, 0
        self.damaged = {each.queue for each in faults if each.queue is not None}
        regions = {fault.region for fault in faults if fault.region != (0, 0)}
        self.filling = FillerRecords(self._read, store_ms, self._is_sealed(regions))
        for start, end in sorted(regions):
            # A search by time relies on times that grow.
            self.filling.store_ms = self._time(end) or store_ms
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
            for each in filling.emptied + filling.buried
        }

    def _read(self, position: int, size: int) -> bytes:
        segment = segment_at(self._reader, position)
        return segment.pread(size, position - segment.start)

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
        known = self._slots(start, end)
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
        for topic in reader.topics():
            name = topic.encode()
            for queue_id in reader.queues(topic):
                with contextlib.suppress(StoreError):
                    where = topic, queue_id, start, end
                    for offset, position, size in entries_between(reader, *where):
                        if topic.startswith(SHARED_PREFIX):
                            # Another topic's record, which may become shorter.
                            self.damaged.add((topic, queue_id))
                            continue
                        found.append(Slot(position, size, name, queue_id, offset))
        for topic, queue_id in self._batches:
            for unit in units_between(reader, topic, queue_id, start, end):
                place = topic.encode(), queue_id, unit.base, unit.messages
                found.append(Slot(unit.position, unit.size, *place))
        if not found:
            # The queue has lost it too; perhaps the record itself can be read.
            found += self._own_slot(start, end)
        return found

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
        that leads to them. Where many entries of a queue are wrong, it may be the
        queue's file that is of another queue."""
        wrong = Counter(each.queue for each in self._faults if each.kind == "entry")
        for fault in self._faults:
            queue = fault.queue
            if fault.kind != "entry" or queue is None or wrong[queue] > MAX_MISPLACED:
                continue
            if not queue[0].startswith(SHARED_PREFIX):
                with contextlib.suppress(StoreError):
                    self._correct(*queue, fault.offsets[0])

    def _correct(self, topic: str, queue_id: int, offset: int) -> None:
        for position, size, _ in self._reader.entries(topic, queue_id, offset)[:1]:
            if size <= MAX_RECORD and not self._is_entered(position):
                slot = Slot(position, size, topic.encode(), queue_id, offset)
                self.filling.correct(slot)

    def _is_entered(self, position: int) -> bool:
        """Whether the entry that a record says to be its own leads to it, or no record
        stands there: then it is another entry that is wrong."""
        data = self._record(position)
        if not data:
            return True
        found = parse(data, 0, position, True)
        topic = found.topic.decode("utf-8", "replace")
        if topic not in self._reader.topics():
            return False
        entries = self._reader.entries(topic, found.queue_id, found.queue_offset)
        return bool(entries) and entries[0][0] == position

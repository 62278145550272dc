# -*- test-case-name: tests.storetools.repair.test_loss_report -*-
"""Which messages a repair gives up: those that queues knew before and not after it.

What the start of a store takes from the end of a queue, as no record is where its
entries lead, is kept before, and told with the offsets.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence, Set
from typing import TypeAlias, final

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import SIZE
from rocketbroker.records.queueunits import BatchUnit
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse, tag_code_of
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.file_names import position_of_name
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.backup import Backup, Done
from rocketbroker.storetools.repair.filler_records import Filling, Slot
from rocketbroker.storetools.verify.lookup import (
    queues_in,
    segment_at,
    slots_of_batches,
)
from rocketbroker.storetools.verify.queues import MAX_RECORD
from rocketbroker.storetools.verify.rawqueues import raw_queues
from rocketbroker.storetools.verify.report import Fault

#: Topic and queue id.
Queue: TypeAlias = tuple[str, int]


def name_of(slot: Slot) -> str:
    """Which message, or messages, a record was."""
    topic = slot.topic.decode("utf-8", "replace")
    last = slot.queue_offset + slot.messages - 1
    more = f" to {last}" if slot.messages > 1 else ""
    return f"{topic}/{slot.queue_id} offset {slot.queue_offset}{more}"


def _span(unit: BatchUnit) -> str:
    """Which messages a batch is."""
    last = unit.end - 1
    return f"{unit.base}" + (f" to {last}" if last > unit.base else "")


def _no_batch(queue: Queue, unit: BatchUnit) -> Done:
    where = f"{queue[0]}/{queue[1]} offset {_span(unit)}"
    text = "its unit led to no batch that says to be this one; it is in no queue"
    return Done("given-up", where, unit.position, unit.size, text)


def _of_another(queue: Queue, units: list[BatchUnit], other: Queue) -> Done:
    where = f"{queue[0]}/{queue[1]} offsets {units[0].base} to {units[-1].end - 1}"
    text = (
        f"{len(units)} units led to batches that say to be of {other[0]}/{other[1]}, "
    )
    text += "which has them now: the units were of that queue, or the records changed"
    return Done("changed", where, units[0].position, 0, text)


def _elsewhere(
    reader: StoreReader, unit: BatchUnit, queues: Set[Queue]
) -> Queue | None:
    """Which batch queue has the batch now to which a unit of another one led."""
    try:
        segment = segment_at(reader, unit.position)
        size = min(unit.size, MAX_RECORD)
        data = segment.file.pread(size, unit.position - segment.start)
        found = parse(data, 0, unit.position, False)
    except (Blank, Broken, StoreError):
        return None
    queue = found[2].decode("utf-8", "replace"), found[3]
    if queue not in queues:
        return None
    there = slots_of_batches(reader, *queue, unit.position, unit.position + 1)
    return queue if any(there) else None


def _other_batch(queue: Queue, was: BatchUnit, now: BatchUnit) -> Done:
    where = f"{queue[0]}/{queue[1]} offset {_span(now)}"
    text = f"its unit said offset {_span(was)} and tag code {was.tag_code}; its record "
    text += f"says offset {_span(now)} and tag code {now.tag_code}, which counts now: "
    text += "the unit was changed, or the record's properties"
    return Done("changed", where, now.position, now.size, text)


def _told(queue: tuple[str, int], first: int, end: int, position: int) -> Done:
    topic, queue_id = queue
    count = end - first
    text = f"{count} entries of the queue led to no record"
    where = f"{topic}/{queue_id} offsets {first} to {end - 1}"
    return Done("given-up", where, position, 0, text)


@final
class LossReport:
    """The ends of all queues before a repair.

    @ivar ends: by topic and queue id, as they stand in files, whether they lead
        anywhere.
    """

    def __init__(
        self, root: str, reader: StoreReader, units: Sequence[tuple[Queue, BatchUnit]]
    ) -> None:
        """
        @param units: of batch queues, those that were wrong, and whose batches are not
            told otherwise.
        """
        self._units = units
        self._files = reader.files
        self._root = root
        self.ends, self._positions = self._look(reader)
        self._read = {
            queue: reader.max_offset(*queue)
            for queue in self._positions
            if queue[1] in reader.queues(queue[0])
        }

    def _look(
        self, reader: StoreReader
    ) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
        ends = {}
        positions = {}
        for queue in raw_queues(reader.files, self._root):
            key = queue.topic, queue.queue_id
            ends[key] = queue.end
            positions[key] = queue.place(queue.end - 1)[0]
        for key in queues_in(reader.files, os.path.join(self._root, BATCHES)):
            ends[key] = max(BatchQueueReader(reader, *key).span()[1], ends.get(key, 0))
        return ends, positions

    @property
    def size(self) -> int:
        """How many bytes of entries L{keep} keeps."""
        return SIZE * sum(self.ends[queue] - at for queue, at in self._read.items())

    def keep(self, copies: Backup) -> None:
        """I{Blocking.} Keep the entries that lead nowhere.

        @raise OSError: the disk refused.
        """
        for (topic, queue_id), first in self._read.items():
            end = self.ends[topic, queue_id] * SIZE
            at = first * SIZE
            folder = os.path.join(self._root, "consumequeue", topic, str(queue_id))
            for name in self._files.list(folder):
                start = position_of_name(name)
                path = os.path.join(folder, name)
                if start < 0 or start >= end or self._files.is_dir(path):
                    continue
                file = self._files.open_readonly(path)
                try:
                    stop = min(end, start + file.size())
                    if at < stop:
                        skip = max(at, start)
                        copies.keep(path, file, skip - start, stop - skip)
                finally:
                    file.close()

    def expected(self, filling: Filling) -> list[Done]:
        """What is given up, before it is done."""
        ends = dict(self._read)
        for slot in filling.mended + filling.emptied:
            key = slot.topic.decode("utf-8", "replace"), slot.queue_id
            if key in ends:
                ends[key] = max(ends[key], slot.queue_offset + 1)
        return self._between(ends)

    def found(self, reader: StoreReader) -> list[Done]:
        """What was given up."""
        ends = self._look(reader)[0]
        return self._between(ends) + self._batches(reader, ends)

    def _batches(self, reader: StoreReader, ends: dict[Queue, int]) -> list[Done]:
        """What became of batches whose units were wrong."""
        wrong: dict[Queue, list[BatchUnit]] = {}
        for queue, unit in self._units:
            wrong.setdefault(queue, []).append(unit)
        told = []
        queues = queues_in(reader.files, os.path.join(reader.root, BATCHES))
        lost: list[tuple[Queue, BatchUnit, Queue | None]] = []
        for queue, units in sorted(wrong.items()):
            positions = {unit.position: unit for unit in units}
            bases = {unit.base for unit in units}
            for now in BatchQueueReader(reader, *queue).units():
                bases.discard(now.base)
                was = positions.pop(now.position, now)
                if (was.base, was.messages) != (now.base, now.messages) or (
                    was.tag_code != now.tag_code
                ):
                    told.append(_other_batch(queue, was, now))
            for unit in positions.values():
                # Behind the end it is told as the queue's end.
                is_told = queue in ends and unit.base >= ends[queue]
                if unit.base in bases and not is_told:
                    lost.append((queue, unit, _elsewhere(reader, unit, queues)))
        # The units of a file that was exchanged come by the thousands.
        for (queue, other), row in itertools.groupby(lost, lambda each: each[::2]):
            batches = [unit for _, unit, _ in row]
            if other is None:
                told += [_no_batch(queue, unit) for unit in batches]
            else:
                told.append(_of_another(queue, batches, other))
        return told

    def _between(self, ends: dict[tuple[str, int], int]) -> list[Done]:
        return [
            _told(queue, ends[queue], end, self._positions.get(queue, 0))
            for queue, end in sorted(self.ends.items())
            if queue in ends and ends[queue] < end
        ]


def other_tags(reader: StoreReader, faults: list[Fault]) -> list[Done]:
    """Entries that lead to their records, but whose tag code is not that of the tag
    there: either the entry or the properties, which no checksum covers, were changed.
    """
    told = []
    for fault in faults:
        if fault.kind != "entry" or fault.queue is None or not fault.offsets[1]:
            continue
        topic, queue_id = fault.queue
        offset = fault.offsets[0]
        for position, size, code in reader.entries(topic, queue_id, offset)[:1]:
            if not 0 < size <= MAX_RECORD:
                continue
            try:
                segment = segment_at(reader, position)
                data = segment.file.pread(size, position - segment.start)
                found = parse(data, 0, position, False)
            except (Blank, Broken, StoreError):
                continue
            place = found[2].decode("utf-8", "replace"), found[3], found[4]
            now = tag_code_of(found[7])
            if place == (topic, queue_id, offset) and now != code:
                where = f"{topic}/{queue_id} offset {offset}"
                text = f"its entry had tag code {code}, and gets that of its tag, "
                text += f"{now}: the entry was changed, or the record's properties"
                told.append(Done("changed", where, position, size, text))
    return told

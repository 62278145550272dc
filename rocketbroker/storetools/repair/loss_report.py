# -*- test-case-name: tests.storetools.repair.test_loss_report -*-
"""The messages that a repair discards: those that queues knew before and not after it.

The start of a store cuts off entries at the end of a queue that lead to no record.
They are copied before, and reported with their offsets.
"""

from __future__ import annotations

import os
from typing import final

from rocketbroker.records.entries import SIZE
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.file_names import position_of_name
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.backup import Backup, Done
from rocketbroker.storetools.repair.filler_records import FillerRecords, Slot
from rocketbroker.storetools.verify.files import raw_queues
from rocketbroker.storetools.verify.lookup import (
    queues_in,
)


def name_of(slot: Slot) -> str:
    """The name of the message, or messages, of a record."""
    topic = slot.topic.decode("utf-8", "replace")
    last = slot.queue_offset + slot.messages - 1
    more = f" to {last}" if slot.messages > 1 else ""
    return f"{topic}/{slot.queue_id} offset {slot.queue_offset}{more}"


def _loss(queue: tuple[str, int], first: int, end: int, position: int) -> Done:
    topic, queue_id = queue
    count = end - first
    text = f"{count} entries of the queue led to no record"
    where = f"{topic}/{queue_id} offsets {first} to {end - 1}"
    return Done("discarded", where, position, 0, text)


@final
class LossReport:
    """The ends of all queues before a repair.

    @ivar ends: by topic and queue id, as they stand in files, whether they lead
        anywhere.
    """

    def __init__(self, root: str, reader: StoreReader) -> None:
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
        for key, queue in raw_queues(reader.files, self._root).items():
            last = queue.entry(queue.end - 1)
            ends[key] = queue.end
            positions[key] = last[0] if last is not None else 0
        for key in queues_in(reader.files, os.path.join(self._root, BATCHES)):
            ends[key] = max(BatchQueueReader(reader, *key).span()[1], ends.get(key, 0))
        return ends, positions

    @property
    def size(self) -> int:
        """The number of bytes of entries that L{keep} copies."""
        return SIZE * sum(self.ends[queue] - at for queue, at in self._read.items())

    def keep(self, copies: Backup) -> None:
        """I{Blocking.} Copy the entries that lead nowhere.

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

    def expected(self, filling: FillerRecords) -> list[Done]:
        """The messages that will be discarded."""
        ends = dict(self._read)
        for slot in filling.mended + filling.emptied:
            key = slot.topic.decode("utf-8", "replace"), slot.queue_id
            if key in ends:
                ends[key] = max(ends[key], slot.queue_offset + 1)
        return self._between(ends)

    def found(self, reader: StoreReader) -> list[Done]:
        """The messages that were discarded."""
        return self._between(self._look(reader)[0])

    def _between(self, ends: dict[tuple[str, int], int]) -> list[Done]:
        return [
            _loss(queue, ends[queue], end, self._positions.get(queue, 0))
            for queue, end in sorted(self.ends.items())
            if queue in ends and ends[queue] < end
        ]

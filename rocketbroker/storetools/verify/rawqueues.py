# -*- test-case-name: tests.storetools.repair.test_segment_sizes -*-
"""The entries of queues as they stand in their files, whether they lead anywhere."""

from __future__ import annotations

import os
from typing import Final, final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.store.consumequeue.table import FOLDER
from rocketbroker.store.reader.file_sequence import FileSequence
from rocketbroker.storetools.verify.lookup import queues_in
from rocketbroker.storetools.verify.queues import SHARED_PREFIX

_NONE: Final = bytes(SIZE)


@final
class RawQueue:
    """One queue.

    @ivar start: its first offset.
    @ivar end: the offset behind its last entry.
    @ivar per_file: how many entries each of its files has.
    """

    def __init__(self, files: IFiles, root: str, topic: str, queue_id: int) -> None:
        self.topic = topic
        self.queue_id = queue_id
        folder = os.path.join(root, FOLDER, topic, str(queue_id))
        self._row = FileSequence(files, folder, SIZE)
        self.start = self._row.start // SIZE
        self.per_file = self._row.size // SIZE
        low, high = self.start, self._row.end // SIZE
        while low < high:
            middle = (low + high) // 2
            if self.place(middle)[1] > 0:
                low = middle + 1
            else:
                high = middle
        self.end = low

    def place(self, offset: int) -> tuple[int, int]:
        """The position and size that an entry says."""
        data = self._row.read(offset * SIZE, SIZE)
        position, size, _ = ENTRY.unpack(data if len(data) == SIZE else _NONE)
        return position, size

    def within(self, first: int, end: int) -> tuple[int, int]:
        """The offset of the first message that stands in a part of the log, and that
        behind the last one."""
        return self._first_at(first), self._first_at(end)

    def _first_at(self, position: int) -> int:
        low, high = self.start, self.end
        while low < high:
            middle = (low + high) // 2
            at, size = self.place(middle)
            if at < position or size == FILLED_SIZE:
                low = middle + 1
            else:
                high = middle
        return low


def raw_queues(files: IFiles, root: str) -> list[RawQueue]:
    """All queues that are not of other topics' messages."""
    return [
        RawQueue(files, root, topic, queue_id)
        for topic, queue_id in sorted(queues_in(files, os.path.join(root, FOLDER)))
        if not topic.startswith(SHARED_PREFIX)
    ]

# -*- test-case-name: tests.storetools.verify.test_queues -*-
"""One batch queue opened for reading only: its units, and where they end.

docs/facts/store.md 9.1.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.records.queueunits import BATCH_SIZE, BatchUnit, decode_batch
from rocketbroker.store.consumequeue.batch_queue import FOLDER
from rocketbroker.store.reader.directory import StoreReader

#: So many units are read at once.
UNIT_BATCH_SIZE: Final = 1024

_ZEROS: Final = bytes(BATCH_SIZE)


@final
class BatchQueueReader:
    """One queue, as far as it went when it was opened.

    @ivar exists: whether it has files.
    @ivar lowest: where the log begins: units before are those of deleted batches.
    @ivar start: the byte at which it begins.
    @ivar end: the byte behind its last unit.
    """

    def __init__(self, reader: StoreReader, topic: str, queue_id: int) -> None:
        self.exists = queue_id in reader.queues(topic, FOLDER)
        self.lowest = reader.lowest
        # Before the files are listed: up to there they exist, whatever comes.
        end = reader.batch_end(topic, queue_id)
        self._row = reader.row(FOLDER, topic, queue_id, BATCH_SIZE)
        self.start = self._row.start
        self.end = self._last(reader.is_clean) if end is None else end

    def _last(self, is_clean: bool) -> int:
        """The end of the queue.

        After a crash the end may be torn: the queue ends before the first unit that
        makes no sense. After a clean stop all counts but zeros.
        """
        at = end = self._row.start
        while at < self._row.end:
            data = self.read(at)
            # A file that is not there is passed over.
            at = at if data else self._row.behind_file(at)
            for start in range(0, len(data), BATCH_SIZE):
                at += BATCH_SIZE
                if decode_batch(data, start).is_valid:
                    end = at
                elif not is_clean:
                    return end
                elif data[start : start + BATCH_SIZE] != _ZEROS:
                    end = at
        return end

    def path_of(self, position: int) -> str:
        """The file that holds a byte."""
        return self._row.path_of(position)

    def read(self, position: int) -> bytes:
        """Some units, to the end of one file at the most; empty behind the last file,
        and if a broker that cleans its store has removed it."""
        try:
            return self._row.read(position, UNIT_BATCH_SIZE * BATCH_SIZE)
        except StoreError:
            return b""

    def units(self, position: int = -1) -> Iterator[BatchUnit]:
        """The units of all batches that may still be in the log.

        @param position: leave out those before the first that begins there or later.
        """
        at = self.start
        if position > self.lowest:
            at = BATCH_SIZE * bisect_left(
                range(self.end // BATCH_SIZE),
                True,
                at // BATCH_SIZE,
                key=partial(self._begins, position),
            )
        while at < self.end and self._row.size:
            data = self.read(at)[: self.end - at]
            # A file that is not there is passed over.
            at = at + len(data) if data else self._row.behind_file(at)
            for start in range(0, len(data) - BATCH_SIZE + 1, BATCH_SIZE):
                unit = decode_batch(data, start)
                if unit.is_valid and unit.position >= self.lowest:
                    yield unit

    def _begins(self, position: int, number: int) -> bool:
        """Whether a batch begins at a position of the log, or behind it, or is none."""
        data = self.read(number * BATCH_SIZE)
        return len(data) < BATCH_SIZE or decode_batch(data).position >= position

    def span(self) -> tuple[int, int]:
        """The offsets of the first message, and behind the last one."""
        first = end = -1
        for unit in self.units():
            first = unit.base if first < 0 else first
            end = unit.end
        return max(first, 0), max(end, 0)

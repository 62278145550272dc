# -*- test-case-name: tests.sources.test_batch_queues -*-
"""One batch queue of a store's files: which batch holds which offsets.

A unit of such a queue stands for a record that holds several messages
(C{docs/facts/store.md} 9). Its units are read once, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from rocketbroker.errors import StoreError
from rocketbroker.sources.source import Piece
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader


class Units(NamedTuple):
    """Batches, one behind the other.

    @ivar positions: where their records begin in the log.
    @ivar sizes: how many bytes these have.
    @ivar untils: the offset behind the last message of each.
    """

    positions: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]
    untils: npt.NDArray[np.int64]


@final
class BatchQueue:
    """One queue, as far as it went when it was opened."""

    def __init__(self, reader: StoreReader, topic: str, queue_id: int) -> None:
        self._reader = reader
        found = [
            (unit.position, unit.size, unit.store_ms, unit.base, unit.end)
            for unit in BatchQueueReader(reader, topic, queue_id).units()
        ]
        while found and not reader.is_clean and not reader.is_live:
            # After a crash the last records may never have been written.
            try:
                reader.record(*found[-1][:2])
                break
            except StoreError:
                found.pop()
        rows = np.array(found, np.int64).reshape(-1, 5)
        self._positions, self._sizes, self._times, self._bases, self._ends = rows.T

    def bounds(self) -> tuple[int, int]:
        """The first offset that can be read, and one more than the last."""
        if not len(self._bases):
            return 0, 0
        return int(self._bases[0]), int(self._ends[-1])

    def offset_at(self, ms: int) -> int:
        """The first offset of a batch stored at a time or later; else the end."""
        at = int(np.searchsorted(self._times, ms))
        return int(self._bases[at]) if at < len(self._bases) else self.bounds()[1]

    def base_behind(self, offset: int) -> int:
        """The offset itself if a batch holds it; else the first one behind it that
        one holds, or the end."""
        at = int(np.searchsorted(self._ends, offset, "right"))
        if at == len(self._bases):
            return self.bounds()[1]
        return max(offset, int(self._bases[at]))

    def units(self, start: int, until: int, most: int) -> Units:
        """The batches that hold the first offsets of a range.

        @param start: the first offset; a batch holds it.
        @param most: how many batches at most; they end where offsets are missing, too.
        """
        first = int(np.searchsorted(self._ends, start, "right"))
        last = int(np.searchsorted(self._bases, until, "left"))
        last = min(last, first + most)
        apart = self._bases[first + 1 : last] != self._ends[first : last - 1]
        if apart.any():
            last = first + 1 + int(np.flatnonzero(apart)[0])
        some = slice(first, last)
        sizes = self._sizes[some].astype(np.int32)
        return Units(self._positions[some], sizes, np.minimum(self._ends[some], until))

    def one_by_one(self, start: int, until: int) -> Iterator[Piece]:
        """The batches of a range, each looked at by itself."""
        while start < until:
            found = self.base_behind(start)
            if start < found:
                behind = min(found, until)
                yield Piece(b"", start, behind, "no batch of the queue holds them")
                start = behind
                continue
            positions, sizes, untils = self.units(start, until, 1)
            end = int(untils[0])
            try:
                record = self._reader.record(int(positions[0]), int(sizes[0]))
                yield Piece(record, start, end, "")
            except StoreError as error:
                yield Piece(b"", start, end, str(error))
            start = end

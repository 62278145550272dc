# -*- test-case-name: tests.storetools.verify.test_queues -*-
"""A check of one batch queue: its units against the batches of the log.

Both come in the order of the log. A unit says all of a batch that can be read in its
record, so it is either the same, byte for byte, or wrong. Offsets need not
follow each other: a batch that was lost, and reported then, leaves a gap.

Nothing fills the numbers before the first unit, as it does in other queues. After a
crash RocketMQ's broker enters again the messages of a deleted topic at the end of the
log. If the topic is made again, its queue begins in the middle of its messages.

docs/facts/store.md 9.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from rocketbroker.records.queueunits import BATCH_SIZE, BatchUnit, decode_batch
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader


@final
class BatchMatch:
    """One batch queue.

    @ivar exists: whether the queue has files.
    @ivar unlisted: how many batches have no unit.
    @ivar missing: positions and offsets of the first of them.
    @ivar wrong: units that no batch fits, or not so: where in the queue they stand, the
        position in the log that they say, and what is wrong.
    """

    def __init__(
        self, reader: StoreReader, topic: str, queue_id: int, max_wrong: int
    ) -> None:
        """
        @param max_wrong: no more of those that are wrong or missing are kept.
        """
        self._files = files = BatchQueueReader(reader, topic, queue_id)
        self.exists = files.exists
        self._lowest = files.lowest
        self._max_wrong = max_wrong
        self._at = files.start
        self._end = files.end
        self._blob = b""
        self._blob_at = 0
        self._base = 0
        self.unlisted = 0
        self.missing: list[tuple[int, int]] = []
        self.wrong: list[tuple[int, int, str]] = []

    def path_of(self, position: int) -> str:
        """The file that holds a byte of the queue."""
        return self._files.path_of(position)

    def _next(self, ahead: int = 0) -> bytes:
        """The unit that comes next, or so many behind it; empty behind the last."""
        at = self._at + ahead * BATCH_SIZE
        if at >= self._end:
            return b""
        inside = at - self._blob_at
        if not 0 <= inside < len(self._blob):
            self._blob, self._blob_at, inside = self._files.read(at), at, 0
        return self._blob[inside : inside + BATCH_SIZE]

    def _pass(self, why: str) -> None:
        """A unit is wrong."""
        position = decode_batch(self._next()).position
        if position >= self._lowest and len(self.wrong) < self._max_wrong:
            self.wrong.append((self._at, position, why))
        self._at += BATCH_SIZE

    def meet(self, unit: BatchUnit) -> None:
        """A batch of the log comes by.

        @param unit: what its unit has to be.
        """
        if unit.base < self._base:
            # A topic of that name began again: the earlier batches are not read.
            self._forget()
        self._base = unit.end
        self._meet(unit)

    def _forget(self) -> None:
        """Earlier batches are not missing."""
        self.unlisted = 0
        self.missing.clear()

    def _meet(self, unit: BatchUnit) -> None:
        wanted = unit.encode()
        while found := self._next():
            if found == wanted:
                if not self._at:
                    self._forget()
                self._at += BATCH_SIZE
                return
            there = decode_batch(found)
            if there.position == unit.position:
                names = there._fields
                pairs = zip(names, there, unit, strict=True)
                differences = [
                    f"{name} {is_}, not {to}" for name, is_, to in pairs if is_ != to
                ]
                self._pass(
                    f"it says {', '.join(differences) or 'something that is reserved'}"
                )
                return
            if there.position > unit.position:
                behind = self._next(1)
                if not behind or decode_batch(behind).position > unit.position:
                    break
            self._pass("no batch of the queue begins there")
        self.miss(unit.position, unit.base, self._max_wrong)

    def miss(self, position: int, offset: int, max_kept: int) -> None:
        """A batch has no unit.

        @param max_kept: so many are kept.
        """
        self.unlisted += 1
        if len(self.missing) < max_kept:
            self.missing.append((position, offset))

    def rest(self) -> Iterator[tuple[int, int, str]]:
        """The wrong units, when the walk is over; see L{wrong}."""
        yield from self.wrong
        while found := self._next():
            position = decode_batch(found).position
            if position >= self._lowest:
                yield self._at, position, "no batch of the queue begins there"
            self._at += BATCH_SIZE

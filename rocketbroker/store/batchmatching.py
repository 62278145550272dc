# -*- test-case-name: tests.store.test_queueverification -*-
"""The units of one batch queue against the batches of the log.

Both come in the order of the log. A unit says all of a batch that can be read in its
record, so it is either the same, byte for byte, or wrong. That offsets follow each
other is not asked: a batch that was lost, and said so when it was, leaves a gap.

The store sheet, section 9.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.records.queueunits import BATCH_SIZE, BatchUnit, decode_batch
from rocketbroker.store.batchqueue import FOLDER
from rocketbroker.store.reader import StoreReader

#: So many units are read at once.
UNITS_AT_ONCE: Final = 1024

_ZEROS: Final = bytes(BATCH_SIZE)


@final
class BatchMatching:
    """One batch queue.

    @ivar exists: whether the queue has files.
    @ivar unlisted: how many batches have no unit.
    @ivar missing: positions and offsets of the first of them.
    @ivar wrong: units that no batch fits, or not so: where in the queue they stand, the
        position in the log that they say, and what is wrong.
    """

    def __init__(
        self,
        reader: StoreReader,
        topic: str,
        queue_id: int,
        lowest: int,
        most_wrong: int,
    ) -> None:
        """
        @param lowest: where the log begins: units before are those of deleted batches.
        @param most_wrong: no more of the last two are kept.
        """
        self._lowest = lowest
        self.exists = queue_id in reader.queues(topic, FOLDER)
        self._row = reader.row(FOLDER, topic, queue_id, BATCH_SIZE)
        self._most_wrong = most_wrong
        self._at = self._row.start
        self._blob = b""
        self._blob_at = 0
        end = reader.batch_end(topic, queue_id)
        self._end = self._last(reader.is_clean) if end is None else end
        self._base = 0
        self.unlisted = 0
        self.missing: list[tuple[int, int]] = []
        self.wrong: list[tuple[int, int, str]] = []

    def path_of(self, position: int) -> str:
        """The file that holds a byte of the queue."""
        return self._row.path_of(position)

    def _last(self, is_clean: bool) -> int:
        """Where the queue ends.

        What a crash has left may be torn at its end: there it ends with the first unit
        that makes no sense. After a clean stop all counts but zeros.
        """
        at = end = self._row.start
        while at < self._row.end:
            data = self._read(at)
            if not data:
                break
            for start in range(0, len(data), BATCH_SIZE):
                at += BATCH_SIZE
                if decode_batch(data, start).is_valid:
                    end = at
                elif not is_clean:
                    return end
                elif data[start : start + BATCH_SIZE] != _ZEROS:
                    end = at
        return end

    def _read(self, position: int) -> bytes:
        try:
            return self._row.read(position, UNITS_AT_ONCE * BATCH_SIZE)
        except StoreError:
            # A broker that cleans its store has removed it.
            return b""

    def _next(self, ahead: int = 0) -> bytes:
        """The unit that comes next, or so many behind it; empty behind the last."""
        at = self._at + ahead * BATCH_SIZE
        if at >= self._end:
            return b""
        inside = at - self._blob_at
        if not 0 <= inside < len(self._blob):
            self._blob, self._blob_at, inside = self._read(at), at, 0
        return self._blob[inside : inside + BATCH_SIZE]

    def _pass(self, why: str) -> None:
        """A unit is wrong."""
        position = decode_batch(self._next()).position
        if position >= self._lowest and len(self.wrong) < self._most_wrong:
            self.wrong.append((self._at, position, why))
        self._at += BATCH_SIZE

    def meet(self, unit: BatchUnit) -> None:
        """A batch of the log comes by.

        @param unit: what its unit has to be.
        """
        if unit.base < self._base:
            # A topic of that name began again; nobody reads what was before.
            self.unlisted = 0
            self.missing.clear()
        self._base = unit.end
        wanted = unit.encode()
        while found := self._next():
            if found == wanted:
                self._at += BATCH_SIZE
                return
            there = decode_batch(found)
            if there.position == unit.position:
                names = there._fields
                pairs = zip(names, there, unit, strict=True)
                said = [
                    f"{name} {is_}, not {to}" for name, is_, to in pairs if is_ != to
                ]
                self._pass(f"it says {', '.join(said) or 'something that is reserved'}")
                return
            if there.position > unit.position:
                behind = self._next(1)
                if not behind or decode_batch(behind).position > unit.position:
                    break
            self._pass("no batch of the queue begins there")
        self.unlisted += 1
        if len(self.missing) < self._most_wrong:
            self.missing.append((unit.position, unit.base))

    def rest(self) -> Iterator[tuple[int, int, str]]:
        """The walk is over: what is wrong with units; see L{wrong}."""
        yield from self.wrong
        while found := self._next():
            position = decode_batch(found).position
            if position >= self._lowest:
                yield self._at, position, "no batch of the queue begins there"
            self._at += BATCH_SIZE

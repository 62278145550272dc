# -*- test-case-name: tests.sources.test_offline -*-
"""Messages out of a store's files, without a broker or beside one.

The files do not say what their broker is called; option C{brokerName} does. Of a topic
with batch queues, pieces hold whole batches (L{rocketbroker.sources.batch_queues}).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from rocketbroker.errors import ConfigurationError, StoreError, TopicNotExist
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.names import is_system_topic
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import Filter, Piece, Places
from rocketbroker.store.reader.directory import StoreReader

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rocketbroker.sources.batch_queues import BatchQueue

#: The directory of batch queues in a store.
BATCHES: Final = "batchconsumequeue"

#: An entry of a queue, as in C{docs/facts/store.md} 7.1.
ENTRY: Final = [("position", ">i8"), ("size", ">i4"), ("tag_code", ">i8")]

#: What one step takes at most, record by record, in bytes.
PIECE_BYTES: Final = 4 << 20

#: What one step takes at most otherwise: entries, and bytes of the log; the bytes
#: between records of one queue, which are those of others, are read with them up to so
#: many, which costs less than a call for each.
ENTRIES: Final = 16_384
SPAN: Final = 16 << 20
GAP: Final = 16 << 10


@final
class StoreOrigin:
    """Provides L{rocketbroker.sources.source.Origin} over a store's directory."""

    def __init__(
        self, options: ReadOptions, files: IFiles | None = None, step: int = SPAN
    ) -> None:
        """
        @param files: where the store is, if not on the disk.
        @param step: how many bytes of the log are read in one step, at most.
        @raise StoreError: there is none.
        """
        self._options = options
        self._step = step
        self._files = Disk() if files is None else files
        self._reader = StoreReader(self._files, options.store)
        self._batches: dict[Queue, BatchQueue | None] = {}

    def topics(self) -> list[str]:
        """See L{Origin.topics}; one is named after the broker."""
        reader = self._reader
        return sorted(
            topic
            for topic in {*reader.topics(), *reader.topics(BATCHES)}
            if topic != self._options.broker_name and not is_system_topic(topic)
        )

    def queues(self, topic: str) -> list[Queue]:
        """See L{Origin.queues}."""
        broker = self._options.broker_name
        reader = self._reader
        ids = {*reader.queues(topic), *reader.queues(topic, BATCHES)}
        found = [Queue(topic, broker, each) for each in sorted(ids)]
        if not found:
            raise TopicNotExist(f"{self._options.store} holds no queue of {topic}")
        return found

    def hidden_queues(self, topic: str) -> list[Queue]:
        """See L{Origin.hidden_queues}: files can all be read."""
        return []

    def clusters(self, topic: str) -> list[str]:
        """See L{Origin.clusters}: files do not say."""
        return []

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """See L{Origin.bounds}."""
        batches = self._batch_queue(queue)
        if batches is not None:
            return batches.bounds()
        topic, queue_id = queue.topic, queue.queue_id
        return (
            self._reader.min_offset(topic, queue_id),
            self._reader.max_offset(topic, queue_id),
        )

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{Origin.offset_at}."""
        batches = self._batch_queue(queue)
        if batches is not None:
            return batches.offset_at(ms)
        return self._reader.offset_by_time(queue.topic, queue.queue_id, ms)

    def group_offset(self, queue: Queue, group: str) -> int | None:
        """See L{Origin.group_offset}."""
        raise ConfigurationError(f"a store's files do not say where {group} goes on")

    def pieces(self, wanted: Range, chosen: Filter) -> Iterator[Piece]:
        """See L{Origin.pieces}.

        A record that cannot be read is lost, and so said; what follows it is read.
        """
        queue = wanted.queue
        first, end = self.bounds(queue)
        if end < wanted.until:
            # Messages came since the files were opened.
            self._reader.close()
            self._reader = StoreReader(self._files, self._options.store)
            self._batches.clear()
            first, end = self.bounds(queue)
        position = wanted.start
        if position < first:
            until = min(first, wanted.until)
            yield Piece(b"", position, until, f"{queue} begins at {first}")
            position = until
        readable = min(end, wanted.until)
        while position < readable:
            piece = self._gathered(queue, position, readable)
            if piece is not None:
                yield piece
                position = piece.until
                continue
            for piece in self._one_by_one(queue, position, readable):
                yield piece
                position = piece.until
                if not piece.lost:
                    break
        if position < wanted.until:
            yield Piece(b"", position, wanted.until, f"{queue} ends at {end}")

    def _one_by_one(self, queue: Queue, position: int, until: int) -> Iterator[Piece]:
        """Each record looked at by itself."""
        batches = self._batch_queue(queue)
        if batches is not None:
            yield from batches.one_by_one(position, until)
            return
        while position < until:
            try:
                found = self._reader.read(
                    queue.topic, queue.queue_id, position, until, PIECE_BYTES
                )
            except StoreError as error:
                yield Piece(b"", position, position + 1, str(error))
                position += 1
                continue
            yield Piece(b"".join(found.records), position, found.next_offset, "")
            position = found.next_offset

    def _batch_queue(self, queue: Queue) -> BatchQueue | None:
        """A queue if it is a batch queue."""
        topic, queue_id = queue.topic, queue.queue_id
        if queue not in self._batches:
            from rocketbroker.sources.batch_queues import BatchQueue

            reader = self._reader
            has_batches = queue_id in reader.queues(topic, BATCHES)
            ordinary = not has_batches or queue_id in reader.queues(topic)
            self._batches[queue] = (
                None if ordinary else BatchQueue(reader, topic, queue_id)
            )
        return self._batches[queue]

    def _gathered(self, queue: Queue, start: int, until: int) -> Piece | None:
        """Many records at once; None if their entries or the log are not as usual."""
        import numpy as np

        batches = self._batch_queue(queue)
        if batches is None:
            found = self._entries(queue, start, until)
            if found is None:
                return None
            positions, sizes = found
            untils = np.arange(start + 1, start + 1 + len(positions))
        elif batches.base_behind(start) != start:
            return None
        else:
            positions, sizes, untils = batches.units(start, until, ENTRIES)
        ends = positions + sizes
        if (sizes <= 0).any() or (positions[1:] < ends[:-1]).any():
            return None
        starts, places = spans(positions, ends, self._reader.log.size)
        used = len(starts)
        if starts[-1] + sizes[-1] > self._step:
            used = int(np.searchsorted(starts + sizes, self._step, "right"))
            used = max(1, used)
            starts, sizes, positions = starts[:used], sizes[:used], positions[:used]
            ends, places = ends[:used], places[places < used]
        froms, tos = positions[places].tolist(), ends[[*places[1:] - 1, -1]].tolist()
        try:
            parts = [
                self._reader.log_bytes(first, last - first)
                for first, last in zip(froms, tos, strict=True)
            ]
        except StoreError:
            return None
        until = int(untils[used - 1])
        return Piece(
            parts[0] if len(parts) == 1 else b"".join(parts),
            start,
            until,
            "",
            Places(
                starts,
                sizes,
                positions,
                lambda: self._one_by_one(queue, start, until),
            ),
        )

    def _entries(
        self, queue: Queue, start: int, until: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]] | None:
        """Where the entries of an ordinary queue say that records are, and how large
        these are; None if they are not as usual."""
        import numpy as np

        topic, queue_id = queue.topic, queue.queue_id
        count, before = min(until - start, ENTRIES), b""
        try:
            if start > self._reader.min_offset(topic, queue_id):
                before = self._reader.entry_bytes(topic, queue_id, start - 1, 1)
            data = self._reader.entry_bytes(topic, queue_id, start, count)
        except StoreError:
            return None
        entries = np.frombuffer(data, ENTRY)
        positions = entries["position"].astype(np.int64)
        if (
            not len(entries)
            or (np.frombuffer(before, ENTRY)["position"] == positions[0]).any()
        ):
            return None
        return positions, entries["size"].astype(np.int32)

    def close(self) -> None:
        """See L{Origin.close}."""
        self._reader.close()


def spans(
    positions: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], file_size: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """How to read records in few calls.

    A span ends where the next record is more than L{GAP} bytes away, or in another
    file of the log.

    @param positions: where records begin in the log, ascending.
    @param ends: where they end.
    @return: where each record begins in the bytes of all spans, one after the other;
        and the numbers of the records with which spans begin.
    """
    import numpy as np

    gaps = positions[1:] - ends[:-1]
    files = positions // file_size
    apart = (gaps > GAP) | (files[1:] != files[:-1])
    between = np.where(apart, 0, gaps)
    steps = ends[:-1] - positions[:-1] + between
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)])
    return starts, np.concatenate([np.zeros(1, np.int64), np.flatnonzero(apart) + 1])

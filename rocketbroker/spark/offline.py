# -*- test-case-name: tests.spark.test_offline -*-
"""Messages out of a store's files, without a broker or beside one.

The files do not say what their broker is called; option C{brokerName} does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from rocketbroker.errors import StoreError, TopicNotExist
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFiles
from rocketbroker.spark.options import ReadOptions
from rocketbroker.spark.origins import Piece
from rocketbroker.spark.ranges import Queue, Range
from rocketbroker.store.reader.directory import StoreReader

#: What one step takes at most.
PIECE_BYTES = 4 << 20


@final
class StoreOrigin:
    """Provides L{rocketbroker.spark.origins.Origin} over a store's directory."""

    def __init__(self, options: ReadOptions, files: IFiles | None = None) -> None:
        """
        @param files: where the store is, if not on the disk.
        @raise StoreError: there is none.
        """
        self._options = options
        self._files = Disk() if files is None else files
        self._reader = StoreReader(self._files, options.store)

    def queues(self, topic: str) -> list[Queue]:
        """See L{Origin.queues}."""
        broker = self._options.broker_name
        found = [Queue(topic, broker, each) for each in self._reader.queues(topic)]
        if not found:
            raise TopicNotExist(f"{self._options.store} holds no queue of {topic}")
        return found

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """See L{Origin.bounds}."""
        topic, queue_id = queue.topic, queue.queue_id
        return (
            self._reader.min_offset(topic, queue_id),
            self._reader.max_offset(topic, queue_id),
        )

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{Origin.offset_at}."""
        return self._reader.offset_by_time(queue.topic, queue.queue_id, ms)

    def pieces(self, wanted: Range, tags: str) -> Iterator[Piece]:
        """See L{Origin.pieces}.

        A record that cannot be read is lost, and so said; what follows it is read.
        """
        queue = wanted.queue
        first, end = self.bounds(queue)
        if end < wanted.until:
            # Messages came since the files were opened.
            self._reader.close()
            self._reader = StoreReader(self._files, self._options.store)
            first, end = self.bounds(queue)
        position = wanted.start
        if position < first:
            until = min(first, wanted.until)
            yield Piece(b"", position, until, f"{queue} begins at {first}")
            position = until
        while position < min(end, wanted.until):
            try:
                found = self._reader.read(
                    queue.topic,
                    queue.queue_id,
                    position,
                    min(end, wanted.until),
                    PIECE_BYTES,
                )
            except StoreError as error:
                yield Piece(b"", position, position + 1, str(error))
                position += 1
                continue
            yield Piece(b"".join(found.records), position, found.next_offset, "")
            position = found.next_offset
        if position < wanted.until:
            yield Piece(b"", position, wanted.until, f"{queue} ends at {end}")

    def close(self) -> None:
        """See L{Origin.close}."""
        self._reader.close()

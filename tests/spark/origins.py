"""An origin in memory."""

from __future__ import annotations

from collections.abc import Iterator

from rocketbroker.spark.origins import Piece
from rocketbroker.spark.ranges import Queue, Range
from tests.spark.messages import START_MS, stored


class MemoryOrigin:
    """Provides L{Origin}: queues of numbered messages.

    @ivar first: the first offset that exists, of each queue.
    @ivar ends: the end of each queue.
    @ivar step: how many messages a piece has.
    @ivar records: what stands at an offset instead of the usual message.
    @ivar every: a tag expression leaves out all but each such message.
    @ivar beyond: how many more messages than asked for the last piece brings.
    """

    def __init__(self, ends: dict[Queue, int], step: int = 3) -> None:
        self.ends = ends
        self.first = dict.fromkeys(ends, 0)
        self.step = step
        self.records: dict[int, bytes] = {}
        self.every = 1
        self.beyond = 0
        self.closed = False

    def queues(self, topic: str) -> list[Queue]:
        """See L{Origin}."""
        return sorted(queue for queue in self.ends if queue.topic == topic)

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """See L{Origin}."""
        return self.first[queue], self.ends[queue]

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{Origin}; message n was stored n + 1 ms after the start."""
        return min(max(ms - START_MS - 1, self.first[queue]), self.ends[queue])

    def pieces(self, wanted: Range, tags: str) -> Iterator[Piece]:
        """See L{Origin}."""
        start = wanted.start
        if start < self.first[wanted.queue]:
            until = min(self.first[wanted.queue], wanted.until)
            yield Piece(b"", start, until, "deleted")
            start = until
        while start < wanted.until:
            until = min(start + self.step, wanted.until)
            beyond = self.beyond if until == wanted.until else 0
            found = [
                self.message(wanted.queue, number)
                for number in range(start, until + beyond)
                if tags == "*" or number % self.every == 0
            ]
            yield Piece(b"".join(found), start, until, "")
            start = until

    def message(self, queue: Queue, number: int) -> bytes:
        """The record at an offset."""
        if number in self.records:
            return self.records[number]
        return stored(
            number,
            b"%d" % number,
            {"TAGS": "odd" if number % 2 else "even"},
            topic=queue.topic,
            queue_id=queue.queue_id,
        )

    def close(self) -> None:
        """See L{Origin}."""
        self.closed = True

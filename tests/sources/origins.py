"""An origin in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocketbroker.errors import SubscriptionGroupNotExist, TopicNotExist
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import EVERYTHING, Filter, Piece
from tests.sources.messages import START_MS, stored


class MemoryOrigin:
    """Provides L{StreamOrigin}: queues of numbered messages.

    @ivar first: the first offset that exists, of each queue.
    @ivar ends: the end of each queue.
    @ivar step: how many messages a piece has.
    @ivar groups: where groups go on.
    @ivar records: what stands at an offset instead of the usual message.
    @ivar every: a filter leaves out all but each such message.
    @ivar hidden: queues that nobody tells of any more.
    @ivar forbidden: queues from which nobody may read.
    @ivar cluster: the name of the cluster; empty if it is not known.
    @ivar beyond: how many more messages than asked for the last piece brings.
    """

    def __init__(self, ends: dict[Queue, int], step: int = 3) -> None:
        self.ends = ends
        self.first = dict.fromkeys(ends, 0)
        self.step = step
        self.groups: dict[tuple[str, Queue], int] = {}
        self.records: dict[int, bytes] = {}
        self.every = 1
        self.beyond = 0
        self.closed = False
        self.asked = 0
        self.hidden: set[Queue] = set()
        self.forbidden: set[Queue] = set()
        self.cluster = ""

    def topics(self) -> list[str]:
        """See L{Origin}."""
        return sorted({queue.topic for queue in self.ends})

    def queues(self, topic: str) -> list[Queue]:
        """See L{Origin}."""
        found = [queue for queue in self.ends if queue.topic == topic]
        return sorted(set(found) - self.hidden - self.forbidden)

    def hidden_queues(self, topic: str) -> list[Queue]:
        """See L{Origin}."""
        return sorted(queue for queue in self.forbidden if queue.topic == topic)

    def clusters(self, topic: str) -> list[str]:
        """See L{Origin}."""
        return [self.cluster] if self.cluster else []

    def put(self, queue: Queue, end: int) -> None:
        """Make a queue."""
        self.ends[queue] = end
        self.first[queue] = 0

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """See L{Origin}."""
        if queue not in self.ends:
            raise TopicNotExist(f"there is no {queue}")
        return self.first[queue], self.ends[queue]

    def all_bounds(self, queues: Iterable[Queue]) -> dict[Queue, tuple[int, int]]:
        """See L{StreamOrigin}: a request for each broker."""
        wanted = [*queues]
        self.asked += len({queue[:2] for queue in wanted})
        return {queue: self.bounds(queue) for queue in wanted}

    def commit_offset(self, queue: Queue, group: str, offset: int) -> None:
        """See L{StreamOrigin}."""
        if group == "refused":
            raise SubscriptionGroupNotExist("not exist")
        self.groups[group, queue] = offset

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{Origin}; message n was stored n + 1 ms after the start."""
        return min(max(ms - START_MS - 1, self.first[queue]), self.ends[queue])

    def group_offset(self, queue: Queue, group: str) -> int | None:
        """See L{Origin}."""
        return self.groups.get((group, queue))

    def pieces(self, wanted: Range, chosen: Filter) -> Iterator[Piece]:
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
                if chosen == EVERYTHING or number % self.every == 0
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

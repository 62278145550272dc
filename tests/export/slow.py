"""An origin whose messages come slowly."""

from __future__ import annotations

from rocketbroker.export.plans import HOUR_MS
from rocketbroker.sources.ranges import Queue, Range
from tests.sources.messages import START_MS, stored
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)
WHOLE = Range(QUEUE, 0, 20)


class SlowOrigin(MemoryOrigin):
    """One message each ten minutes; searches by time may answer anything.

    @ivar wrong: added to what a search finds.
    """

    wrong = 0

    def ms(self, number: int) -> int:
        """When a message was stored."""
        return START_MS + number * HOUR_MS // 6

    def message(self, queue: Queue, number: int) -> bytes:
        """See L{MemoryOrigin}."""
        if number in self.records:
            return self.records[number]
        return stored(number, store_ms=self.ms(number), queue_id=queue.queue_id)

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{MemoryOrigin}."""
        found = [n for n in range(self.ends[queue]) if self.ms(n) >= ms]
        return (found[0] if found else self.ends[queue]) + self.wrong

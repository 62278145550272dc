# -*- test-case-name: tests.storetools.verify.test_logbegin -*-
"""Whether the first files of a log were lost, or removed by age.

That the log began earlier when a broker of ours stopped it is no sign: one of
RocketMQ's may have cleaned it since, which changes nothing of what our stop has written
down if nobody sent anything. But who removes files of the log by age then removes, in
the same round, all files of queues whose last entry leads before the log, except the
last of each queue. So a file of a queue that has gone with neither tells of a loss.

Where no queue has as much as one whole file before the log, nothing tells: the two look
alike.

The store sheet, sections 2.5 and 17.
"""

from __future__ import annotations

from collections.abc import Sequence

from rocketbroker.records.entries import FILLED_SIZE
from rocketbroker.storetools.verify.rawqueues import RawQueue


def is_begin_lost(queues: Sequence[RawQueue], first: int, lowest: int) -> bool:
    """Whether a queue has a file that would have been removed with the log's.

    @param first: where the log has begun.
    @param lowest: where it begins now.
    """

    def leads_before(queue: RawQueue, offset: int) -> bool:
        position, size = queue.place(offset)
        return 0 < size < FILLED_SIZE and first <= position < lowest

    for queue in queues:
        last = queue.start + queue.per_file - 1
        # Another file has to follow; and one entry alone may be rotten.
        if last < queue.end - 1 and all(
            leads_before(queue, offset) for offset in (last - 1, last)
        ):
            return True
    return False

# -*- test-case-name: tests.spark.test_limits -*-
"""Limits of a micro-batch: its share of the messages that wait in each queue; pure.

A limit is shared by what waits, so that long queues do not fall behind short ones; but
each queue in which something waits gives at least one message, or a short one beside
very long ones would never be read. So a limit below the number of such queues is
exceeded by the rest of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from rocketbroker.sources.ranges import Queue


@attrs.frozen
class BatchLimits:
    """The limits of a micro-batch; 0 for none.

    @ivar max_offsets: messages at most.
    @ivar max_bytes: bytes at most, as stored.
    @ivar min_offsets: messages at least, or else L{max_delay_ms}.
    """

    max_offsets: int = 0
    max_bytes: int = 0
    min_offsets: int = 0
    max_delay_ms: int = 0


def shares(waiting: Mapping[Queue, int], limit: int) -> dict[Queue, int]:
    """Share a number of messages among queues.

    @param waiting: how many wait in each queue, 1 or more.
    @param limit: how many there are to share, 1 or more.
    @return: how many each gives, 1 or more, at most what waits; together C{limit} if
        so many wait and there are no more queues than that.
    """
    total = sum(waiting.values())
    if total <= limit:
        return dict(waiting)
    rest = max(0, limit - len(waiting))
    divisor = total - len(waiting)
    if not divisor:
        return dict(waiting)
    found = {queue: 1 + rest * (n - 1) // divisor for queue, n in waiting.items()}
    left = rest + len(waiting) - sum(found.values())
    by_remainder = sorted(
        waiting, key=lambda queue: (-(rest * (waiting[queue] - 1) % divisor), queue)
    )
    for queue in by_remainder[:left]:
        found[queue] += 1
    return found


def shares_of_bytes(
    waiting: Mapping[Queue, int], sizes: Mapping[Queue, int], limit: int
) -> dict[Queue, int]:
    """Share a number of bytes among queues.

    @param waiting: as of L{shares}.
    @param sizes: how large a message of each queue is on average, 1 or more.
    @param limit: how many bytes there are to share.
    @return: how many messages each queue gives, as of L{shares}.
    """
    total = sum(number * sizes[queue] for queue, number in waiting.items())
    if total <= limit:
        return dict(waiting)
    return {queue: max(1, number * limit // total) for queue, number in waiting.items()}

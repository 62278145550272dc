# -*- test-case-name: tests.store.commitlog.test_bufferpool -*-
"""The buffers of the transient store pool, counted as the reference counts them.

There is no buffer (see L{rocketbroker.store.commitlog.flush}); what is kept is what
clients and operators see of them. Each segment that is not committed to its end takes
one, and so does the one that was made ahead. When none is left, sends are refused
until a commit gives one back; and with fastFailIfNoBufferInStorePool no segment is
made.

The reference refuses too when all buffers belong to the last segment and the one made
ahead, which no commit gives back: with a pool of one or two, for ever. Here there has
to be a full segment that waits for the commit.

The store sheet, section 2.7.
"""

from __future__ import annotations

from typing import final

from rocketbroker.config.store import StoreOptions
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.shared_positions import COMMITTED, SharedPositions


def is_enabled(options: StoreOptions) -> bool:
    """Whether there is a pool. A slave has none: its data come by replication."""
    return options.transient_store_pool_enable and options.broker_role != "SLAVE"


def holds_back(options: StoreOptions) -> bool:
    """Whether what is published waits for a commit, before readers see it."""
    return is_enabled(options) and options.flush_disk_type != "SYNC_FLUSH"


@final
class BufferPool:
    """How many buffers are taken.

    @ivar size: how many there are.
    @ivar fails_fast: whether an append fails rather than make a segment without one.
    """

    def __init__(
        self,
        segments: Segments,
        positions: SharedPositions,
        size: int,
        fails_fast: bool,
    ) -> None:
        self._segments = segments
        self._positions = positions
        self.size = size
        self.fails_fast = fails_fast

    def remaining(self) -> int:
        """How many buffers are left."""
        segments = self._segments
        beyond = segments.all[-1].end - self._positions.view[COMMITTED]
        taken = -(-beyond // segments.size) + segments.is_prepared
        return max(0, self.size - taken)

    def is_exhausted(self, position: int) -> bool:
        """Whether none is left, and a commit would give one back.

        @param position: where the log ends.
        """
        size = self._segments.size
        waits = position // size > self._positions.view[COMMITTED] // size
        return bool(waits) and self.remaining() == 0

# -*- test-case-name: tests.store.dispatch.test_queue_flush -*-
"""Queues are put on the disk, and the checkpoint tells how far.

A thorough pass flushes all of them. What was dispatched when it began is then on the
disk, and of this the checkpoint speaks until the next: by the store time of the last
record, which is all that RocketMQ knows, and by its position, which holds, too, when
the clock is set back. A store time that was noted before that lies ahead from then on,
and would vouch for all that is stored till the clock is there again. So a pass that
sees it is a thorough one, and notes the time of day: RocketMQ's broker, if it is the
next to start, is misled for no longer than such a pass takes to come.

C{docs/facts/store.md} 6 and 14.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.flush import Flushing
from rocketbroker.store.commitlog.writer import CommitLog
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.dispatch.dispatcher import Dispatcher
from rocketbroker.store.shared_positions import DISPATCHED, FLUSHED, SharedPositions


@final
class QueueFlushing:
    """Flushes queues and full files of the index, and writes the checkpoint."""

    def __init__(
        self,
        positions: SharedPositions,
        log: CommitLog,
        flushing: Flushing,
        table: QueueTable,
        dispatcher: Dispatcher,
        flush_index: Callable[[], tuple[int, int]],
        checkpoint: Checkpoint,
    ) -> None:
        """
        @param flush_index: puts full files of the index on the disk; gives the store
            time and the position up to which all of it is there.
        """
        self._positions = positions
        self._log = log
        self._flushing = flushing
        self._table = table
        self._dispatcher = dispatcher
        self._flush_index = flush_index
        self._checkpoint = checkpoint

    def flush(self, least_pages: int) -> None:
        """See L{rocketbroker.store.interfaces.IStore.flush_queues}."""
        checkpoint = self._checkpoint
        if self._log.published_ms < checkpoint.logics_ms:
            least_pages = 0
        # Before the queues: what comes meanwhile waits for the next pass.
        dispatched_ms = self._dispatcher.dispatched_ms
        position: int = self._positions.view[DISPATCHED]
        for queue in self._table.all():
            queue.flush(least_pages)
        if least_pages:
            dispatched_ms, position = checkpoint.logics_ms, checkpoint.position
        else:
            position = min(position, self._positions.view[FLUSHED])
        index_ms, index_position = self._flush_index()
        checkpoint.update(
            (self._flushing.flushed_ms, dispatched_ms, index_ms),
            (position, index_position),
        )

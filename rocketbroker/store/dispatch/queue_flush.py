# -*- test-case-name: tests.store.dispatch.test_queue_flush -*-
"""The flush of the consume queues to the disk, and of the checkpoint after it.

A thorough pass flushes all of them. All records that were dispatched when it began are
then on the disk, and the checkpoint notes this until the next pass: by the store time
of the last record, which is all that RocketMQ has, and by its position, which holds,
too, when the clock is set back. A store time that was noted before that lies ahead from
then on, and would cover all records that are stored until the clock is there again. So
a pass that finds such a time is a thorough one, and notes the time of day: RocketMQ's
broker, if it is the next to start, is misled only until such a pass has come.

C{docs/facts/store.md} 6 and 14.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import final

from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.flush import LogFlush
from rocketbroker.store.commitlog.writer import CommitLog
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.dispatch.dispatcher import Dispatcher
from rocketbroker.store.shared_positions import DISPATCHED, FLUSHED, SharedPositions


@final
class QueueFlush:
    """Flushes queues and full files of the index, and writes the checkpoint.

    @ivar lock: held by whoever does.
    """

    def __init__(
        self,
        positions: SharedPositions,
        log: CommitLog,
        flushing: LogFlush,
        table: QueueTable,
        dispatcher: Dispatcher,
        flush_index: Callable[[], tuple[int, int]],
        checkpoint: Checkpoint,
    ) -> None:
        """
        @param flush_index: puts full files of the index on the disk; returns the store
            time and the position up to which all of it is there.
        """
        self.lock = Lock()
        self._positions = positions
        self._log = log
        self._flushing = flushing
        self._table = table
        self._dispatcher = dispatcher
        self._flush_index = flush_index
        self._checkpoint = checkpoint

    def flush(self, least_pages: int) -> None:
        """See L{rocketbroker.store.interfaces.IStore.flush_queues}."""
        with self.lock:
            self._flush(least_pages)

    def _flush(self, least_pages: int) -> None:
        checkpoint = self._checkpoint
        if self._log.published_ms < checkpoint.logics_ms:
            least_pages = 0
        # Before the queues: later records wait for the next pass.
        dispatched_ms = self._dispatcher.dispatched_ms
        position: int = self._positions.view[DISPATCHED]
        self._table.flush(least_pages)
        if least_pages:
            dispatched_ms, position = checkpoint.logics_ms, checkpoint.position
        else:
            position = min(position, self._positions.view[FLUSHED])
        index_ms, index_position = self._flush_index()
        checkpoint.update(
            (self._flushing.flushed_ms, dispatched_ms, index_ms),
            (position, index_position),
        )

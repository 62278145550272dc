# -*- test-case-name: tests.broker.storage.test_flush_policy -*-
"""The times at which log and queues are flushed.

  - I{The log}, with ASYNC_FLUSH: every flushIntervalCommitLog, if
    flushCommitLogLeastPages have come, and after flushCommitLogThoroughInterval
    whatever there is. Without flushCommitLogTimed also when an append wakes it, if
    wakeFlushWhenPutMessage. SYNC_FLUSH flushes when a send waits (L{GroupCommit}), and
    a moment after an append for which none does.
  - I{Queues and checkpoint}: every flushIntervalConsumeQueue those queues for which
    flushConsumeQueueLeastPages have come; all of them the first time and after
    flushConsumeQueueThoroughInterval.

An append wakes the flush by the call that dispatches it, a millisecond later.

C{docs/facts/store.md} 6.
"""

from __future__ import annotations

from typing import final

from twisted.internet.interfaces import IReactorTime

from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.config.store import StoreOptions
from rocketbroker.store.flush_threshold import is_due
from rocketbroker.store.interfaces import IStore


@final
class FlushPolicy:
    """Knows when it is time."""

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        options: StoreOptions,
        group_commit: GroupCommit,
    ) -> None:
        self._clock = clock
        self._store = store
        self._options = options
        self._group_commit = group_commit
        self._flushed_ms = self._now_ms()
        self._queues_ms: int | None = None

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self._options = options

    def _now_ms(self) -> int:
        # Rounded: a call that comes each 200 ms is to find 200 ms and not 199.
        return round(self._clock.seconds() * 1000)

    def appended(self) -> None:
        """Something was appended a moment ago."""
        options, store = self._options, self._store
        if self._group_commit.synchronous:
            if store.flushed_position < store.published_position:
                self._group_commit.flush_if_idle()
        elif options.wake_flush_when_put_message:
            self._wake_flush()

    def _wake_flush(self) -> None:
        if not self._options.flush_commit_log_timed:
            self.flush()

    def flush(self) -> None:
        """Flush what is due of the log (ASYNC_FLUSH)."""
        options, store = self._options, self._store
        done, end = store.flushed_position, store.published_position
        if end <= done:
            return
        now_ms = self._now_ms()
        least_pages = options.flush_commit_log_least_pages
        if now_ms - self._flushed_ms >= options.flush_commit_log_thorough_interval:
            least_pages = 0
            self._flushed_ms = now_ms
        if is_due(done, end, least_pages, options.mapped_file_size_commit_log):
            self._group_commit.flush()

    def flush_queues(self) -> None:
        """I{Blocking.} Flush what is due of queues and checkpoint."""
        options = self._options
        now_ms = self._now_ms()
        least_pages = options.flush_consume_queue_least_pages
        interval = options.flush_consume_queue_thorough_interval
        thorough = self._queues_ms is None or now_ms - self._queues_ms >= interval
        self._store.flush_queues(0 if thorough else least_pages)
        if thorough:
            self._queues_ms = now_ms

# -*- test-case-name: tests.store.retention.test_cleaner -*-
"""The cleaner: removes the oldest files of a store, by age or for room on the disk.

The oldest segment goes first, never the last one, and none that is not flushed and in
the queues; then queues begin where the log does, and their files and those of the index
go whose records are all gone. Segments that have expired, by the time of their last
change and fileReservedTime, go during the hours of deleteWhen, and at any time on a
disk that is rather full. On a disk so full that soon nothing could be stored, any
segment may go, with cleanFileForciblyEnable. RocketMQ then removes ten files, however
much each of them frees; here the disk is measured after each. A removal for age waits
for the index, a forced one does not.

A file is removed by its name alone. Its readers, another thread or an export in another
process, read on, and its blocks are freed when the last of them closes it; a mapping is
never taken away from under a reader. So a file that readers hold open, which RocketMQ
calls hanging, does not hold anything up here, and destroyMapedFileIntervalForcibly has
no effect. A hanging file here is one that the system refuses to remove: it stays in the
log and can be read. No later segment is removed, since a log with a hole begins behind
the hole at the next start; and the removal is tried again after
redeleteHangedFileInterval.

C{docs/facts/store.md} 2.5, 7.4 and 17.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final, NamedTuple, final

from zope.interface import classImplements

from rocketbroker.config.hours import parse_hours
from rocketbroker.config.store import StoreOptions
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.disk_usage import DiskUsage
from rocketbroker.store.index.service import Index
from rocketbroker.store.interfaces import ICleaner
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    FLUSHED,
    MIN_POSITION,
    SharedPositions,
)

#: How many rounds one call of an operator is good for, as in RocketMQ.
MANUAL_ROUNDS: Final = 20

#: After so many queues without anything to remove, others get their turn.
QUEUE_BATCH_SIZE: Final = 100

_HOUR_MS: Final = 3_600_000


def local_hour(ms: int) -> int:
    """The hour of the day, 0 to 23, where this machine is."""
    return time.localtime(ms // 1000).tm_hour


class LocalClock(NamedTuple):
    """The time of day where the broker runs.

    @ivar wall_ms: in milliseconds since 1970.
    @ivar hour_of: the local hour of a time in ms.
    """

    wall_ms: Callable[[], int]
    hour_of: Callable[[int], int]


@final
class Cleaner:
    """The removal of files that a store does not need any more.

    @ivar removed_segments: how many files of the log are gone.
    @ivar removed_files: how many of the queues and of the index.
    @ivar failures: how many removals the system has refused.
    @ivar hanging: the sentence about a file that could not be removed; empty if none.
    """

    def __init__(
        self,
        files: IFiles,
        options: StoreOptions,
        segments: Segments,
        table: QueueTable,
        index: Index,
        positions: SharedPositions,
        threads: Lock,
        space: DiskUsage,
        clock: LocalClock,
    ) -> None:
        self.removed_segments = 0
        self.removed_files = 0
        self.failures = 0
        self.hanging = ""
        self._files = files
        self._segments = segments
        self._table = table
        self._index = index
        self._positions = positions
        self._threads = threads
        self._space = space
        self._wall_ms = clock.wall_ms
        self._hour_of = clock.hour_of
        self.configure(options)
        self._hanging_since_ms = 0
        self._manual = 0
        #: Where the log began when the queues were last looked through.
        self._followed = 0

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self._hours = parse_hours(options.delete_when)
        self._reserved_ms = options.file_reserved_time * _HOUR_MS
        self._max_removed = options.delete_file_batch_max
        self._force = options.clean_file_forcibly_enable
        self._pause = options.delete_commit_log_files_interval
        self._queue_pause = options.delete_consume_queue_files_interval
        self._hanging_ms = options.redelete_hanged_file_interval

    def expire_now(self) -> None:
        """See L{ICleaner.expire_now}."""
        self._manual = MANUAL_ROUNDS

    def follow_from(self, position: int) -> None:
        """Let the queues follow the log only when it begins behind a position: missing
        segments before that may come back."""
        self._followed = position

    def round(self) -> Iterator[int]:
        """I{Each step blocks.} One round, in steps that remove one file at the most.

        @return: after each step, how many ms to wait before the next.
        """
        yield from self._clean_log()
        yield from self.clean_queues()

    # The log.

    def _clean_log(self) -> Iterator[int]:
        space = self._space
        space.measure()
        at_any_hour = space.expire or space.force or self._manual > 0
        if self._manual > 0:
            self._manual -= 1
        if not at_any_hour and self._hour_of(self._wall_ms()) not in self._hours:
            return
        for count in range(self._max_removed):
            force = self._force and space.force
            if count:
                yield self._pause
            if not self._remove_oldest(force):
                return
            if force:
                space.measure()

    def _remove_oldest(self, force: bool) -> bool:
        """Remove the oldest segment, if it may go.

        @param force: whether it may before it has expired.
        """
        segments = self._segments.all
        if len(segments) < 2 or self._is_hanging():
            return False
        oldest = segments[0]
        if oldest.end > self._needed(force) or not (force or self._has_expired(oldest)):
            return False
        try:
            self._segments.remove_first(self._begin_at)
        except OSError as error:
            self._hang(oldest.path, error)
            return False
        self.hanging = ""
        self.removed_segments += 1
        with contextlib.suppress(OSError):
            self._files.sync_dir(os.path.dirname(oldest.path))
        return True

    def _begin_at(self, position: int) -> None:
        self._positions.view[MIN_POSITION] = position

    def _needed(self, force: bool) -> int:
        """The position from which on the log is still needed for flush, dispatch or
        index."""
        view = self._positions.view
        needed: int = min(view[FLUSHED], view[DISPATCHED])
        if not force and self._index.behind:
            needed = min(needed, self._index.position)
        return needed

    def _has_expired(self, segment: Segment) -> bool:
        try:
            changed_ms = self._files.modified_ms(segment.path)
        except FileNotFoundError:
            # Somebody else has removed it.
            return True
        except OSError:
            return False
        return changed_ms + self._reserved_ms <= self._wall_ms()

    def _hang(self, path: str, error: OSError) -> None:
        self.failures += 1
        self.hanging = f"{path} cannot be removed: {error.strerror}"
        self._hanging_since_ms = self._wall_ms()

    def _is_hanging(self) -> bool:
        """Whether a file that could not be removed is left alone for now."""
        waited_ms = self._wall_ms() - self._hanging_since_ms
        return bool(self.hanging) and 0 <= waited_ms < self._hanging_ms

    # Queues and index.

    def clean_queues(self) -> Iterator[int]:
        """I{Each step blocks.} The part of a round that is about queues and index."""
        lowest: int = self._positions.view[MIN_POSITION]
        if lowest <= self._followed:
            return
        for number, queue in enumerate(self._table.all(), 1):
            try:
                removed = self._begin(queue, lowest)
            except OSError:
                # It is out of the queue; the next start tries again.
                self.failures += 1
                continue
            self.removed_files += removed
            if removed:
                yield self._queue_pause
            elif number % QUEUE_BATCH_SIZE == 0:
                yield 0
        try:
            self.removed_files += self._index.drop_before(lowest)
        except OSError:
            # As it does with the next segment that goes.
            self.failures += 1
        self._followed = lowest

    def _begin(self, queue: Queue, lowest: int) -> int:
        """Let a queue begin where the log does.

        Searched twice: without the lock of threads, so that entries are read from the
        disk before it is held, and then with it, so that no dispatch runs meanwhile.

        @return: how many files were removed.
        """
        if not queue.begins_before(lowest):
            return 0
        self._threads.acquire()
        try:
            return queue.begin_with(lowest)
        finally:
            self._threads.release()


classImplements(Cleaner, ICleaner)

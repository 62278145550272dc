# -*- test-case-name: tests.store.commitlog.test_flush -*-
"""The flush of the log to the disk, and the position up to which it is there.

Two positions follow one another through the log: I{published}, where the next record
goes and up to which readers may read; I{flushed}, up to which the log survives a power
failure.

With the transient store pool RocketMQ has a third between them: a message is put into a
buffer of the process, is answered, and reaches the file up to 200 ms later. That works
around the page cache lock of a JVM's mapped writes. Appends are written by C{pwrite}
here, so the settings of the pool have no effect.

C{docs/facts/store.md} 2.4, 2.7 and 6.
"""

from __future__ import annotations

from threading import Lock
from typing import final

from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.writer import MAX_RUN, CommitLog
from rocketbroker.store.shared_positions import (
    FLUSHED,
    PUBLISHED,
    SharedPositions,
)


@final
class LogFlush:
    """The flush of the log, which moves the flushed position.

    @ivar lock: held while it moves.
    @ivar flushed_ms: the store time of the last record that is on the disk.
    """

    def __init__(self, log: CommitLog, positions: SharedPositions) -> None:
        self.log = log
        self._positions = positions
        self._rewrite = False
        self.lock = Lock()
        self.flushed_ms = 0

    def restored(self, ms: int) -> None:
        """All that a start has found was stored at C{ms} or before."""
        self.log.published_ms = self.flushed_ms = ms

    def flush(self) -> int:
        """See L{rocketbroker.store.interfaces.IStore.flush}."""
        with self.lock:
            return self._flush()

    def _flush(self) -> int:
        # Before the position: the record at its end is then not older.
        ms = self.log.published_ms
        view = self._positions.view
        target: int = view[PUBLISHED]
        flushed: int = view[FLUSHED]
        if target > flushed or self._rewrite:
            for segment in self.log.segments.all:
                if segment.end <= flushed:
                    segment.let_go()
                    continue
                if segment.start >= target:
                    continue
                self._flush_segment(segment, flushed, target)
            self._rewrite = False
            view = self._positions.view
            view[FLUSHED] = target
        self.flushed_ms = ms
        return target

    def _flush_segment(self, segment: Segment, flushed: int, target: int) -> None:
        """Put one on the disk.

        When a sync has failed, the kernel takes the pages for clean and the next sync
        would succeed without having written them: so they are written again first.
        """
        if self._rewrite:
            position = max(flushed, segment.start)
            end = min(target, segment.end)
            while position < end:
                size = min(MAX_RUN, end - position)
                content = segment.file.pread(size, position - segment.start)
                segment.file.pwrite(content, position - segment.start)
                position += size
        try:
            if not segment.is_dir_synced:
                self.log.segments.sync_dir_of(segment)
            segment.file.datasync()
        except OSError:
            self._rewrite = True
            raise

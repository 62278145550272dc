# -*- test-case-name: tests.store.commitlog.test_flush -*-
"""How far the log may be read, and how far it is on the disk.

Three positions follow one another through the log: I{published}, where the next record
goes; I{committed}, as far as readers may look; I{flushed}, what a power failure leaves.
As a rule committed is published, moved by the append itself.

With the transient store pool of the reference it is not. There a message is first put
into a buffer of the process, is answered, and reaches the file up to 200 ms later;
until then no reader sees it, and kill -9 loses it although it was acknowledged. What
the users of that setting build on is that readers see whole runs of messages a moment
later, and that a broker that cannot keep up says so. On losing acknowledged messages
nobody builds, and a buffer would save us nothing: appends are written by C{pwrite}, one
call for each turn, and no reader's page fault holds them up. So the bytes are in the
file when the send is answered, and what waits for the commit is the position alone:
kill -9 loses nothing, with the pool as without; for a power failure the flush is what
counts, and it covers what is committed.

With SYNC_FLUSH nothing is held back: a message is answered when it is flushed, and then
it is committed. (4.9 ignores the pool with SYNC_FLUSH; 5.3 lets each send wait for the
commit.)

The store sheet, sections 2.4, 2.7 and 6.
"""

from __future__ import annotations

from typing import final

from rocketbroker.store.commitlog.segments import Segment
from rocketbroker.store.commitlog.writer import MAX_RUN, CommitLog
from rocketbroker.store.flush_threshold import is_due
from rocketbroker.store.shared_positions import (
    COMMITTED,
    FLUSHED,
    PUBLISHED,
    SharedPositions,
)


@final
class Flushing:
    """Moves the committed and the flushed position.

    @ivar committed_ms: the store time of the last record committed, with the pool.
    @ivar flushed_ms: the same, of the last one that is on the disk.
    """

    def __init__(
        self, log: CommitLog, positions: SharedPositions, holds_back: bool
    ) -> None:
        """
        @param holds_back: whether what is published waits for a commit.
        """
        self._log = log
        self._positions = positions
        self._holds_back = holds_back
        self._rewrite = False
        self.committed_ms = 0
        self.flushed_ms = 0

    def restored(self, ms: int) -> None:
        """All that a start has found is committed, and stored at C{ms} or before."""
        self._log.published_ms = self.committed_ms = self.flushed_ms = ms

    def commit(self, least_pages: int) -> bool:
        """See L{rocketbroker.store.interfaces.IStore.commit}."""
        # Before the position: the record at its end is then not older.
        ms = self._log.published_ms
        view = self._positions.view
        published: int = view[PUBLISHED]
        if not is_due(view[COMMITTED], published, least_pages, self._log.segments.size):
            return False
        view[COMMITTED] = published
        self.committed_ms = ms
        return True

    def flush(self) -> int:
        """See L{rocketbroker.store.interfaces.IStore.flush}."""
        ms = self.committed_ms if self._holds_back else self._log.published_ms
        view = self._positions.view
        target: int = view[COMMITTED]
        flushed: int = view[FLUSHED]
        if target > flushed or self._rewrite:
            for segment in self._log.segments.all:
                if segment.end <= flushed or segment.start >= target:
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
            if not segment.is_named:
                self._log.segments.name(segment)
            segment.file.datasync()
        except OSError:
            self._rewrite = True
            raise

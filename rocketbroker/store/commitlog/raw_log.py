# -*- test-case-name: tests.store.commitlog.test_raw_log -*-
"""The log as bytes: what a master sends its slaves, and what these store.

A slave's log has the same bytes at the same positions as its master's, fillers
included. Each record is looked at once, before it is written: whether it is one, whole,
and of this position (L{rocketbroker.store.commitlog.received}). The CRC of the body is
left to readers, as a master whose disk has changed a byte is to be followed all the
same. What the look finds is kept for dispatch and index, as is done with the drafts of
an append, so they need not read the log.

While records of a master are not dispatched, a queue's next offset is not known here:
nothing else can be appended until they are.

C{docs/facts/ha.md} 2 to 4; C{docs/facts/store.md} 3 and 4.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from zope.interface import Interface, classImplements

from rocketbroker.errors import ServiceNotAvailable, StoreError
from rocketbroker.store.append_lock import held
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.received import whole_records
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.writer import CommitLog, Hint
from rocketbroker.store.raw_log import IRawLog
from rocketbroker.store.running_flags import NOT_APPENDABLE, RunningFlags
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    FLUSHED,
    MIN_POSITION,
    PUBLISHED,
    SharedPositions,
)


class ITruncation(Interface):
    """The truncation of a store, of which the log is only a part."""

    def check(position: int) -> None:
        """See L{RawLog.check}."""

    def run(position: int) -> None:
        """See L{IRawLog.truncate}."""


@final
class RawLog:
    """See L{IRawLog}."""

    def __init__(
        self,
        log: CommitLog,
        positions: SharedPositions,
        flags: RunningFlags,
        wall_ms: Callable[[], int],
        is_far: Callable[[int], bool],
        truncation: ITruncation,
        checkpoint: Checkpoint,
    ) -> None:
        """
        @param is_far: whether a position is so far behind that its bytes are no longer
            in memory.
        """
        self.is_open = False
        self._log = log
        self._segments = log.segments
        self._positions = positions
        self._flags = flags
        self._wall_ms = wall_ms
        self._is_far = is_far
        self._truncation = truncation
        self._checkpoint = checkpoint
        self._end = 0

    @property
    def master_flushed(self) -> int:
        """See L{IRawLog}."""
        return self._checkpoint.master_flushed

    @master_flushed.setter
    def master_flushed(self, position: int) -> None:
        # The next regular flush writes it.
        self._checkpoint.master_flushed = position

    @property
    def is_behind(self) -> bool:
        """Whether records of a master are not dispatched yet."""
        return bool(self._positions.view[DISPATCHED] < self._end)

    # Reading.

    def read(self, position: int, max_bytes: int) -> bytes:
        """See L{IRawLog.read}."""
        view = self._positions.view
        end = view[PUBLISHED]
        if not self.is_open or not view[MIN_POSITION] <= position < end:
            return b""
        segment = self._segments.find(position)
        if segment is not None and segment.is_missing:
            raise FileNotFoundError(f"{segment.path} is missing")
        size = min(max_bytes, end - position)
        return self._segments.read(position, size, self._is_far(position))

    def is_cold(self, position: int) -> bool:
        """See L{IRawLog.is_cold}."""
        return self.is_open and self._is_far(position)

    def check(self, position: int) -> None:
        """I{Blocking.} Whether the log can be truncated to a position.

        @raise StoreError: as L{truncate} does.
        """
        self._truncation.check(position)

    def truncate(self, position: int) -> None:
        """See L{IRawLog.truncate}."""
        if not self.is_open:
            raise ServiceNotAvailable("the store is closed")
        self._truncation.run(position)
        self._end = min(self._end, position)

    # Appending.

    def append(self, position: int, data: bytes) -> int:
        """See L{IRawLog.append}."""
        with held(self._log.append_lock):
            if not self.is_open:
                raise ServiceNotAvailable("the store is closed")
            if self._flags.bits and not self._log.may_append(self._wall_ms()):
                reason = self._flags.reasons(NOT_APPENDABLE)
                raise ServiceNotAvailable(reason or "the store is not writeable")
            self._check_place(position)
            taken = 0
            while taken < len(data):
                try:
                    size = self._append(position + taken, data[taken:])
                except (StoreError, ServiceNotAvailable):
                    if taken:
                        # The next call says so.
                        break
                    raise
                if not size:
                    break
                taken += size
            return taken

    def _check_place(self, position: int) -> None:
        """Whether bytes from a position on belong to the end of this log; an empty one
        begins there, if a segment does.

        @raise StoreError: they do not.
        """
        view = self._positions.view
        published = view[PUBLISHED]
        if position == published:
            return
        is_empty = published == self._segments.all[0].start == view[MIN_POSITION]
        if not is_empty or position % self._segments.size or position < 0:
            raise StoreError(
                f"The master sends its log from position {position} on, and the log "
                f"here ends at {published}."
            )
        try:
            self._segments.begin_at(position)
        except OSError as error:
            self._log.refuse("no commit log segment can be made in {}", error)
            raise ServiceNotAvailable(f"no segment: {error.strerror}") from error
        for word in (PUBLISHED, MIN_POSITION, FLUSHED, DISPATCHED):
            view[word] = position

    def _append(self, position: int, data: bytes) -> int:
        """Append records of one segment.

        @return: how many bytes they are.
        """
        # Nothing is made for bytes that are refused, or too few.
        end = position - position % self._segments.size + self._segments.size
        received = whole_records(data, position, end)
        size = received.size
        if not size:
            return 0
        segment = self._log.writable(position)
        if segment is None:
            raise ServiceNotAvailable("there is no room for another segment")
        content = data if size == len(data) else data[:size]
        self._write(segment, position, content)
        view = self._positions.view
        ms = received.runs[-1].store_ms if received.runs else self._log.published_ms
        self._end = position + size
        self._log.keep(Hint(position, position + size, ms, [], received))
        view[PUBLISHED] = position + size
        self._log.published_ms = ms
        self._log.appended_messages += received.messages()
        self._log.appended_bytes += size - received.filler
        return size

    def _write(self, segment: Segment, position: int, content: bytes) -> None:
        try:
            segment.file.pwrite(content, position - segment.start)
        except OSError as error:
            self._log.cut_behind(segment)
            self._log.refuse("the commit log {} cannot be written", error)
            raise ServiceNotAvailable(f"not written: {error.strerror}") from error


classImplements(RawLog, IRawLog)

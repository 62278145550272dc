# -*- test-case-name: tests.store.recovery.test_truncation -*-
"""The truncation of a log that is in use: as if nothing from a position on had ever
been stored.

The master that a slave has followed is gone, and another broker, which had less, has
become the master. What this one has beyond must go before it follows: no client was
told of it by two brokers, and the new master's messages take its places.

Log, queues, index and checkpoint are several files, and the machine may stop between
any two writes. So the position is first written to a file, C{rocketbroker.truncation},
and that is removed when all is done and on the disk. A start that finds it ends the
log there before it reads it, and takes the last stop for an unclean one: then it makes
the queues right as after any crash. The checkpoint goes back first, or that start would
believe what it vouched for. While the file is there nothing can be appended.

The rest of the segment in which the log ends is overwritten with zeros, and not cut:
touching a mapped page behind the end of a file kills the process.
"""

from __future__ import annotations

import os
from typing import Final, final

from zope.interface import classImplements

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.record_head import LEAST_SIZE
from rocketbroker.store.append_lock import held
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.encoder import FILLER
from rocketbroker.store.commitlog.flush import LogFlush
from rocketbroker.store.commitlog.raw_log import ITruncation
from rocketbroker.store.commitlog.scanner import NO_CRC, Blank, Broken, Scan, parse
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.dispatch.dispatcher import Dispatcher
from rocketbroker.store.dispatch.queue_flush import QueueFlush
from rocketbroker.store.index.service import Index
from rocketbroker.store.recovery.clean_shutdown import sealed, unsealed
from rocketbroker.store.running_flags import NOT_WRITEABLE, RunningFlags
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    FLUSHED,
    MIN_POSITION,
    PUBLISHED,
    SharedPositions,
)

NAME: Final = "rocketbroker.truncation"

_BY: Final = "truncation"

#: How many records are dispatched at once before it.
_BATCH_SIZE: Final = 10_000


@final
class TruncationNote:
    """The file with the position of a truncation that has begun.

    @ivar position: that position; -1 if there is none.
    """

    def __init__(self, files: IFiles, root: str) -> None:
        """I{Blocking.} Read it."""
        self._files = files
        self._root = root
        self._path = os.path.join(root, NAME)
        self.position = -1
        if files.exists(self._path):
            # Torn: nothing was done yet.
            self.position = int(unsealed(files.read(self._path)).get("position", -1))

    def write(self, position: int) -> None:
        """I{Blocking.} Note that one begins."""
        file = self._files.open(self._path, create=True)
        try:
            file.truncate(0)
            file.pwrite(sealed({"position": position}), 0)
            file.datasync()
        finally:
            file.close()
        self._files.sync_dir(self._root)
        self.position = position

    def remove(self) -> None:
        """I{Blocking.} Note that it is done."""
        if self._files.exists(self._path):
            self._files.remove(self._path)
            self._files.sync_dir(self._root)
        self.position = -1


@final
class Truncation:
    """The truncation of a store that is open."""

    def __init__(
        self,
        note: TruncationNote,
        positions: SharedPositions,
        flags: RunningFlags,
        flushing: LogFlush,
        table: QueueTable,
        dispatcher: Dispatcher,
        index: Index,
        queue_flushing: QueueFlush,
        checkpoint: Checkpoint,
    ) -> None:
        self._note = note
        self._positions = positions
        self._flags = flags
        self._log = flushing.log
        self._segments = flushing.log.segments
        self._flushing = flushing
        self._table = table
        self._dispatcher = dispatcher
        self._index = index
        self._queue_flushing = queue_flushing
        self._checkpoint = checkpoint

    def check(self, position: int) -> None:
        """See L{rocketbroker.store.commitlog.raw_log.RawLog.check}."""
        view = self._positions.view
        first, end = view[MIN_POSITION], view[PUBLISHED]
        check_boundary(self._segments, first, end, position)

    def run(self, position: int) -> None:
        """See L{rocketbroker.store.raw_log.IRawLog.truncate}."""
        with held(self._log.append_lock):
            view = self._positions.view
            if position == view[PUBLISHED] and self._note.position < 0:
                return
            self.check(position)
            self._flushing.flush()
            while view[DISPATCHED] < view[PUBLISHED]:
                # Or the next offsets of queues would count records that go.
                self._dispatcher.dispatch(_BATCH_SIZE)
                view = self._positions.view
            reason = f"the log is not truncated to position {position} yet"
            self._flags.set(NOT_WRITEABLE, True, reason, _BY)
            with self._queue_flushing.lock, self._flushing.lock:
                self._run(position)
            self._flags.set(NOT_WRITEABLE, False, by=_BY)

    def _run(self, position: int) -> None:
        view = self._positions.view
        published = view[PUBLISHED]
        # What was broken off may have left a queue half cut.
        is_again = self._note.position >= 0
        self._note.write(position)
        ms = time_before(self._segments, position)
        lower(self._checkpoint, position, ms)
        self._log.hints.clear()
        view[PUBLISHED] = position
        for queue in self._table.all():
            queue.from_position = min(queue.from_position, position)
            if is_again or queue.max_position > position:
                cut_queue(queue, position, view[MIN_POSITION])
        view[DISPATCHED] = position
        view[FLUSHED] = min(position, view[FLUSHED])
        self._segments.remove_behind(position)
        last = self._segments.all[-1]
        last.overwrite(position, min(published, last.end))
        self._index.truncate(position)
        self._table.flush()
        self._flushing.restored(min(ms, self._log.published_ms))
        self._dispatcher.dispatched_ms = min(ms, self._dispatcher.dispatched_ms)
        self._note.remove()


def check_boundary(segments: Segments, first: int, end: int, position: int) -> None:
    """I{Blocking.} Whether a record begins at a position, or the log ends there.

    @param first: where the log begins.
    @param end: where it ends.
    @raise StoreError: that is not so.
    """
    if not first <= position <= end:
        raise StoreError(
            f"The log has the bytes from position {first} up to {end}; it cannot be "
            f"truncated to {position}."
        )
    segment = segments.find(position)
    if position == end or segment is None or position == segment.start:
        return
    at, rest = position - segment.start, segment.end - position
    head = segments.around_bad(segment, FILLER.size, at)
    size = int.from_bytes(head[:4], "big")
    size = size if LEAST_SIZE <= size <= rest else min(LEAST_SIZE, rest)
    data, refused = segments.before_bad(segment, size, at)
    try:
        parse(data, 0, position, NO_CRC)
        return
    except Blank:
        if head[:4] == rest.to_bytes(4, "big"):
            return
        why = "it is no filler"
    except Broken as error:
        why = refused or str(error)
    # It stands where the record does that holds the position.
    scan = Scan(segments, segment.start, position, NO_CRC)
    for _ in scan:
        pass
    raise StoreError(
        f"No record begins at position {position}: {why}. One begins at "
        f"{scan.position}."
    )


def time_before(segments: Segments, position: int) -> int:
    """I{Blocking.} A store time that no record before a position is much older than,
    and none behind it earlier: that of the first record in its segment; 0 if it cannot
    be read."""
    segment = segments.find(position - 1)
    if segment is None:
        return 0
    head = segments.around_bad(segment, 4, 0)
    size = max(LEAST_SIZE, int.from_bytes(head, "big"))
    data, _ = segments.before_bad(segment, size, 0)
    try:
        return parse(data, 0, segment.start, NO_CRC).store_ms
    except (Blank, Broken):
        return 0


def lower(checkpoint: Checkpoint, position: int, ms: int) -> None:
    """I{Blocking.} Let a checkpoint vouch for nothing from a position on.

    @param ms: by the times, which is all that RocketMQ has, for nothing from this on.
    @raise OSError: the disk refused.
    """
    times = checkpoint.physic_ms, checkpoint.logics_ms, checkpoint.index_ms
    checkpoint.update(
        (min(times[0], ms), min(times[1], ms), min(times[2], ms)),
        (
            min(checkpoint.position, position),
            min(checkpoint.index_position, position - 1),
        ),
    )


def cut_queue(queue: Queue, position: int, lowest: int) -> None:
    """I{Blocking.} Let a queue end with the last record before a position.

    @param lowest: where the log begins.
    """
    first = queue.min_offset
    queue.mark_dir_unsynced()
    queue.bound(position, lowest, cut=True)
    queue.trusted_from = min(queue.trusted_from, queue.max_offset)
    if queue.batch is None and queue.min_offset == queue.max_offset < first:
        # The records before it have expired; their offsets are not given again.
        queue.continue_at(first)


def finish(segments: Segments, checkpoint: Checkpoint, position: int) -> str:
    """I{Blocking.} End the log where a truncation that was broken off has to, before a
    start reads it; nobody else reads it yet.

    @return: a sentence about it.
    """
    lower(checkpoint, position, time_before(segments, position))
    segments.remove_behind(position)
    last = segments.all[-1]
    if last.start <= position < last.end and not last.is_missing:
        last.keep_open()
        last.cut(position)
        last.file.datasync()
    return (
        f"A truncation of the log to position {position} was broken off; it is "
        "finished now."
    )


classImplements(Truncation, ITruncation)

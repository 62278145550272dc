# -*- test-case-name: tests.store.recovery.test_recovery -*-
"""The recovery of a store: from the files that a stop has left to a store that serves.

A recovery is a row of phases. Each does one thing and names the next one::

    ======  ==================================================  =====================
    phase   what it does                                        next
    ======  ==================================================  =====================
    LOAD    opens the files of log and queues, reads checkpoint  START; DONE without
            and rocketbroker.ends                                a log
    START   decides how far the queues are trusted, and where    SCAN
            the scan of the log starts
    SCAN    enters each record from there on into its queue      TAIL; START if the
                                                                 queues proved wrong
    TAIL    discards the bytes behind the last record            QUEUES
    QUEUES  sets the ends of the queues and the shared           DONE
            positions
    ======  ==================================================  =====================

(The index is loaded afterwards, by L{rocketbroker.store.index.service}.)

START decides on a L{Trust}, which only ever goes down::

    ============  =====================================================================
    trust         the scan starts
    ============  =====================================================================
    ALL           at the end of the last record that has an entry: the stop was clean
    BEFORE_START  at the last segment that begins before the checkpoint
    NONE          at the first segment: all queues are made again. This is needed when a
                  file of a queue is missing, has a wrong length or cannot be read, when
                  rocketbroker.ends knows entries that are gone, and when the records
                  before one are missing in its queue.
    ============  =====================================================================

A corrupt record that others follow does not end the log: its place in its queue is
kept, and it is not handed out. RocketMQ ends its log there. Other differences:

  - Records I{at} the end of the queues are entered too, not only those beyond it;
    RocketMQ loses one.
  - An entry of size 0 is never kept, and entries that fill gaps have a size of their
    own.
  - With C{forceVerifyPropCRC} a record without a CRC of its own counts by that of its
    body; for RocketMQ the log ends there.
  - The log of a slave ends at a hole in bytes that were not known to be on the disk:
    it gets them, and all that follows, from its master.
  - A short file of the log is extended; RocketMQ refuses to start. Missing files keep
    their places (L{rocketbroker.store.commitlog.loading}).
  - A whole segment of records behind the end is set aside, not deleted, and discarded
    bytes are overwritten with zeros, so that they cannot come back.

C{docs/facts/store.md} 15, and its traps 9, 12 and 13.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from operator import attrgetter
from typing import NamedTuple, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.os_errors import reason
from rocketbroker.records.entries import SIZE
from rocketbroker.records.record_head import RecordHead
from rocketbroker.store.commitlog.checkpoint import UNKNOWN, Checkpoint
from rocketbroker.store.commitlog.loading import (
    MAX_MISSING_BEHIND,
    extend,
    load_segments,
)
from rocketbroker.store.commitlog.scanner import (
    BODY_CRC,
    NO_CRC,
    RECORD_CRC,
    Blank,
    Broken,
    Scan,
    parse,
)
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.truncate import LogEnd
from rocketbroker.store.consumequeue.queue import NO_HINT, Queue
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.dispatch.dispatcher import Dispatcher
from rocketbroker.store.dispatch.offset_sequence import OffsetSequence, keep_places
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
from rocketbroker.store.recovery.log_scan import NEVER, LogScan
from rocketbroker.store.recovery.outcome import RecoveryOutcome, Trust
from rocketbroker.store.recovery.truncation import finish
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    FLUSHED,
    MIN_POSITION,
    NEXT,
    PUBLISHED,
    SharedPositions,
)


class Phase(Enum):
    """The phases; see the module."""

    LOAD = auto()
    START = auto()
    SCAN = auto()
    TAIL = auto()
    QUEUES = auto()
    DONE = auto()


class LastStop(NamedTuple):
    """What the last stop has left.

    @ivar mark_unclean: lets the next start take it for an unclean one; called before
        anything is changed.
    @ivar clean: whether it was a clean one.
    @ivar zeroed: whether only zeros stood behind the log's end when a process last
        began to write there.
    @ivar truncated_to: where a truncation that was broken off ends the log; -1 for
        none. The stop was not clean then.
    """

    mark_unclean: Callable[[], None]
    clean: bool
    zeroed: bool
    truncated_to: int


def crcs_to_check(options: StoreOptions) -> int:
    """The CRCs that recovery checks."""
    if not options.check_crc_on_recover:
        return NO_CRC
    return RECORD_CRC if options.force_verify_prop_crc else BODY_CRC


@final
class Recovery:
    """The recovery of a store at one start.

    @ivar report: a sentence for each thing that was not right.
    @ivar zeroed: whether only zeros stand behind the log's end.
    @ivar begins_late: whether segments are missing before the first.
    @ivar last_store_ms: the store time of the last record read; 0 if none was.
    """

    def __init__(
        self,
        segments: Segments,
        table: QueueTable,
        positions: SharedPositions,
        checkpoint: Checkpoint,
        dispatcher: Dispatcher,
        options: StoreOptions,
        corruption: CorruptionLog,
        clean_shutdown: CleanShutdown,
        stop: LastStop,
    ) -> None:
        self._files = segments.open_files.files
        self._segments = segments
        self._table = table
        self._positions = positions
        self._checkpoint = checkpoint
        self._dispatcher = dispatcher
        self._check_crc = crcs_to_check(options)
        self._corruption = corruption
        self._clean_shutdown = clean_shutdown
        self._mark_unclean = stop.mark_unclean
        self._clean = stop.clean
        self._truncated_to = stop.truncated_to
        #: Whether a master has all that this log lacks at its end.
        self._is_slave = options.broker_role == "SLAVE"
        self._trust = Trust.ALL if stop.clean else Trust.BEFORE_START
        self._scan: Scan | None = None
        self._start = 0
        self._end = 0
        self._known_end = 0
        self._records = 0
        self._cut = 0, -1
        self.zeroed = stop.zeroed
        self.begins_late = False
        self.last_store_ms = 0
        self.report: list[str] = []

    def run(self) -> RecoveryOutcome:
        """I{Blocking.} Go through the phases.

        @raise OSError: the disk refused.
        @raise StoreError: the files were made with other settings.
        """
        phases: dict[Phase, Callable[[], Phase]] = {
            Phase.LOAD: self._load,
            Phase.START: self._find_start,
            Phase.SCAN: self._scan_log,
            Phase.TAIL: self._cut_tail,
            Phase.QUEUES: self._set_queues,
        }
        phase = Phase.LOAD
        while phase is not Phase.DONE:
            phase = phases[phase]()
        self._clean_shutdown.forget()
        return RecoveryOutcome(
            self._clean,
            self._trust,
            self._start,
            self._end,
            self._records,
            *self._cut,
        )

    def _distrust(self) -> None:
        """Make all queues again: now or, if this start is killed, by the next one."""
        if self._trust is not Trust.NONE:
            self._trust = Trust.NONE
            self._mark_unclean()
            self._checkpoint.forget_times()

    # LOAD

    def _load(self) -> Phase:
        segments = self._segments
        self.report += load_segments(self._files, segments)
        for load in (self._checkpoint.load, self._clean_shutdown.load):
            try:
                load()
            except OSError as error:
                self.report.append(
                    f"A file of the last stop cannot be read: {reason(error)}."
                )
        restore = self._clean_shutdown.restore
        self.report += self._table.load(self._clean, self._distrust, restore)
        if self._trust is Trust.NONE:
            self.report.append("All queues are made again.")
        if self._table.lmq_count:
            # Their entries are made again even if new messages get none.
            self._dispatcher.multi_dispatch = True
        if not segments.all:
            self._empty()
            return Phase.DONE
        if self._truncated_to >= 0:
            sentence = finish(segments, self._checkpoint, self._truncated_to)
            self.report.append(sentence)
        self._positions.view[MIN_POSITION] = segments.all[0].start
        self._find_missing()
        if self._clean:
            # If this start does not finish, the next one must not believe the queues.
            self._mark_unclean()
        return Phase.START

    def _empty(self) -> None:
        """Begin an empty log, and remove the files of queues, which lead nowhere."""
        self.zeroed = True
        for queue in self._table.all():
            if queue.has_files:
                self.report.append(
                    f"The files of {queue.topic}/{queue.queue_id} are removed, as "
                    "there is no commit log."
                )
                queue.drop()
        self._segments.roll()

    def _find_missing(self) -> None:
        """Find the segments that are missing before the first and behind the last."""
        segments, known = self._segments, self._clean_shutdown
        first = segments.all[0].start
        if self._clean and 0 <= known.first < first:
            self.begins_late = True
            self.report.append(
                f"The log began at position {known.first} when the store was stopped; "
                f"now its files begin at {first}."
            )
        end = known.published if self._clean else 0
        several = len(segments.folders) + len(segments.read_only) > 1
        last = segments.all[-1]
        if several or (self._clean and end <= last.start):
            self._bound(1 << 62, cut=False)
            limit = last.end + MAX_MISSING_BEHIND * segments.size
            leads = sorted(p for p in self._table.last_positions() if p < limit)
            # Where there is one directory, one entry is more likely to be corrupt.
            end = max(end, [-1, -1, *leads][-1 if several else -2] + 1)
        self._known_end = end
        if self._clean and end > last.end:
            # The queue offsets of entries that lead there are taken.
            self._distrust()

    # START

    def _find_start(self) -> Phase:
        trust = None
        while trust is not self._trust:
            # Each check of the queues may find that they are to be trusted less.
            trust = self._trust
            if trust is Trust.ALL:
                self._start = self._start_of_clean()
                continue
            self._start = self._segments.all[0].start
            if trust is Trust.BEFORE_START:
                self._start = self._start_by_checkpoint()
            self._bound(self._start, cut=True)
        return Phase.SCAN

    def _start_of_clean(self) -> int:
        """The end of the last record that has an entry, if the queues fit the log; else
        they are trusted less."""
        last = self._last_queue()
        first = self._segments.all[0].start
        known = self._clean_shutdown
        if last and last.max_position > known.published and known.doubt():
            # Another broker has appended. Its stamps do not show all: in a file system
            # in memory, what is written to a mapping does not change any.
            last = self._last_queue()
        end = first if last is None else last.max_position
        if last is not None and end > first and not self._fits(last):
            self._trust = Trust.BEFORE_START
            return first
        if end <= known.published:
            for topic, queue_id in known.queues():
                # One that has lost its directory has no handle yet.
                if not self._table.has(topic, queue_id):
                    name = topic.encode("utf-8", "surrogatepass")
                    self._table.get_by_bytes(name, queue_id)
        missing = known.missing(first, end, self._table.all()) if end > first else ""
        if missing:
            self.report.append(missing)
            self._distrust()
        return max(end, first)

    def _last_queue(self) -> Queue | None:
        """Set the ends of all queues; the one whose last record is the last of all."""
        self._bound(self._segments.all[-1].end, cut=False)
        return max(self._table.all(), key=attrgetter("max_position"), default=None)

    def _fits(self, queue: Queue) -> bool:
        """Whether the record of a queue's last entry is whole, or is known to have
        been when the store was stopped."""
        position, size = queue.last_place()
        end = queue.max_position
        try:
            found = self._parse(position)
            if b"\0" in found.properties:
                raise Broken("its end was not written")
            if found.size != size:
                raise Broken(f"the size in its entry is {size}")
        except (Blank, Broken) as error:
            text = (
                f"The last record of {queue.topic}/{queue.queue_id}, at position "
                f"{position}, cannot be read: {error}. "
            )
            if self._clean_shutdown.published != end or not self._is_written(end - 1):
                self.report.append(text + "All is checked.")
                return False
            # The log ended there, and the record's end was written: it is not torn.
            self._corruption.note(position, text + "Its place is kept.")
        return True

    def _is_written(self, position: int) -> bool:
        """Whether a byte at a position was written, or may be, as it cannot be read."""
        segment = self._segments.find(position)
        if segment is None:
            return False
        found = self._segments.before_bad(segment, 1, position - segment.start)
        return found != (b"\0", "")

    def _parse(self, position: int) -> RecordHead:
        segment = self._segments.find(position)
        if segment is None:
            raise Broken("there is no file")
        at = position - segment.start
        head = self._segments.around_bad(segment, 4, at)
        size = min(max(8, int.from_bytes(head, "big")), segment.end - position)
        data, refused = self._segments.before_bad(segment, size, at)
        if refused:
            raise Broken(refused)
        return parse(data, 0, position, self._check_crc)

    def _start_by_checkpoint(self) -> int:
        """The start of the last segment that began before the checkpoint."""
        for segment in reversed(self._segments.all):
            try:
                found = self._parse(segment.start)
            except (Blank, Broken):
                continue
            if self._checkpoint.has_before(segment.start, found.store_ms):
                return segment.start
        return self._segments.all[0].start

    def _bound(self, before: int, cut: bool) -> None:
        """Let each queue end with its last entry of a record that starts before a
        position, and begin with the first whose record is there.

        @param cut: remove the entries that follow; but not at once, other than in batch
            queues, as the old entries are needed while the log is scanned.
        """
        lowest = self._segments.all[0].start
        known, left = self._clean_shutdown, self._positions.left
        for queue in self._table.all():
            if self._trust is Trust.ALL and known.set_range(queue, lowest):
                continue
            key = queue.topic, queue.queue_id
            hint = left.get(key) or known.hint_of(*key)
            if self._trust is Trust.NONE:
                # Between entries there may be others, and files without any.
                hint = NO_HINT
            queue.bound(before, lowest, cut and queue.batch is not None, hint)

    # SCAN

    def _scan_log(self) -> Phase:
        first, trust = self._segments.all[0].start, self._trust
        replaced = self._table.replaced
        sequence = OffsetSequence(self._corruption, first, self._start)
        self._dispatcher.offset_sequence = sequence
        if trust is not Trust.ALL:
            self._dispatcher.know(self._table.all())
        flushed = self._checkpoint.position
        scan = LogScan(
            self._segments,
            self._dispatcher,
            self._check_crc,
            self._corruption,
            flushed if self._is_slave and flushed != UNKNOWN else NEVER,
        )
        self._scan = scan.run(self._start, trust is Trust.ALL, self.zeroed)
        self._dispatcher.offset_sequence = None
        self._records, self.last_store_ms = scan.records, scan.last_store_ms
        if sequence.has_restarted and trust is Trust.ALL:
            # Behind the entries of a new topic may be those of the one before.
            self._trust = Trust.BEFORE_START
        if self._start > first and (sequence.gaps or self._trust is not trust):
            self.report.append(
                f"Queue entries before position {self._start} are missing; they are "
                f"made again from position {first}."
            )
            self._distrust()
            return Phase.START
        # Entries that were written into a file before it was replaced are lost.
        return Phase.TAIL if self._table.replaced == replaced else Phase.START

    # TAIL

    def _cut_tail(self) -> Phase:
        """Discard the bytes behind the end; see L{LogEnd}."""
        scan = self._scan
        assert scan is not None
        if self._known_end > self._segments.all[-1].end:
            self.report += extend(self._segments, scan.position, self._known_end)
            if not scan.broken:
                scan.position = self._segments.all[-1].end
        log_end = LogEnd(self._files, self._segments, self.zeroed)
        self._end = log_end.cut(scan, self._trust is Trust.ALL)
        if scan.is_refused:
            self._corruption.note_lost(scan.position, self._end)
        self.zeroed = log_end.zeroed
        self.report += log_end.report
        if log_end.discarded_bytes:
            self._cut = log_end.discarded_bytes, scan.position
        return Phase.QUEUES

    # QUEUES

    def _set_queues(self) -> Phase:
        view, end = self._positions.view, self._end
        for queue in self._table.all():
            if self._trust is not Trust.ALL:
                self._set_end(queue)
            view[queue.slot + NEXT] = queue.trusted_from = queue.max_offset
        view[PUBLISHED] = view[DISPATCHED] = end
        view[FLUSHED] = self._start
        return Phase.DONE

    def _set_end(self, queue: Queue) -> None:
        """Let the files of a queue end where it ends."""
        queue.mark_dir_unsynced()
        if queue.batch is None:
            keep_places(queue, self._end)
            self._keep_number(queue)
            queue.files.cut(queue.max_offset * SIZE)

    def _keep_number(self, queue: Queue) -> None:
        """Let an empty queue, all of whose records are gone, go on at its old end."""
        assert self._scan is not None
        files = queue.files.all
        number = files[0].start // SIZE if files else 0
        known = self._clean_shutdown
        if known.published in (self._scan.position, self._end):
            number = max(number, known.end_of(queue.topic, queue.queue_id))
        if queue.min_offset == queue.max_offset < number:
            queue.continue_at(number)

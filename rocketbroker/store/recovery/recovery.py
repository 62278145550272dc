# -*- test-case-name: tests.store.recovery.test_recovery -*-
"""From whatever a stop has left to a store that can go on.

After a clean stop the queues are complete up to the end D of the last record that
stands in one of them; the log is read from there, usually to find nothing. After any
other stop the queues are believed only for what lies before the last segment that began
before the checkpoint: their entries from there on are made again from the log, which is
read with all checks. It ends where no record is and nothing whole follows: a torn tail
(L{rocketbroker.store.commitlog.truncate}).

Where whole records follow (L{rocketbroker.store.commitlog.resync}), it was rot, or a
block that the disk lost or cannot read, and the log goes on behind it: these were
acknowledged like any other. What was there keeps its place in its queue and is not
handed out; so is a record that says another place than is its own
(L{rocketbroker.store.dispatch.offset_sequence}).

Where this differs from the reference, on purpose:

  - Records I{at} D are dispatched too, not only those beyond it: the reference loses
    one.
  - An entry of size 0 is never kept, and entries filled in are told by their size.
  - Entries are written where the record says that it stands in its queue, so holes that
    a crash tore into a queue file are mended, and nothing is entered twice.
  - What no queue leads to, though it should, is entered again
    (L{rocketbroker.store.recovery.unentered}).
  - When the records before one are missing in its queue, everything is built again from
    the first segment, so a queue whose files were lost comes back.
  - It does not end at a rotten record that others follow; the reference loses these.
  - With C{forceVerifyPropCRC} a record without a CRC of its own counts by that of its
    body; for the reference the log ends there, with all that was written before the
    setting.
  - A short file of the log is extended; the reference refuses to start. One that is too
    long was made with another setting: we too. Missing files keep their places
    (L{rocketbroker.store.commitlog.loading}).
  - Where files of a queue have a wrong length, or are missing between others, all
    queues are made again (L{rocketbroker.store.consumequeue.loading}).
  - A whole segment of records behind the end is set aside, not deleted.
  - What was given up is overwritten with zeros, so that the next start need not ask
    whether whole records behind a rotten one are older than the log.

The store sheet, section 15, and its traps 9, 12 and 13.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.reasons import reason
from rocketbroker.records.entries import SIZE
from rocketbroker.records.record_head import MAGIC_V1
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.loading import (
    MAX_MISSING_BEHIND,
    extend,
    is_stand_in,
    load_segments,
)
from rocketbroker.store.commitlog.resync import Resync
from rocketbroker.store.commitlog.scanner import (
    NOTHING,
    Blank,
    Broken,
    Found,
    Scan,
    parse,
)
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.truncate import LogEnd
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.dispatch.dispatcher import Dispatcher
from rocketbroker.store.dispatch.offset_sequence import OffsetSequence, keep_places
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
from rocketbroker.store.recovery.unentered import Unentered
from rocketbroker.store.shared_positions import (
    COMMITTED,
    DISPATCHED,
    FLUSHED,
    MIN_POSITION,
    NEXT,
    PUBLISHED,
    SharedPositions,
)

#: So many entries are collected before they are written.
ENTRY_BATCH_SIZE: Final = 50_000

_MAGIC_V1: Final = MAGIC_V1.to_bytes(4, "big", signed=True)


@final
class Recovery:
    """One start.

    @ivar report: a sentence for each thing that was not right.
    @ivar zeroed: whether zeros alone stand behind the log's end.
    @ivar begins_late: whether segments are missing before the first.
    """

    def __init__(
        self,
        files: IFiles,
        segments: Segments,
        table: QueueTable,
        words: SharedPositions,
        checkpoint: Checkpoint,
        dispatcher: Dispatcher,
        check_crc: int,
        rot: CorruptionLog,
        ends: CleanShutdown,
        doubt: Callable[[], None],
        zeroed: bool,
        listed: Callable[[], frozenset[str] | None],
    ) -> None:
        """
        @param check_crc: which CRCs of a record are looked at; see L{scanning.parse}.
        @param doubt: called after a clean stop, before anything is changed.
        @param zeroed: whether zeros alone stood behind the log's end when somebody
            last began to write there.
        @param listed: tells the topics that the broker knows.
        """
        self._files = files
        self._segments = segments
        self._table = table
        self._words = words
        self._checkpoint = checkpoint
        self._dispatcher = dispatcher
        self._check_crc = check_crc
        self._held: Found | None = None
        self._collected = 0
        self._rot = rot
        self._ends = ends
        self._doubt = doubt
        self._listed = listed
        self.zeroed = zeroed
        self._believed = True
        self._misplaced = OffsetSequence(segments, rot)
        self._clean = False
        self._looked: Unentered | None = None
        self._missing_bytes = 0
        self._known_end = 0
        self._ended = 0
        self.begins_late = False
        self.report: list[str] = []
        self.records = 0
        self.discarded_bytes = 0
        self.last_store_ms = 0

    def run(self, clean: bool) -> None:
        """Set all numbers of the store right.

        @param clean: whether the last stop was a clean one.
        """
        segments = self._segments
        self.report += load_segments(self._files, segments)
        self._load_marks()
        self.report += self._table.load(clean, partial(self._disbelieve, clean))
        if not self._believed:
            self.report.append("All queues are made again.")
        if self._table.lmq_count:
            # Whether messages are still to get into them or not.
            self._dispatcher.multi_dispatch = True
        if not segments.all:
            self._ends.forget()
            self._empty()
            return
        view = self._words.view
        first = segments.all[0].start
        view[MIN_POSITION] = first
        self._miss(clean)
        if clean:
            # What is changed now, and not finished, the next start must not believe.
            self._doubt()
        start = self._bound_clean() if clean and self._believed else -1
        if start < 0 or not self._believed:
            start = self._start_of_unclean() if self._believed else first
            # It has to see where queues begin before they are cut.
            unentered = self._unentered() if start > first else None
            self._bound(start, cut=True)
            if unentered is not None and self._believed:
                start = self._enter_again(unentered, start)
            if start > first and not self._believed:
                start = first
                self._bound(start, cut=True)
        self._dispatcher.offset_sequence = self._misplaced
        believed = self._believed
        scan = self._scan(start, start > first)
        gaps = self._misplaced.gaps or self._dispatcher.gaps
        if start > first and (gaps or self._believed is not believed):
            self.report.append(
                f"Queue entries before position {start} are missing; they are made "
                f"again from position {first}."
            )
            self._disbelieve(clean)
            start = first
            self._bound(start, cut=True)
            scan = self._scan(start, False)
        if self._looked is not None:
            self.report += self._looked.doubts(start)
        self._dispatcher.offset_sequence = None
        if self._known_end > segments.all[-1].end:
            self.report += extend(segments, scan.position, self._known_end)
            if not scan.broken:
                scan.position = segments.all[-1].end
        self._cut(scan)
        self._finish(start, scan.position)
        self._ends.forget()

    def _load_marks(self) -> None:
        """Read what an earlier process has written down; without it all is checked."""
        for load in (self._checkpoint.load, self._ends.load):
            try:
                load()
            except OSError as error:
                self.report.append(
                    f"What the last stop left is not known: {reason(error)}."
                )

    def _disbelieve(self, clean: bool) -> None:
        """Make all queues again: now or, if this start is killed, by the next one."""
        if self._believed:
            self._believed = False
            self._misplaced.doubts = True
            if clean:
                self._doubt()
            self._checkpoint.doubt()

    def _miss(self, clean: bool) -> None:
        """See which segments are missing before and behind those that are there."""
        segments, ends = self._segments, self._ends
        first = segments.all[0].start
        if clean and 0 <= ends.first < first:
            self.begins_late = True
            self.report.append(
                f"The log began at position {ends.first} when the store was stopped; "
                f"now its files begin at {first}."
            )
        known = ends.published if clean else 0
        several = len(segments.folders) + len(segments.read_only) > 1
        last = segments.all[-1]
        if several or (clean and known <= last.start):
            self._bound(1 << 62, cut=False)
            limit = last.end + MAX_MISSING_BEHIND * segments.size
            said = sorted(p for p in self._table.last_positions() if p < limit)
            # Where there is one directory, one entry is more likely to be rotten.
            known = max(known, [-1, -1, *said][-1 if several else -2] + 1)
        self._known_end = known
        if clean and known > last.end:
            # Of the entries that lead there the numbers count.
            self._disbelieve(clean)
        self._missing_bytes = segments.size * sum(map(is_stand_in, segments.all))

    def _empty(self) -> None:
        """No log: queues make no sense."""
        self.zeroed = True
        for queue in self._table.all():
            if queue.has_files:
                self.report.append(
                    f"The files of {queue.topic}/{queue.queue_id} are removed, as "
                    "there is no commit log."
                )
                queue.drop()
        self._segments.roll()

    # The queues.

    def _bound_clean(self) -> int:
        """Believe the queues.

        @return: where the records begin that are in none; -1 if they do not fit the
            log.
        """
        self._bound(self._segments.all[-1].end, cut=False)
        self._clean = True
        last: Queue | None = None
        for queue in self._table.all():
            if last is None or queue.max_position > last.max_position:
                last = queue
        first = self._segments.all[0].start
        if last is None or last.max_position <= first:
            return first
        position, size = last.last_place()
        try:
            found = self._parse(position)
            if b"\0" in found[7]:
                raise Broken("its end was not written")
            if found[1] != size:
                raise Broken(f"its entry says {size} bytes")
        except (Blank, Broken) as error:
            end = last.max_position
            said = (
                f"The last record of {last.topic}/{last.queue_id}, at position "
                f"{position}, cannot be read: {error}. "
            )
            if self._ends.published != end or not self._is_written(end - 1):
                self.report.append(said + "All is checked.")
                return -1
            # The log ended there, and the record's end was written: it is not torn.
            self._rot.note(position, said + "Its place is kept.")
        if last.max_position <= self._ends.published:
            for topic, queue_id in self._ends.queues(self._listed()):
                # One that has lost its directory has no handle yet.
                self._table.get_by_bytes(topic, queue_id)
        queues = self._table.all()
        missing = self._ends.missing(first, last.max_position, queues)
        if missing:
            self.report.append(missing)
            self._disbelieve(True)
            return -1
        if last.max_position <= self._ends.published and self._ends.is_undeleted:
            return last.max_position
        return self._enter_again(self._unentered(), last.max_position)

    def _unentered(self) -> Unentered:
        return Unentered(self._segments, self._table, self._listed())

    def _enter_again(self, unentered: Unentered, end: int) -> int:
        """Where the queues end, or what they should have before that begins."""
        unentered.look(end)
        self._looked = unentered
        self.report += unentered.said()
        if unentered.position < 0:
            return end
        # For the next start, if this one is killed.
        self._checkpoint.doubt()
        self._bound(unentered.position, cut=True)
        return unentered.position

    def _is_written(self, position: int) -> bool:
        """Whether something stands at a position, or may, as it cannot be read."""
        segment = self._segments.find(position)
        if segment is None:
            return False
        found = self._segments.before_bad(segment, 1, position - segment.start)
        return found != (b"\0", "")

    def _parse(self, position: int) -> Found:
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

    def _start_of_unclean(self) -> int:
        """The start of the last segment that began before the checkpoint."""
        for segment in reversed(self._segments.all):
            try:
                found = self._parse(segment.start)
            except (Blank, Broken):
                continue
            if self._checkpoint.has_before(segment.start, found[6]):
                return segment.start
        return self._segments.all[0].start

    def _bound(self, before: int, cut: bool) -> None:
        """Let each queue end with its last entry of a record that starts before a
        position, and begin with the first whose record is there.

        @param cut: remove what follows; of others than batch queues at the end, as it
            says till then what stood where.
        """
        self._clean = False
        self._dispatcher.gaps = 0
        lowest = self._segments.all[0].start
        for queue in self._table.all():
            queue.bound(before, lowest, cut and queue.batch is not None)

    # The log.

    def _scan(self, start: int, again: bool) -> Scan:
        """Enter all records from a position on; they end where the scan stands.

        @param again: whether more of the log can be scanned.
        """
        self.records = self._collected = 0
        self.last_store_ms = 0
        misplaced = self._misplaced
        misplaced.begin()
        misplaced.lost_bytes = self._missing_bytes
        end = self._segments.all[-1].end
        while True:
            scan = Scan(self._segments, start, end, self._check_crc, self._take)
            self._take_all(scan)
            start = self._behind(scan)
            if start < 0:
                break
        misplaced.end(again)
        return scan

    def _behind(self, scan: Scan) -> int:
        """Where the log goes on behind what is broken; -1 if it ends there."""
        position = scan.position
        if not scan.broken or (self._clean and scan.broken == NOTHING):
            return -1
        since_ms = 0 if self.zeroed else self.last_store_ms
        look = Resync(self._segments, since_ms)
        behind = look.next_whole(position, far=scan.is_refused)
        if behind > 0:
            if scan.is_refused:
                self._rot.lose(position, behind)
            self._misplaced.lost_bytes += behind - position
            self._rot.note(
                position,
                f"No record can be read at position {position}: {scan.broken}. The "
                f"log goes on at {behind}; the {behind - position} bytes before are "
                "passed over.",
            )
        return behind

    def _take_all(self, scan: Scan) -> None:
        """Enter the records of a scan, up to where it breaks."""
        self._held = None
        for found in scan:
            self._release()
            self._held = found
            self.records += 1
        held = self._held
        if held is not None and scan.broken == NOTHING and b"\0" in held[7]:
            # No CRC covers the properties. Where the last record has zeros in them, and
            # more zeros follow it, its end was not written.
            scan.position = held[0]
            scan.broken = "its end was not written"
            self.records -= 1
            self._held = None
        self._release()
        self._dispatcher.enter()

    def _release(self) -> None:
        """Another record follows the one that was held back, or may."""
        if self._held is not None:
            self._dispatcher.add(self._held)
            self.last_store_ms = self._held[6]
            self._held = None
            self._count(1)

    def _count(self, collected: int) -> None:
        self._collected += collected
        if self._collected >= ENTRY_BATCH_SIZE:
            self._dispatcher.enter()
            self._collected = 0

    def _take(self, data: bytes, at: int, start: int) -> int:
        """Enter what needs no closer look."""
        if not data.startswith(_MAGIC_V1, at + 4):
            return at
        self._release()
        at, count, store_ms = self._dispatcher.replay(data, at, start, self._check_crc)
        if count:
            self.last_store_ms = store_ms
            self.records += count
            self._count(count)
        return at

    def _cut(self, scan: Scan) -> None:
        """Give up what stands behind the end; see L{LogEnd}."""
        self._ended = scan.position
        log_end = LogEnd(self._files, self._segments, self.zeroed)
        scan.position = log_end.cut(scan, self._clean)
        if scan.is_refused:
            self._rot.lose(self._ended, scan.position)
        self.zeroed = log_end.zeroed
        self.report += log_end.report
        self.discarded_bytes += log_end.discarded_bytes

    def _keep_number(self, queue: Queue, end: int) -> None:
        """Let an empty queue, all of whose records are gone, go on where it was.

        @param end: where the log ends.
        """
        files = queue.files.all
        number = files[0].start // SIZE if files else 0
        if self._ends.published in (self._ended, end):
            number = max(number, self._ends.end_of(queue.topic, queue.queue_id))
        if queue.min_offset == queue.max_offset < number:
            queue.go_on_at(number)

    def _finish(self, start: int, end: int) -> None:
        view = self._words.view
        for queue in self._table.all():
            if not self._clean:
                queue.doubt_names()
            if not self._clean and queue.batch is None:
                keep_places(queue, end)
                self._keep_number(queue, end)
                queue.files.cut(queue.max_offset * SIZE)
            view[queue.slot + NEXT] = queue.trusted_from = queue.max_offset
        view[PUBLISHED] = view[COMMITTED] = end
        view[FLUSHED] = start
        view[DISPATCHED] = end

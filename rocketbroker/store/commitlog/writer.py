# -*- test-case-name: tests.store.commitlog.test_writer -*-
"""The writer of the commit log, which holds all messages in the order they came in.

An append has four steps, and each is a function: the drafts are complete when they come
(parse); under the append lock each is given its place and queue offset (reserve); the
records are encoded and written, one C{pwrite} for each segment touched (fill); and one
word makes them exist (publish). Other processes may append to the same log, under the
same lock (L{rocketbroker.store.sharing}).

An append that fails is undone under the same lock: next offsets go back, zeros take the
place of bytes that were written, and the published position has not moved.

C{docs/facts/store.md} 4 to 6.
"""

from __future__ import annotations

import contextlib
import struct
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple, final

from rocketbroker.codec.append import encode as encode_natively
from rocketbroker.codec.append import reserve
from rocketbroker.codec.build import COMPILED
from rocketbroker.files.blocks import is_bad
from rocketbroker.records.record_head import MAGIC_BLANK
from rocketbroker.store.append_lock import MAX_WAIT_SECONDS, AppendLock
from rocketbroker.store.commitlog.batch_records import advance, measure, retreat
from rocketbroker.store.commitlog.encoder import (
    FILLER,
    FILLER_BYTES,
    HOST_V4,
    HOST_V6,
    MAX_PROPERTIES,
    encode,
)
from rocketbroker.store.commitlog.preallocation import Preallocation
from rocketbroker.store.commitlog.received import ReceivedRecords
from rocketbroker.store.commitlog.record_crc import encode_with_crc, make_room_for_crc
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.write_backoff import WriteBackoff
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import (
    CREATE_MAPPED_FILE_FAILED,
    MESSAGE_ILLEGAL,
    OS_PAGE_CACHE_BUSY,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    SERVICE_NOT_AVAILABLE,
    UNKNOWN_ERROR,
    Draft,
    Placed,
)
from rocketbroker.store.running_flags import DISK_FULL, RunningFlags
from rocketbroker.store.shared_positions import (
    APPENDING,
    DISPATCHED,
    NEXT,
    OWNER_APPENDS,
    PUBLISHED,
    Positions,
)

#: A record may be so much larger than the largest body (C{docs/facts/store.md} 4.1).
BESIDE_BODY: Final = 64 << 10

#: Not more is joined and written at once, so that a turn of large bodies does not take
#: as much memory again.
MAX_RUN: Final = 4 << 20

#: Records are encoded as one if they are smaller than that, on average: larger bodies
#: would be copied twice.
SMALL: Final = 2048

#: How many appends are remembered for the dispatch; one that falls further behind reads
#: the log.
MAX_HINTS: Final = 4096

#: And for how many bytes of the log, as they keep the bodies in memory.
MAX_HINTED: Final = 64 << 20


_SLOT: Final = attrgetter("queue.slot")


def by_queue(drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Drafts with those of one queue behind each other, in the order they came.

    Among messages of different queues that came together there is no order that anybody
    could know; and a later reader of a queue finds its records in few extents instead
    of one for each, which halves the cost of a pull.
    """
    return drafts if len(drafts) == 1 else sorted(drafts, key=_SLOT)


def _by_queue_with_crc(drafts: Sequence[Draft]) -> Sequence[Draft]:
    """The same, each record with room for a CRC of its own."""
    make_room_for_crc(drafts)
    return by_queue(drafts)


@final
class SegmentRun:
    """Drafts that stand one after the other in one segment.

    @ivar filler: how many bytes behind them are a filler, 0 for none.
    """

    __slots__ = ("drafts", "filler", "segment", "start")

    def __init__(self, segment: Segment, start: int) -> None:
        self.segment = segment
        self.start = start
        self.drafts: list[Draft] = []
        self.filler = 0


@final
class Hint:
    """The drafts of one append, kept so that the dispatch need not read its records.

    @ivar received: records of a master, where there are no drafts; else None.
    """

    __slots__ = ("drafts", "end", "received", "start", "store_ms")

    def __init__(
        self,
        start: int,
        end: int,
        store_ms: int,
        drafts: list[Draft],
        received: ReceivedRecords | None = None,
    ) -> None:
        self.start = start
        self.end = end
        self.store_ms = store_ms
        self.drafts = drafts
        self.received = received


class RecordForm(NamedTuple):
    """The form of the records that a log appends.

    @ivar store_host: this broker's address, as records have it.
    @ivar max_body: the bytes of the longest body.
    @ivar has_crc: whether each record ends with a CRC of its own.
    """

    store_host: bytes
    max_body: int
    has_crc: bool


@final
class CommitLog:
    """The writing side of the log.

    @ivar preallocation: makes room ahead of it.
    @ivar append_lock: held by whoever appends.
    @ivar hints: of appends that are not dispatched yet.
    @ivar append_failures: how many drafts were refused or failed.
    @ivar appended_messages: how many messages were published.
    @ivar appended_bytes: how many bytes of the log they are.
    @ivar published_ms: the store time of the last record published.
    """

    def __init__(
        self,
        segments: Segments,
        positions: Positions,
        flags: RunningFlags,
        append_lock: AppendLock,
        wall_ms: Callable[[], int],
        form: RecordForm,
        preallocation: Preallocation,
        mark: int = OWNER_APPENDS,
    ) -> None:
        """
        @param mark: what the word APPENDING is while this process appends.
        """
        assert len(form.store_host) in (HOST_V4, HOST_V6), form.store_host
        self.segments = segments
        self.preallocation = preallocation
        self.hints: deque[Hint] = deque()
        self.append_failures = 0
        self.appended_messages = 0
        self.appended_bytes = 0
        self.published_ms = 0
        self._positions = positions
        self._mark = mark
        self._flags = flags
        self.append_lock = append_lock
        self._wall_ms = wall_ms
        self._store_host = form.store_host
        self.limit(form.max_body)
        # Decided here once, so that an append need not.
        self._encode = encode_with_crc if form.has_crc else encode
        self._arrange = _by_queue_with_crc if form.has_crc else by_queue
        self._is_native = COMPILED and not form.has_crc
        self._backoff = WriteBackoff(flags, wall_ms, self.make_room)
        self._in_batches = 0
        self._wants_segment = False
        self._without_hint = False

    def limit(self, max_body: int) -> None:
        """Append no larger bodies from now on."""
        self._max_body = max_body
        most = self.segments.size - FILLER_BYTES
        self._max_record = min(max_body + BESIDE_BODY, most)
        self._limits = max_body, self._max_record, most

    # Append.

    def append(self, drafts: Sequence[Draft]) -> None:
        """See L{rocketbroker.store.interfaces.IStore.append}."""
        if not self.append_lock.acquire(True, MAX_WAIT_SECONDS):
            self._fail(drafts, OS_PAGE_CACHE_BUSY)
            return
        try:
            store_ms = self._wall_ms()
            if self._flags.bits and not self._backoff.allows(store_ms):
                self._fail(drafts, SERVICE_NOT_AVAILABLE)
                return
            runs = self._reserve(self._arrange(drafts))
            if not runs:
                return
            try:
                self._fill(runs, store_ms)
            except OSError as error:
                self._undo(runs, SERVICE_NOT_AVAILABLE)
                self.refuse("the commit log {} cannot be written", error)
                self._leave_bad_block()
            except struct.error:
                self._undo(runs, UNKNOWN_ERROR)
                self._append_singly(runs, store_ms)
            else:
                self._publish(runs, store_ms)
        finally:
            self.append_lock.release()

    def _reserve(self, drafts: Sequence[Draft]) -> list[SegmentRun]:
        """Give each draft its place in the log and its queue offset, or a status."""
        view = self._positions.view
        position: int = view[PUBLISHED]
        segment = self.writable(position)
        if segment is None:
            self._fail(drafts, self._no_segment())
            return []
        limit = segment.end - FILLER_BYTES
        run = SegmentRun(segment, position)
        runs = [run]
        max_body, max_record = self._max_body, self._max_record
        view[APPENDING] = self._mark
        # Messages of batches beyond the first of each.
        self._in_batches = 0
        if COMPILED:
            limits = limit, max_body, max_record
            position = reserve(list(drafts), run.drafts, view, NEXT, position, *limits)
            drafts = drafts[len(run.drafts) :]
        for draft in drafts:
            queue = draft.queue
            assert type(queue) is Queue
            if draft.parts is None and queue.usable:
                body = len(draft.body)
                properties = len(draft.properties)
                size = queue.record_bytes + body + properties
                if len(draft.born_host) != HOST_V4:
                    size += HOST_V6 - HOST_V4
                if properties > MAX_PROPERTIES:
                    self._fail((draft,), PROPERTIES_SIZE_EXCEEDED)
                    continue
                if body > max_body or size > max_record:
                    self._fail((draft,), MESSAGE_ILLEGAL)
                    continue
                count = 1
            else:
                status, size, count = measure(draft, queue, self._limits)
                if status != PUT_OK:
                    self._fail((draft,), status)
                    continue
                if type(draft.parts) is Placed or not queue.usable:
                    self._without_hint = True
            if position + size > limit:
                segment = self.writable(run.segment.end)
                if segment is None:
                    self._fail((draft,), self._no_segment())
                    continue
                run.filler = segment.start - position
                position = segment.start
                limit = segment.end - FILLER_BYTES
                run = SegmentRun(segment, position)
                runs.append(run)
            draft.position = position
            if count != 1 or draft.parts is not None:
                _place_parts(draft, position)
                self._in_batches += count - 1
            draft.end = position = position + size
            draft.status = PUT_OK
            kind = draft.sys_flag & 12
            if kind == 0 or kind == 8:
                at = queue.slot + NEXT
                draft.queue_offset = offset = view[at]
                view[at] = offset + count
            else:
                draft.queue_offset = 0  # Prepared and rolled back: in no queue.
            run.drafts.append(draft)
        if len(runs) > 1 or run.drafts:
            return runs
        view[APPENDING] = 0
        return []

    def writable(self, position: int) -> Segment | None:
        """The segment that is to hold C{position}; None if there is no room for it.

        As a rule it is the last one. After an append that failed when it had rolled, a
        segment stands behind it already.
        """
        last = self.segments.all[-1]
        if last.start <= position < last.end:
            return last
        if position < last.start:
            return self.segments.find(position)
        try:
            return self.segments.roll()
        except OSError as error:
            self._wants_segment = True
            self.refuse("no commit log segment can be made in {}", error)
            return None

    def _no_segment(self) -> int:
        """The status of drafts that need a segment that cannot be made.

        RocketMQ has one code for all reasons; here a full disk has its own.
        """
        full = self._flags.has(DISK_FULL)
        return SERVICE_NOT_AVAILABLE if full else CREATE_MAPPED_FILE_FAILED

    def _fill(self, runs: list[SegmentRun], store_ms: int) -> None:
        """Encode and write the reserved records."""
        for run in runs:
            start = run.segment.start
            position = run.start
            for drafts in _chunks(run):
                content = self._content(drafts, store_ms)
                run.segment.file.pwrite(content, position - start)
                position += len(content)
            if run.filler:
                filler = FILLER.pack(run.filler, MAGIC_BLANK)
                run.segment.file.pwrite(filler, position - start)

    def _content(self, drafts: Sequence[Draft], store_ms: int) -> bytes:
        """The bytes of records that stand one behind the other."""
        if self._is_native and len(drafts) > 0:
            size = drafts[-1].end - drafts[0].position
            if size < SMALL * (len(drafts) + self._in_batches):
                content = encode_natively(list(drafts), store_ms, self._store_host)
                if content is not None:
                    return content
        return b"".join(self._encode(drafts, store_ms, self._store_host))

    def _publish(self, runs: list[SegmentRun], store_ms: int) -> None:
        """Publish the written records: from now on they exist."""
        drafts = runs[0].drafts
        if len(runs) > 1:
            drafts = [draft for run in runs for draft in run.drafts]
            self.appended_bytes -= sum(run.filler for run in runs)
        last = runs[-1]
        end = last.drafts[-1].end if last.drafts else last.start
        view = self._positions.view
        hint = Hint(view[PUBLISHED], end, store_ms, drafts)
        view[PUBLISHED] = end
        view[APPENDING] = 0
        self.appended_messages += len(drafts) + self._in_batches
        self.appended_bytes += end - runs[0].start
        self.published_ms = store_ms
        if self._without_hint:
            # It has placed drafts, or some for batch queues. They are rare, and with
            # rules of their own: the dispatch reads them from the log.
            self._without_hint = False
        else:
            self.keep(hint)

    def keep(self, hint: Hint) -> None:
        """Keep the hint of an append for the dispatch, unless that is far behind."""
        view = self._positions.view
        if len(self.hints) < MAX_HINTS and hint.end - view[DISPATCHED] <= MAX_HINTED:
            self.hints.append(hint)

    def _undo(self, runs: list[SegmentRun], status: int) -> None:
        """Undo the reservation, and mark the drafts."""
        view = self._positions.view
        for run in reversed(runs):
            for draft in reversed(run.drafts):
                queue = draft.queue
                assert type(queue) is Queue
                if draft.sys_flag & 12 in (0, 8):
                    view[queue.slot + NEXT] = draft.queue_offset
                if type(draft.parts) is Placed:
                    retreat(draft.parts)
            self._fail(run.drafts, status)
        for run in runs:
            self.cut_behind(run.segment)
        view[APPENDING] = 0

    def _leave_bad_block(self) -> None:
        """Go on with the next segment, if the log ends in a block that the disk cannot
        read: no part of it can be written, and all of it would be records.

        Bytes behind such a block were cut away when the append was undone.
        """
        view = self._positions.view
        published: int = view[PUBLISHED]
        segment = self.segments.find(published)
        # If not even the first record can be written, it is not a block that is bad.
        if segment is None or published == segment.start:
            return
        with contextlib.suppress(OSError):
            if is_bad(segment.file, 1, published - segment.start):
                view[PUBLISHED] = segment.end

    def _append_singly(self, runs: list[SegmentRun], store_ms: int) -> None:
        """Append again one by one, as one of them cannot be encoded."""
        for draft in [draft for run in runs for draft in run.drafts]:
            self.append_failures -= 1
            single = self._reserve((draft,))
            if not single:
                continue
            try:
                self._fill(single, store_ms)
            except OSError as error:
                self._undo(single, SERVICE_NOT_AVAILABLE)
                self.refuse("the commit log {} cannot be written", error)
            except struct.error:
                self._undo(single, MESSAGE_ILLEGAL)
            else:
                self._publish(single, store_ms)

    def _fail(self, drafts: Sequence[Draft], status: int) -> None:
        for draft in drafts:
            draft.status = status
        self.append_failures += len(drafts)

    def may_append(self, now_ms: int) -> bool:
        """Whether the disk takes something now; this may try it again."""
        return self._backoff.allows(now_ms)

    def cut_behind(self, segment: Segment) -> None:
        """Let zeros follow the published position, where an append has failed.

        If this fails too, later appends overwrite what is there, or recovery reports
        it.
        """
        published = self._positions.view[PUBLISHED]
        with contextlib.suppress(OSError):
            segment.cut(max(published, segment.start))

    # Room.

    def refuse(self, text: str, error: OSError) -> None:
        """Let nothing be appended before there is room again.

        @param text: the action that failed, C{{}} for the directory.
        """
        position = self._positions.view[PUBLISHED]
        if self._wants_segment:
            position = self.segments.all[-1].end
        self._backoff.begin(
            self.segments.describe_refusal(position, text, error), error
        )

    def make_room(self, alone: bool = False) -> bool:
        """See L{Preallocation.make}; then appends are taken again."""
        done = self.preallocation.make(self._wants_segment, alone)
        self._wants_segment = False
        self._backoff.end()
        return done


def _place_parts(draft: Draft, position: int) -> None:
    """Turn the sizes of a batch's records into their positions."""
    if type(draft.parts) is Placed:
        advance(draft.parts)
        return
    sizes = draft.positions
    draft.positions = list(accumulate(sizes[:-1], initial=position))


def _chunks(run: SegmentRun) -> list[list[Draft]]:
    """The drafts of a run, so many together as are written at once."""
    drafts = run.drafts
    if not drafts:
        return []
    if drafts[-1].end - run.start <= MAX_RUN:
        return [drafts]
    chunks: list[list[Draft]] = []
    start = run.start
    chunk: list[Draft] = []
    for draft in drafts:
        if chunk and draft.end - start > MAX_RUN:
            chunks.append(chunk)
            chunk = []
            start = draft.position
        chunk.append(draft)
    chunks.append(chunk)
    return chunks

# -*- test-case-name: tests.store.dispatch.test_dispatcher -*-
"""The dispatcher: adds the entries of new records in the log to the consume queues.

The appends of this process are remembered as hints, so that nothing is read again; the
log is read only for records from before the start, for those of other processes, and
when the dispatch has fallen so far behind that hints were not kept. A step writes once
for each queue.

In the queues of the topic of delayed messages the tag code is the time of delivery: the
store time and the delay of the level in the properties.

C{docs/facts/store.md} 7.2, 13 and 18.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, final

from rocketbroker.codec.append import enter
from rocketbroker.codec.build import COMPILED
from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.records.names import SCHEDULE_TOPIC_BYTES
from rocketbroker.records.queueunits import BatchUnit
from rocketbroker.records.record_head import RecordHead
from rocketbroker.records.sysflags import INNER_BATCH
from rocketbroker.store.commitlog.batch_records import LMQ_MARK, lmqs_of, place_of
from rocketbroker.store.commitlog.received import (
    ReceivedRecords,
    heads_of,
    whole_records,
)
from rocketbroker.store.commitlog.resync import Resync
from rocketbroker.store.commitlog.scanner import Scan, tag_code_of
from rocketbroker.store.commitlog.writer import CommitLog, Hint
from rocketbroker.store.consumequeue.extension import BitMaps
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.dispatch.offset_sequence import OffsetSequence
from rocketbroker.store.dispatch.replaying import replay, take_run
from rocketbroker.store.interfaces import Arrival, Draft, Placed
from rocketbroker.store.running_flags import WRITE_LOGICS_QUEUE_ERROR, RunningFlags
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    FLUSHED,
    PUBLISHED,
    SharedPositions,
)

#: The name under which the dispatch holds running flags.
_BY: Final = "dispatch"

#: The delay of a level without a duration of its own, in ms.
UNKNOWN_LEVEL_MS: Final = 1000

#: The last time that an entry can hold; a corrupt store time may be near it.
LAST_MS: Final = (1 << 63) - 1

#: So much of the log is read again at once: some thousand records of other processes.
REREAD_BYTES: Final = 512 << 10

#: So many entries a start collects before they are written.
ENTRY_BATCH_SIZE: Final = 200_000

_LEVEL: Final = re.compile(rb"(?:\A|\x02)DELAY\x01(\d{1,9})(?=\x02|\Z)")


@final
class Dispatcher:
    """Enters published records into their queues.

    @ivar extends: whether entries get a unit in their queue's extension.
    @ivar rereads: whether other processes append, whose records are read from the log.
    @ivar multi_dispatch: whether messages get entries in LMQs.
    @ivar bit_maps: gives the bit maps of these units, if a plug-in does.
    @ivar dispatched_ms: the store time of the last record entered.
    @ivar offset_sequence: decides, during a start, on records whose queue offset is not
        the next; else they are entered at their own offset.
    """

    def __init__(
        self,
        log: CommitLog,
        positions: SharedPositions,
        flags: RunningFlags,
        find_queue: Callable[[bytes, int], Queue | None],
        only_flushed: bool,
        levels: list[int],
        hand_over: Callable[[Hint], None],
        describe_refusal: Callable[[str, OSError], str],
        note: Callable[[int, str], None],
    ) -> None:
        """
        @param find_queue: the queue of a topic, as bytes, and a queue id.
        @param levels: the delay of each level in ms.
        @param hand_over: called with each append that is dispatched.
        @param describe_refusal: makes a sentence of an action that failed and its
            error.
        @param note: called with each position of the log where no record can be read,
            and a sentence about it.
        """
        self._note = note
        self._hand_over = hand_over
        self._levels = levels
        self._describe_refusal = describe_refusal
        self._log = log
        self._positions = positions
        self._flags = flags
        self._find_queue = find_queue
        self._limit_word = FLUSHED if only_flushed else PUBLISHED
        self._touched: list[Queue] = []
        self._known: dict[tuple[bytes, int], Queue] = {}
        self.extends = False
        self.rereads = False
        self.multi_dispatch = False
        self.bit_maps: BitMaps | None = None
        self.dispatched_ms = 0
        self.offset_sequence: OffsetSequence | None = None

    def dispatch(self, max_records: int) -> list[Arrival]:
        """See L{rocketbroker.store.interfaces.IStore.dispatch}.

        @raise OSError: the disk refused; the same is tried again by the next call.
        """
        view = self._positions.view
        limit: int = view[self._limit_word]
        position: int = view[DISPATCHED]
        if position >= limit:
            return []
        hints = self._log.hints
        if self.extends:
            # Bit maps need the properties of each record.
            hints.clear()
        while hints and hints[0].start < position:
            # The log was read that far, when hints were missing.
            hints.popleft()
        if self.rereads and not self.extends:
            self._reread(position, limit)
        dispatched_ms = self.dispatched_ms
        count = 0
        used = 0
        is_received = bool(hints) and hints[0].received is not None
        for hint in hints:
            if hint.start != position or hint.end > limit or count >= max_records:
                break
            if (hint.received is not None) is not is_received:
                break
            if hint.received is None:
                collect(hint.drafts, self._touched)
                count += len(hint.drafts)
            else:
                self._take(hint.received)
                count += hint.received.count
            position = hint.end
            dispatched_ms = hint.store_ms
            used += 1
        try:
            if not used:
                end = min(limit, hints[0].start) if hints else limit
                position, dispatched_ms = self._read(position, end, max_records)
            elif not is_received:
                self._set_times(used)
            arrivals = self.enter()
        except OSError as error:
            self._forget()
            self._refuse(error)
            raise
        if self._flags.bits & WRITE_LOGICS_QUEUE_ERROR:
            self._flags.set(WRITE_LOGICS_QUEUE_ERROR, False, by=_BY)
        for _ in range(used):
            self._hand_over(hints.popleft())
        self.dispatched_ms = dispatched_ms
        self._positions.view[DISPATCHED] = position
        return arrivals

    def _reread(self, position: int, limit: int) -> None:
        """Make a hint of records that another process has appended at a position, if
        there are any: as of those of a master, for which it is made, too."""
        hints, segments = self._log.hints, self._log.segments
        end = min(limit, hints[0].start) if hints else limit
        segment = segments.find(position)
        if position >= end or segment is None:
            return
        size = min(end - position, REREAD_BYTES)
        try:
            # Through a mapping all of the log would count as memory of this process.
            data = segments.read(position, size, cold=True)
            received = whole_records(data, position, segment.end)
        except (OSError, StoreError):
            # Whatever it is, it is looked at again, and reported.
            return
        if received.size:
            ms = received.runs[-1].store_ms if received.runs else self.dispatched_ms
            end = position + received.size
            hints.appendleft(Hint(position, end, ms, [], received))

    def _take(self, received: ReceivedRecords) -> None:
        """Collect records of a master."""
        for run in received.runs:
            if not take_run(run, self._known, self._touched, self.multi_dispatch):
                for found in heads_of(run):
                    self.add(found)

    def _set_times(self, used: int) -> None:
        """Give delayed messages their times, now that their store times are known.

        Here and not where each entry is made: nearly all steps have none of them.

        @param used: how many hints were collected.
        """
        delayed = [q for q in self._touched if q.topic_bytes == SCHEDULE_TOPIC_BYTES]
        if not delayed:
            return
        for queue in delayed:
            queue.pending = []
            queue.pending_codes = []
        for hint in islice(self._log.hints, used):
            drafts = [draft for draft in hint.drafts if draft.queue in delayed]
            for draft in drafts:
                ms = delivery_ms(draft.properties, hint.store_ms, self._levels)
                if ms is not None:
                    draft.tag_code = ms
            collect(drafts, [])

    def _refuse(self, error: OSError) -> None:
        """Refuse appends, as their messages could not be read."""
        reason = self._describe_refusal(
            "a consume queue in {} cannot be written", error
        )
        self._flags.set(WRITE_LOGICS_QUEUE_ERROR, True, reason, _BY)

    def _read(self, start: int, end: int, max_records: int) -> tuple[int, int]:
        """Collect from the log.

        @return: how far, and the store time of the last record.
        """
        scan = Scan(self._log.segments, start, end, check_crc=False)
        store_ms = self.dispatched_ms
        for count, found in enumerate(scan, 1):
            self.add(found)
            store_ms = found.store_ms
            if count >= max_records:
                break
        if scan.broken:
            segments = self._log.segments
            behind = Resync(segments).next_or_end(scan.position)
            behind = end if behind < 0 else min(behind, end)
            self._note(
                scan.position,
                f"No record can be read at position {scan.position}: {scan.broken}. "
                f"The bytes from there to {behind} are not dispatched.",
            )
            return behind, store_ms
        return min(scan.position, end), store_ms

    def know(self, queues: Iterable[Queue]) -> None:
        """Let L{replay} take records of queues from the first one on; else the first
        one of each queue is looked at alone, which takes ten times as long."""
        found = (queue for queue in queues if queue.storable)
        self._known.update({(each.topic_bytes, each.queue_id): each for each in found})

    def add(self, found: RecordHead) -> None:
        """Collect the entry of one record that was read."""
        position, size, topic, queue_id, offset, sys_flag, _, properties = found
        if sys_flag & 12 in (4, 12):
            # Half and rolled back messages stand in no queue.
            return
        if self.multi_dispatch and LMQ_MARK in properties:
            self._add_lmqs(found)
        queue = self._known.get((topic, queue_id))
        if queue is None:
            queue = self._find_queue(topic, queue_id)
            if queue is None:
                return
            self._known[topic, queue_id] = queue
        if position < queue.from_position or position + size <= queue.max_position:
            return
        if sys_flag & INNER_BATCH or queue.batch is not None:
            self._add_batch(queue, found)
            return
        pending = queue.pending
        expected = queue.max_offset
        if pending:
            expected = queue.pending_offset + len(pending)
        if offset != expected and self.offset_sequence is not None:
            for at, item in self.offset_sequence.decide(queue, found, expected):
                self.place(queue, at, item)
            return
        if not pending:
            self._touched.append(queue)
        elif offset != expected:
            self._write(queue)
            pending.clear()
        if not pending:
            queue.pending_offset = offset
        if topic == SCHEDULE_TOPIC_BYTES:
            code = self._code(found)
        else:
            code = tag_code_of(properties) if b"TAGS\x01" in properties else 0
        if self.extends:
            self._add_unit(queue, code, found)
        pending.append(ENTRY.pack(position, size, code))
        queue.pending_codes.append(code)
        queue.pending_end = position + size

    def _add_batch(self, queue: Queue, found: RecordHead) -> None:
        """Collect the unit of an inner batch, or of a message alone in a batch queue.

        RocketMQ, too, stores single messages of such a topic, and makes units of one
        message of them. A batch fits into no other queue.
        """
        position, size, _, _, _, _, store_ms, properties = found
        batch, place = queue.batch, place_of(found)
        if batch is None or place is None:
            return
        base, messages = place
        expected = batch.pending_next if batch.pending else queue.max_offset
        sequence = self.offset_sequence if base != expected else None
        if sequence and not sequence.takes_unit(queue, found, base, expected):
            return
        if batch.pending and base < expected:
            batch.enter()
            batch.pending = []
        if not batch.pending:
            if queue not in self._touched:
                self._touched.append(queue)
            batch.pending_base = base
        code = tag_code_of(properties)
        unit = BatchUnit(position, size, code, store_ms, base, messages)
        batch.pending.append(unit.encode())
        batch.pending_next = unit.end
        queue.pending_codes.append(code)
        queue.pending_end = position + size

    def _add_lmqs(self, found: RecordHead) -> None:
        """Collect the entries of a message in its LMQs.

        A queue is never cut because of an offset in a message's properties: a smaller
        one is passed over.
        """
        position, size, topic, _, _, sys_flag, _, properties = found
        if sys_flag & INNER_BATCH:
            return
        for name, offset in lmqs_of(topic, properties):
            queue = self._find_queue(name, 0)
            if queue is None or queue.batch is not None:
                continue
            if position < queue.from_position or position + size <= queue.max_position:
                continue
            pending = queue.pending
            expected = queue.max_offset
            if pending:
                expected = queue.pending_offset + len(pending)
            if offset < expected:
                continue
            if offset > expected:
                if self.offset_sequence is not None:
                    self.offset_sequence.gaps += 1
                if pending:
                    self._write(queue)
                    pending.clear()
            if not pending:
                if queue not in self._touched:
                    self._touched.append(queue)
                queue.pending_offset = offset
            code = tag_code_of(properties)
            pending.append(ENTRY.pack(position, size, code))
            queue.pending_codes.append(code)
            queue.pending_end = position + size

    def replay(
        self, data: bytes, at: int, start: int, check_crc: int
    ) -> tuple[int, int, int]:
        """Collect the entries of many records; see L{replaying.replay}."""
        if self.extends or self.multi_dispatch:
            return at, 0, 0
        return replay(data, at, start, check_crc, self._known, self._touched)

    def _code(self, found: RecordHead) -> int:
        _, _, topic, _, _, _, ms, properties = found
        code = None
        if topic == SCHEDULE_TOPIC_BYTES:
            code = delivery_ms(properties, ms, self._levels)
        return tag_code_of(properties) if code is None else code

    def place(self, queue: Queue, offset: int, item: RecordHead | bytes) -> None:
        """Collect an entry, or that of a record, for a certain queue offset."""
        pending = queue.pending
        is_full = len(pending) >= ENTRY_BATCH_SIZE
        if pending and (is_full or offset != queue.pending_offset + len(pending)):
            if offset > queue.pending_offset:
                self._write(queue)
            elif queue.extension is not None:
                queue.extension.pending.clear()
            pending.clear()
        if not pending:
            if queue not in self._touched:
                self._touched.append(queue)
            queue.pending_offset = offset
            if offset < queue.max_offset:
                # The topic began again. Its files are not cut yet: they may have the
                # entries of the records that follow.
                queue.set_offsets(min(offset, queue.min_offset), offset)
        if isinstance(item, bytes):
            position, size, code = ENTRY.unpack(item)
            size = 0 if size == FILLED_SIZE else size
            pending.append(item)
        else:
            position, size, code = item[0], item[1], self._code(item)
            self._add_unit(queue, code, item)
            pending.append(ENTRY.pack(position, size, code))
        queue.pending_codes.append(code)
        queue.pending_end = position + size

    def _add_unit(self, queue: Queue, code: int, found: RecordHead) -> None:
        """Collect the unit of a record in the extension of its queue."""
        if self.extends and queue.extension is not None:
            _, _, topic, _, _, _, ms, properties = found
            bit_map = self.bit_maps(topic, properties) if self.bit_maps else b""
            queue.extension.add(len(queue.pending), code, ms, bit_map)

    def _write(self, queue: Queue) -> None:
        if queue.extension is not None:
            queue.pending[:] = queue.extension.enter(queue.pending)
        queue.enter(self.offset_sequence is not None and _are_there(queue))

    def enter(self) -> list[Arrival]:
        """Write the collected entries into their queues.

        @raise OSError: the disk refused.
        """
        arrivals = []
        for queue in self._touched:
            if queue.pending:
                self._write(queue)
            elif queue.batch is not None:
                queue.batch.enter()
                queue.max_position = queue.pending_end
            arrivals.append(Arrival(queue, queue.pending_codes))
        self._forget()
        return arrivals

    def _forget(self) -> None:
        for queue in self._touched:
            queue.pending = []
            queue.pending_codes = []
            if queue.batch is not None:
                queue.batch.pending = []
            if queue.extension is not None:
                queue.extension.pending.clear()
        self._touched.clear()


def _are_there(queue: Queue) -> bool:
    """Whether the files have the pending entries, from before a start."""
    blob = b"".join(queue.pending)
    start = queue.pending_offset * SIZE
    if queue.files.read(start, len(blob)) != blob:
        return False
    queue.files.ends_at(start + len(blob))
    return True


def collect(drafts: list[Draft], touched: list[Queue]) -> None:
    """Make the entries of drafts that were appended, and note their queues."""
    if COMPILED:
        enter(drafts, touched)
        return
    pack = ENTRY.pack
    for draft in drafts:
        queue = draft.queue
        assert type(queue) is Queue
        kind = draft.sys_flag & 12
        position = draft.position
        if (kind != 0 and kind != 8) or position < queue.from_position:
            continue
        pending = queue.pending
        if not pending:
            touched.append(queue)
            queue.pending_offset = draft.queue_offset
        queue.pending_end = end = draft.end
        if draft.parts is None:
            code = draft.tag_code
            pending.append(pack(position, end - position, code))
            queue.pending_codes.append(code)
            continue
        assert type(draft.parts) is not Placed, "those are read from the log"
        ends = (*draft.positions[1:], end)
        for part, start, stop in zip(draft.parts, draft.positions, ends, strict=True):
            code = part[3]
            pending.append(pack(start, stop - start, code))
            queue.pending_codes.append(code)


def delivery_ms(properties: bytes, store_ms: int, levels: list[int]) -> int | None:
    """The time of a message's delivery; None if it is not a delayed one."""
    found = _LEVEL.findall(properties)
    level = int(found[-1]) if found else 0
    if level == 0:
        return None
    delay_ms = levels[min(level, len(levels)) - 1] if levels else UNKNOWN_LEVEL_MS
    return min(store_ms + delay_ms, LAST_MS)

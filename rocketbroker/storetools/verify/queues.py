# -*- test-case-name: tests.storetools.verify.test_log -*-
"""A check of the queues of a store against its log, during the walk.

Ordinary records come many at once (L{rocketbroker.store.commitlog.ordinary}): what
their entries have to be is compared with what stands in the queue by one comparison of
bytes. Where that finds a difference, the same records come once more, one by one.

docs/facts/store.md 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.queueunits import BatchUnit
from rocketbroker.records.record_head import LEAST_SIZE, RecordHead
from rocketbroker.records.sysflags import INNER_BATCH, takes_queue_offset
from rocketbroker.store.commitlog.batch_records import batch_of, lmqs_of
from rocketbroker.store.commitlog.ordinary import QueueRun, collect
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse, tag_code_of
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.queue import is_usable
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.batch_match import BatchMatch
from rocketbroker.storetools.verify.lookup import segment_at
from rocketbroker.storetools.verify.queue_match import Entry, QueueMatch, TagCodes
from rocketbroker.storetools.verify.report import Fault, Report

#: Queues whose entries point to records of other topics.
SHARED_PREFIX: Final = "%LMQ%"

#: The longest record that an entry is believed, as the longest message that can be
#: configured is below it.
MAX_RECORD: Final = 64 << 20

#: So many records of one queue that have no entry are reported singly, and so many
#: units of a batch queue that are wrong.
MAX_REPORTED: Final = 20_000

#: So much is shown of what a record says to be its topic, if none can be called so: it
#: may be tens of thousands of characters.
MAX_SHOWN: Final = 50


@final
class QueueVerification:
    """All queues.

    @ivar unlisted: how many records of a store not stopped cleanly have no entry yet.
    @ivar orphans: how many records belong to queues that do not exist (any more).
    @ivar lost_batches: topics that have lost a batch queue, and have no other kind.
    """

    def __init__(
        self,
        reader: StoreReader,
        report: Report,
        is_lost: Callable[[str, int], bool],
    ) -> None:
        """
        @param report: is given each fault when it is found.
        @param is_lost: whether a queue that has no directory had messages; asked when
            the walk is over.
        """
        self._reader = reader
        self._report_fault = report
        self._is_lost = is_lost
        self._queues: dict[tuple[bytes, int], QueueMatch] = {}
        self._batches: dict[tuple[bytes, int], BatchMatch] = {}
        self.unlisted = 0
        self.orphans = 0
        self.lost_batches: set[str] = set()

    def open(self) -> None:
        """Find all queues, and how far each goes."""
        for topic in self._reader.topics():
            for queue_id in self._reader.queues(topic):
                self._matching(topic.encode(), queue_id)
        for topic in self._reader.topics(BATCHES):
            for queue_id in self._reader.queues(topic, BATCHES):
                self._batch_matching(topic.encode(), queue_id)

    def _matching(self, topic: bytes, queue_id: int) -> QueueMatch:
        matching = self._queues.get((topic, queue_id))
        if matching is None:
            matching = QueueMatch(self._reader, _name(topic), queue_id)
            self._queues[topic, queue_id] = matching
        return matching

    def _batch_matching(self, topic: bytes, queue_id: int) -> BatchMatch:
        matching = self._batches.get((topic, queue_id))
        if matching is None:
            matching = BatchMatch(self._reader, _name(topic), queue_id, MAX_REPORTED)
            self._batches[topic, queue_id] = matching
        return matching

    def take(self, data: bytes, at: int, start: int) -> tuple[int, int]:
        """Check ordinary records, with their CRC, and their entries.

        @param start: the position of C{data} in the log.
        @return: behind the last one, and how many they were.
        """
        opened: list[tuple[QueueMatch, QueueRun]] = []

        def run_of(key: tuple[bytes, int], position: int) -> QueueRun | None:
            matching = self._queues.get(key)
            if matching is None or matching.last < 0 or not matching.codes.are_plain:
                return None
            run = QueueRun([], matching.last + 1)
            opened.append((matching, run))
            return run

        end, count, _ = collect(data, at, start, True, run_of, True)
        for matching, run in opened:
            entries = run.entries
            first = matching.last + 1
            if not matching.exists:
                self.orphans += len(entries)
                matching.unlisted += len(entries)
                matching.last += len(entries)
            elif first >= matching.end and not self._reader.is_clean:
                matching.unlisted += len(entries)
                matching.last += len(entries)
            elif not matching.follow(first, entries):
                for entry in entries:
                    position = ENTRY.unpack(entry)[0]
                    self.record(parse(data, position - start, position, False))
        return end, count

    def record(self, found: RecordHead) -> None:
        """Check one record against its queue."""
        position, size, topic, queue_id, offset, sys_flag, store_ms, properties = found
        if not takes_queue_offset(sys_flag):
            return
        if sys_flag & INNER_BATCH:
            self._batch(found, batch_of(properties))
            return
        matching = self._queues.get((topic, queue_id))
        if matching is None:
            if (topic, queue_id) in self._batches:
                self._batch(found, (offset, 1))
                return
            matching = self._matching(topic, queue_id)
        last = matching.last
        matching.last = offset
        if matching.exists and offset != last + 1 and last >= 0 and offset != 0:
            text = f"offset {offset} stands behind {last}"
            if offset > last + 1:
                text = f"offsets {last + 1} to {offset - 1} have no record"
                matching.holes.append((last + 1, offset))
            offsets = last + 1, offset
            self._report_record("order", topic, queue_id, position, text, offsets)
        if offset <= last:
            # A topic of that name began again; the earlier messages are not read.
            matching.unlisted = 0
            matching.missing.clear()
        if not matching.exists:
            self.orphans += 1
            matching.miss(position, offset, 1)
            return
        entry = position, size, tag_code_of(properties)
        if not matching.meet(offset, entry, store_ms):
            matching.miss(position, offset, MAX_REPORTED)

    def _batch(self, found: RecordHead, place: tuple[int, int] | None) -> None:
        """Check one inner batch against its queue, or a message alone in one.

        @param place: the first offset and the number of messages.
        """
        position, size, topic, queue_id, _, _, store_ms, properties = found
        if place is None:
            # It stands in no queue.
            return
        matching = self._batch_matching(topic, queue_id)
        if matching.exists:
            code = tag_code_of(properties)
            matching.meet(BatchUnit(position, size, code, store_ms, *place))
        else:
            self.orphans += 1
            matching.miss(position, place[0], 1)

    def _report_record(
        self,
        kind: str,
        topic: bytes,
        queue_id: int,
        position: int,
        text: str,
        offsets: tuple[int, int] = (0, 0),
    ) -> None:
        name = topic.decode("utf-8", "replace")
        path = segment_at(self._reader, position).path
        text = f"{name}/{queue_id}: {text}"
        queue = name, queue_id
        self._report_fault(
            Fault(kind, path, position, text, queue=queue, offsets=offsets)
        )

    def rest(self, end: int) -> None:
        """The walk is over: check the entries that met no record of theirs.

        @param end: where the walk has ended.
        """
        for (topic, queue_id), matching in self._queues.items():
            self._report_missing(topic, queue_id, matching)
            self._rest_of_queue(_name(topic), queue_id, matching, end)
        for (topic, queue_id), batches in self._batches.items():
            self._report_missing(topic, queue_id, batches)
            for at, position, why in batches.rest():
                if position >= end and not self._reader.is_clean:
                    # It came after the walk, or the next start removes it.
                    continue
                text = f"the unit at byte {at} (position {position}): {why}"
                path, queue = batches.path_of(at), (_name(topic), queue_id)
                self._report_fault(Fault("entry", path, at, text, queue=queue))

    def _rest_of_queue(
        self, topic: str, queue_id: int, matching: QueueMatch, end: int
    ) -> None:
        for offset, why, position, path in matching.wrong:
            text = f"entry {offset}: {why}"
            if path:
                queue = topic, queue_id
                self._report_fault(
                    Fault("extension", path, position, text, queue=queue)
                )
            else:
                self._report_entry(topic, queue_id, offset, text)
        for offset, entry in matching.rest():
            if entry[0] >= end and not self._reader.is_clean:
                # Its record came after the walk, or the next start removes it.
                continue
            why = self._wrong(topic, queue_id, offset, entry, matching.codes)
            if why and not matching.keeps_place(offset, entry):
                what = f"entry {offset} (position {entry[0]}, size {entry[1]})"
                self._report_entry(topic, queue_id, offset, f"{what}: {why}")
        if matching.dropped:
            text = f"{matching.dropped} more entries fit no record"
            self._report_entry(topic, queue_id, matching.first, text)

    def _report_missing(
        self, topic: bytes, queue_id: int, matching: QueueMatch | BatchMatch
    ) -> None:
        """The records that have no entry; after a crash the next start makes them."""
        if not matching.exists:
            self._report_directory(topic, queue_id, matching)
            return
        if not self._reader.is_clean:
            self.unlisted += matching.unlisted
            return
        for position, offset in matching.missing:
            text = f"the record of offset {offset} has no entry in the queue"
            self._report_record("missing", topic, queue_id, position, text)
        more = matching.unlisted - len(matching.missing)
        if more:
            text = f"{more} more records have no entry in the queue"
            position = matching.missing[-1][0]
            self._report_record("missing", topic, queue_id, position, text)

    def _report_directory(
        self, topic: bytes, queue_id: int, matching: QueueMatch | BatchMatch
    ) -> None:
        """A queue has no directory."""
        name = _name(topic)
        if not matching.missing or not self._is_lost(name, queue_id):
            return
        position, offset = matching.missing[0]
        text = f"the queue has no directory; the log has {matching.unlisted} "
        text += f"records of it, from offset {offset} on"
        if isinstance(matching, BatchMatch) and not self._reader.queues(name):
            self.lost_batches.add(name)
        self._report_record("missing", topic, queue_id, position, text)

    def _report_entry(self, topic: str, queue_id: int, offset: int, text: str) -> None:
        path = self._reader.queue_path(topic, queue_id, offset)
        queue = topic, queue_id
        offsets = offset, offset + 1
        self._report_fault(
            Fault("entry", path, offset * SIZE, text, queue=queue, offsets=offsets)
        )

    def _wrong(
        self, topic: str, queue_id: int, offset: int, entry: Entry, codes: TagCodes
    ) -> str:
        """The fault of an entry; empty if there is none."""
        position, size, code = entry
        try:
            segment = segment_at(self._reader, position)
        except StoreError:
            if position < self._reader.lowest and not self._reader.is_clean:
                # A broker that cleans its store has removed the record.
                return ""
            return "the log has no such position"
        at = position - segment.start
        length = int.from_bytes(segment.pread(4, at), "big")
        data = segment.pread(max(LEAST_SIZE, min(length, MAX_RECORD)), at)
        try:
            found = parse(data, 0, position, False)
        except Blank:
            return "the file of the log ends there"
        except Broken as error:
            return str(error)
        if found.size != size:
            return f"the record there has {found.size} bytes"
        if topic.startswith(SHARED_PREFIX):
            if (topic.encode(), offset) not in lmqs_of(found.topic, found.properties):
                return "the record there does not say that it stands here"
        elif (_name(found.topic), found.queue_id, found.queue_offset) != (
            topic,
            queue_id,
            offset,
        ):
            place = f"{found.queue_offset} of {_name(found.topic)}/{found.queue_id}"
            return f"the record there is {place}"
        return codes.wrong(code, tag_code_of(found.properties), found.store_ms)[0]


def _name(topic: bytes) -> str:
    """A topic as a directory can be called; a record may say anything."""
    text = topic.decode("utf-8", "replace")
    if is_usable(text):
        return text
    # Two of these may have one name: there is no directory of either.
    return "\ufffd" + text.translate({0: "\ufffd", ord("/"): "\ufffd"})[:MAX_SHOWN]
